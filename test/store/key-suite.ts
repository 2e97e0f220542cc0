import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noPolicy, type SharedPolicy } from '../../src/core/policy.ts';
import type { KeyRecord } from '../../src/store/store.ts';
import { day, keyRecord, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';

const full: KeyRecord = keyRecord('b', {
  name: `'; DROP TABLE keys; -- ü "`,
  peppered: true,
  previous: [
    { digest: 'd'.repeat(64), replacedAt: march, validUntil: march + day },
    { digest: 'e'.repeat(64), peppered: true, replacedAt: march - 1, validUntil: march + 1 },
  ],
  owner: 'ana@example.com',
  models: ['openai/*', 'local/tiny'],
  endpoints: [],
  cidrs: ['10.0.0.0/8', '2001:db8::/32'],
  team: 'red',
  tags: ['prod', 'ü,"'],
  policy: {
    limits: [
      { kind: 'requests', amount: 60 },
      { kind: 'tokens', amount: 1000, model: 'openai/*' },
      { kind: 'concurrent', amount: 2 },
    ],
    budgets: [
      { nanodollars: 0, per: 'day', timeZone: 'UTC' },
      { nanodollars: Number.MAX_SAFE_INTEGER, per: 'ever', timeZone: 'Europe/Berlin' },
    ],
  },
  shrink: false,
  strict: true,
  logContent: true,
  createdAt: march + 1,
  expiresAt: march + day,
  revokedAt: march + 2,
  version: 7,
});

export function keySuite(open: OpenStore): void {
  describe('keys and policies', () => {
    const opened = eachWith(open);

    it('keeps a key as it was given, absent members absent', async () => {
      const bare = keyRecord('a');
      await opened.store.addKey(full);
      await opened.store.addKey(bare);
      assert.deepEqual(await opened.store.listKeys(), [bare, full]);
    });

    it('refuses a second key with the same id', async () => {
      await opened.store.addKey(keyRecord('a'));
      await assert.rejects(opened.store.addKey(keyRecord('a', { name: 'other' })));
      assert.equal((await opened.store.listKeys())[0]?.name, 'key a');
    });

    it('S6 revokes once: the first time stands, an unknown id is told', async () => {
      await opened.store.addKey(keyRecord('a'));
      assert.equal(await opened.store.revokeKey('a', 5), true);
      assert.equal(await opened.store.revokeKey('a', 9), true);
      assert.equal(await opened.store.revokeKey('zz', 9), false);
      assert.equal((await opened.store.listKeys())[0]?.revokedAt, 5);
    });

    it('K8 replaces a key by the version after its own, and nothing else', async () => {
      const { store } = opened;
      await store.addKey(keyRecord('b', { createdAt: march + 1, version: 6 }));
      assert.equal(await store.replaceKey({ ...full, version: 6 }), false);
      assert.equal(await store.replaceKey({ ...full, version: 8 }), false);
      assert.equal(await store.replaceKey(full), true);
      assert.deepEqual(await store.listKeys(), [full]);
      assert.equal(await store.replaceKey(full), false);
      assert.equal(await store.replaceKey({ ...full, id: 'unknown' }), false);
      const bare = keyRecord('b', { createdAt: march + 1, version: 8 });
      assert.equal(await store.replaceKey(bare), true);
      assert.deepEqual(await store.listKeys(), [bare]);
    });

    it('K8 a change that was begun before a revocation does not bring the key back', async () => {
      const { store } = opened;
      const key = keyRecord('a');
      await store.addKey(key);
      await store.revokeKey('a', 5);
      assert.equal(await store.replaceKey({ ...key, name: 'late', version: 2 }), false);
      assert.deepEqual(await store.listKeys(), [{ ...key, revokedAt: 5, version: 2 }]);
    });

    it('K8 of many that change a key at once, one succeeds', async () => {
      const { store } = opened;
      const key = keyRecord('a');
      await store.addKey(key);
      const names = Array.from({ length: 20 }, (_, i) => `name ${i}`);
      const done = await Promise.all(
        names.map((name) => store.replaceKey({ ...key, name, version: 2 })),
      );
      assert.equal(done.filter(Boolean).length, 1);
      assert.equal((await store.listKeys())[0]?.name, names[done.indexOf(true)]);
    });

    it('S5 remembers the latest use of a key and of its previous secret, and is no change', async () => {
      const { store } = opened;
      const key = keyRecord('a');
      await store.addKey(key);
      await store.touchKeys([
        { id: 'a', at: march + 5, previous: false },
        { id: 'a', at: march + 3, previous: false },
        { id: 'a', at: march + 4, previous: true },
        { id: 'unknown', at: march, previous: false },
      ]);
      const used = { lastUsedAt: march + 5, previousUsedAt: march + 4 };
      assert.deepEqual(await store.listKeys(), [{ ...key, ...used }]);
      assert.equal(await store.replaceKey({ ...key, name: 'new', version: 2 }), true);
      assert.deepEqual(await store.listKeys(), [{ ...key, ...used, name: 'new', version: 2 }]);
      await store.touchKeys([]);
    });

    it('S6 tells what changed since a stamp', async () => {
      const { store } = opened;
      const nothing = await store.keysSince(0);
      assert.deepEqual(nothing.records, []);
      const [a, b] = [keyRecord('a'), keyRecord('b')];
      await store.addKey(a);
      await store.addKey(b);
      const both = await store.keysSince(nothing.stamp);
      assert.deepEqual(both.records, [a, b]);
      await store.touchKeys([{ id: 'b', at: march, previous: false }]);
      assert.deepEqual((await store.keysSince(both.stamp)).records, []);
      await store.revokeKey('a', 5);
      const revoked = await store.keysSince(both.stamp);
      assert.deepEqual(revoked.records, [{ ...a, revokedAt: 5, version: 2 }]);
      const { stamp } = revoked;
      assert.deepEqual(await store.keysSince(stamp), { records: [], stamp, more: false });
      assert.equal((await store.keysSince(0)).records.length, 2);
    });

    it('L5 tells changes in portions, the earliest first, each once', async () => {
      const { store } = opened;
      // Not in the order of ids or of creation: that of changes counts.
      const ids = ['c', 'a', 'e', 'b', 'd'];
      for (const id of ids) await store.addKey(keyRecord(id));
      const first = await store.keysSince(0, 2);
      assert.equal(first.records.length, 2);
      await store.revokeKey('c', 5);
      const told = first.records.map(({ id }) => id);
      let { stamp, more } = first;
      while (more) {
        const next = await store.keysSince(stamp, 2);
        assert.ok(next.records.length <= 2);
        told.push(...next.records.map(({ id }) => id));
        ({ stamp, more } = next);
      }
      assert.deepEqual(told, [...ids, 'c'], 'what changed meanwhile comes again');
    });

    it('keeps policies by kind and name', async () => {
      const { store } = opened;
      const team: SharedPolicy = { kind: 'team', name: 'red', ...full.policy };
      const tag: SharedPolicy = { kind: 'tag', name: 'red', ...noPolicy };
      await store.putPolicy(team);
      await store.putPolicy(tag);
      assert.deepEqual(await store.listPolicies(), [tag, team]);
      const stricter = { ...team, limits: [] };
      await store.putPolicy(stricter);
      assert.deepEqual(await store.listPolicies(), [tag, stricter]);
      assert.equal(await store.deletePolicy('tag', 'red'), true);
      assert.equal(await store.deletePolicy('tag', 'red'), false);
      assert.deepEqual(await store.listPolicies(), [stricter]);
    });

    it('keeps settings', async () => {
      assert.equal(await opened.store.readSetting('x'), undefined);
      await opened.store.writeSetting('x', '1');
      await opened.store.writeSetting('x', '2');
      assert.equal(await opened.store.readSetting('x'), '2');
    });

    it('refuses work after close; a second close does nothing', async () => {
      const { store } = opened;
      await store.close();
      await assert.rejects(store.listKeys(), { name: 'StoreError', kind: 'closed' });
      await assert.rejects(store.usage({ by: 'key', since: 0 }), { kind: 'closed' });
      await store.close();
    });
  });
}
