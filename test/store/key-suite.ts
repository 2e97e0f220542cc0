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
  cache: 'auto',
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
      await opened.store.keys.add(full);
      await opened.store.keys.add(bare);
      assert.deepEqual(await opened.store.keys.list(), [bare, full]);
    });

    it('refuses a second key with the same id', async () => {
      await opened.store.keys.add(keyRecord('a'));
      await assert.rejects(opened.store.keys.add(keyRecord('a', { name: 'other' })));
      assert.equal((await opened.store.keys.list())[0]?.name, 'key a');
    });

    it('S6 revokes once: the first time stands, an unknown id is reported', async () => {
      await opened.store.keys.add(keyRecord('a'));
      assert.equal(await opened.store.keys.revoke('a', 5), true);
      assert.equal(await opened.store.keys.revoke('a', 9), true);
      assert.equal(await opened.store.keys.revoke('zz', 9), false);
      assert.equal((await opened.store.keys.list())[0]?.revokedAt, 5);
    });

    it('K8 replaces a key by the version after its own, and nothing else', async () => {
      const { store } = opened;
      await store.keys.add(keyRecord('b', { createdAt: march + 1, version: 6 }));
      assert.equal(await store.keys.replace({ ...full, version: 6 }), false);
      assert.equal(await store.keys.replace({ ...full, version: 8 }), false);
      assert.equal(await store.keys.replace(full), true);
      assert.deepEqual(await store.keys.list(), [full]);
      assert.equal(await store.keys.replace(full), false);
      assert.equal(await store.keys.replace({ ...full, id: 'unknown' }), false);
      const bare = keyRecord('b', { createdAt: march + 1, version: 8 });
      assert.equal(await store.keys.replace(bare), true);
      assert.deepEqual(await store.keys.list(), [bare]);
    });

    it('K8 a change that was begun before a revocation does not bring the key back', async () => {
      const { store } = opened;
      const key = keyRecord('a');
      await store.keys.add(key);
      await store.keys.revoke('a', 5);
      assert.equal(await store.keys.replace({ ...key, name: 'late', version: 2 }), false);
      assert.deepEqual(await store.keys.list(), [{ ...key, revokedAt: 5, version: 2 }]);
    });

    it('K8 of many that change a key at once, one succeeds', async () => {
      const { store } = opened;
      const key = keyRecord('a');
      await store.keys.add(key);
      const names = Array.from({ length: 20 }, (_, i) => `name ${i}`);
      const done = await Promise.all(
        names.map((name) => store.keys.replace({ ...key, name, version: 2 })),
      );
      assert.equal(done.filter(Boolean).length, 1);
      assert.equal((await store.keys.list())[0]?.name, names[done.indexOf(true)]);
    });

    it('S5 remembers the latest use of a key and of its previous secret, and is no change', async () => {
      const { store } = opened;
      const key = keyRecord('a');
      await store.keys.add(key);
      await store.keys.touch([
        { id: 'a', at: march + 5, previous: false },
        { id: 'a', at: march + 3, previous: false },
        { id: 'a', at: march + 4, previous: true },
        { id: 'unknown', at: march, previous: false },
      ]);
      const used = { lastUsedAt: march + 5, previousUsedAt: march + 4 };
      assert.deepEqual(await store.keys.list(), [{ ...key, ...used }]);
      assert.equal(await store.keys.replace({ ...key, name: 'new', version: 2 }), true);
      assert.deepEqual(await store.keys.list(), [{ ...key, ...used, name: 'new', version: 2 }]);
      await store.keys.touch([]);
    });

    it('S6 reports what changed since a stamp', async () => {
      const { store } = opened;
      const nothing = await store.keys.since(0);
      assert.deepEqual(nothing.records, []);
      const [a, b] = [keyRecord('a'), keyRecord('b')];
      await store.keys.add(a);
      await store.keys.add(b);
      const both = await store.keys.since(nothing.stamp);
      assert.deepEqual(both.records, [a, b]);
      await store.keys.touch([{ id: 'b', at: march, previous: false }]);
      assert.deepEqual((await store.keys.since(both.stamp)).records, []);
      await store.keys.revoke('a', 5);
      const revoked = await store.keys.since(both.stamp);
      assert.deepEqual(revoked.records, [{ ...a, revokedAt: 5, version: 2 }]);
      const { stamp } = revoked;
      assert.deepEqual(await store.keys.since(stamp), { records: [], stamp, more: false });
      assert.equal((await store.keys.since(0)).records.length, 2);
    });

    it('L5 reports changes in portions, the earliest first, each once', async () => {
      const { store } = opened;
      // Not in the order of ids or of creation: that of changes counts.
      const ids = ['c', 'a', 'e', 'b', 'd'];
      for (const id of ids) await store.keys.add(keyRecord(id));
      const first = await store.keys.since(0, 2);
      assert.equal(first.records.length, 2);
      await store.keys.revoke('c', 5);
      const told = first.records.map(({ id }) => id);
      let { stamp, more } = first;
      while (more) {
        const next = await store.keys.since(stamp, 2);
        assert.ok(next.records.length <= 2);
        told.push(...next.records.map(({ id }) => id));
        ({ stamp, more } = next);
      }
      assert.deepEqual(told, [...ids, 'c'], 'what changed meanwhile comes again');
    });

    it('keeps policies by kind and name', async () => {
      const { store } = opened;
      const team: SharedPolicy = { kind: 'team', name: 'red', ...full.policy };
      const namedBy = { keys: ['a', '*'], teams: ['blue'] };
      const tag: SharedPolicy = { kind: 'tag', name: 'red', ...noPolicy, namedBy };
      await store.policies.put(team);
      await store.policies.put(tag);
      assert.deepEqual(await store.policies.list(), [tag, team]);
      const stricter = { ...team, limits: [] };
      await store.policies.put(stricter);
      assert.deepEqual(await store.policies.list(), [tag, stricter]);
      assert.equal(await store.policies.delete('tag', 'red'), true);
      assert.equal(await store.policies.delete('tag', 'red'), false);
      assert.deepEqual(await store.policies.list(), [stricter]);
    });

    it('keeps settings', async () => {
      assert.equal(await opened.store.settings.read('x'), undefined);
      await opened.store.settings.write('x', '1');
      await opened.store.settings.write('x', '2');
      assert.equal(await opened.store.settings.read('x'), '2');
    });

    it('refuses work after close; a second close does nothing', async () => {
      const { store } = opened;
      await store.close();
      await assert.rejects(store.keys.list(), { name: 'StoreError', kind: 'closed' });
      await assert.rejects(store.calls.usage({ by: 'key', since: 0 }), { kind: 'closed' });
      await store.close();
    });
  });
}
