import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { brokenAt } from '../../src/store/records.ts';
import type { AuditEntry, AuditRecord } from '../../src/store/store.ts';
import { keyRecord, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';

function entry(n: number, change: Partial<AuditEntry> = {}): AuditEntry {
  return {
    at: march + n,
    actor: 'admin',
    action: 'key.update',
    subject: `key:${n % 2}`,
    ...change,
  };
}

export function auditSuite(open: OpenStore): void {
  describe('audit log', () => {
    const opened = eachWith(open);

    async function filled(): Promise<readonly AuditRecord[]> {
      const written: AuditRecord[] = [];
      for (let n = 1; n <= 5; n++) written.push(await opened.store.audit.append(entry(n)));
      return written;
    }

    it('S24 keeps entries as they were given, newest first, in pages', async () => {
      const change = { ip: '10.0.0.1', before: '{"a":1}', after: '{"a":"ü\'"}' };
      const bare = await opened.store.audit.append(entry(1));
      const whole = await opened.store.audit.append(entry(2, change));
      assert.deepEqual(await opened.store.audit.list({ limit: 10 }), [whole, bare]);
      const { seq, hash, ...kept } = whole;
      assert.deepEqual(kept, entry(2, change));
      assert.equal(seq, 2);
      assert.match(hash, /^[0-9a-f]{64}$/);
      assert.deepEqual(await opened.store.audit.list({ limit: 1 }), [whole]);
      assert.deepEqual(await opened.store.audit.newest(), whole);
      assert.deepEqual(await opened.store.audit.newest(2), bare);
      assert.equal(await opened.store.audit.newest(1), undefined);
      assert.deepEqual(await opened.store.audit.list({ limit: 5, before: 2 }), [bare]);
      assert.deepEqual(await opened.store.audit.list({ limit: 5, subject: 'key:1' }), [bare]);
      assert.deepEqual(
        await opened.store.audit.list({ limit: 5, subject: 'key:1', before: 1 }),
        [],
      );
    });

    it('S24 issue 24 finds entries by actor, action, noun and time, in pages', async () => {
      const { audit } = opened.store;
      await audit.append(entry(1, { action: 'key.create', actor: 'person:ada' }));
      await audit.append(entry(2, { action: 'key.update' }));
      await audit.append(entry(3, { action: 'keys.list', actor: 'command' }));
      await audit.append(entry(4, { action: 'key.revoke', actor: 'person:ada' }));
      const seqs = async (query: object): Promise<readonly number[]> =>
        (await audit.list({ limit: 10, ...query })).map(({ seq }) => seq);
      assert.deepEqual(await seqs({ actor: 'person:ada' }), [4, 1]);
      assert.deepEqual(await seqs({ action: 'key' }), [4, 2, 1]);
      assert.deepEqual(await seqs({ action: 'key.update' }), [2]);
      assert.deepEqual(await seqs({ action: 'k' }), []);
      assert.deepEqual(await seqs({ since: march + 2, until: march + 4 }), [3, 2]);
      assert.deepEqual(await seqs({ subject: 'key:0', actor: 'admin' }), [2]);
      assert.deepEqual(await seqs({ action: 'key', limit: 1 }), [4]);
      assert.deepEqual(await seqs({ action: 'key', before: 4 }), [2, 1]);
    });

    it('S24 chains what is appended at once without a gap', async () => {
      await Promise.all(Array.from({ length: 20 }, (_, n) => opened.store.audit.append(entry(n))));
      const records = (await opened.store.audit.list({ limit: 100 })).toReversed();
      assert.deepEqual(
        records.map(({ seq }) => seq),
        Array.from({ length: 20 }, (_, i) => i + 1),
      );
      assert.equal(brokenAt(records), undefined);
    });

    it('S24 writes a change and its entry together, or neither', async () => {
      const { store } = opened;
      const record = keyRecord('k1');
      const added = await store.audit.change({ op: 'addKey', record }, entry(1));
      assert.equal(added?.seq, 1);
      await assert.rejects(store.audit.change({ op: 'addKey', record }, entry(2)), {
        kind: 'failed',
      });
      const newer = { ...record, name: 'newer', version: 2 };
      const replaced = await store.audit.change({ op: 'replaceKey', record: newer }, entry(3));
      assert.equal(replaced?.seq, 2);
      const late = await store.audit.change({ op: 'replaceKey', record: newer }, entry(4));
      assert.equal(late, undefined);
      assert.equal(
        (await store.audit.change({ op: 'revokeKey', id: 'k1', at: 5 }, entry(5)))?.seq,
        3,
      );
      const nobody = { op: 'revokeKey', id: 'nobody', at: 5 } as const;
      assert.equal(await store.audit.change(nobody, entry(6)), undefined);
      const policy = { kind: 'team', name: 'red', limits: [], budgets: [] } as const;
      assert.equal((await store.audit.change({ op: 'putPolicy', policy }, entry(7)))?.seq, 4);
      const gone = { op: 'deletePolicy', kind: 'team', name: 'red' } as const;
      assert.equal((await store.audit.change(gone, entry(8)))?.seq, 5);
      assert.equal(await store.audit.change(gone, entry(9)), undefined);
      const records = (await store.audit.list({ limit: 100 })).toReversed();
      assert.deepEqual(
        records.map(({ at }) => at - march),
        [1, 3, 5, 7, 8],
      );
      assert.equal(brokenAt(records), undefined);
      const [kept] = await store.keys.list();
      assert.deepEqual([kept?.name, kept?.revokedAt, kept?.version], ['newer', 5, 3]);
      assert.deepEqual(await store.policies.list(), []);
    });

    it('S24 a changed, a missing and a moved entry show', async () => {
      await filled();
      const records = (await opened.store.audit.list({ limit: 10 })).toReversed();
      assert.equal(brokenAt(records), undefined);
      assert.equal(brokenAt(records.slice(2), records[1]), undefined);
      const changed = records.map((record) =>
        record.seq === 3 ? { ...record, actor: 'nobody' } : record,
      );
      assert.equal(brokenAt(changed), 3);
      assert.equal(brokenAt(records.filter(({ seq }) => seq !== 2)), 2);
      assert.equal(brokenAt(records.slice(1)), 1);
    });
  });
}
