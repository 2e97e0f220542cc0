import assert from 'node:assert/strict';
import { it } from 'node:test';
import { KeyRing } from '../../../src/access/keys/keys.ts';
import { altered, memoryStore } from '../../support/memory-store.ts';
import type { Store } from '../../../src/store/store.ts';
import { keyRecord } from '../store/call-rows.ts';
import { countingBytes, HeldClock } from './fakes.ts';

it('L5 keys are read in portions, and listed in the order of creation nevertheless', async () => {
  const inner = memoryStore();
  let largest = 0;
  const since: Store['keys']['since'] = async (stamp) => {
    const changes = await inner.keys.since(stamp, 7);
    largest = Math.max(largest, changes.records.length);
    return changes;
  };
  const store = altered(inner, { keys: { since } });
  // The later a key was made, the earlier it was changed.
  for (let i = 0; i < 30; i++) await store.keys.add(keyRecord(`k${i}`, { createdAt: 1000 - i }));
  const keys = new KeyRing({ store, clock: new HeldClock(), random: countingBytes(1) });
  await keys.load();
  assert.equal(largest, 7);
  const listed: string[] = [];
  for (let after: string | undefined; ;) {
    const page = keys.list({ limit: 4, ...(after === undefined ? {} : { after }) });
    listed.push(...(page?.keys ?? []).map(({ record }) => record.id));
    after = page?.next;
    if (after === undefined) break;
  }
  assert.deepEqual(
    listed,
    Array.from({ length: 30 }, (_, i) => `k${29 - i}`),
  );
});

it('S7 a page that follows a declared key continues where that stood, once it is gone from the config', async () => {
  const store = memoryStore();
  for (const id of ['s0', 's1']) await store.keys.add(keyRecord(id));
  const keys = new KeyRing({ store, clock: new HeldClock(), random: countingBytes(1) });
  await keys.load();
  const declare = (names: string): void =>
    keys.declare(
      [...names].map((id) => ({
        id,
        name: id,
        models: ['*'],
        digests: [id.charCodeAt(0).toString(16).repeat(32)],
      })),
    );
  const after = (id: string): string | undefined =>
    keys
      .list({ limit: 10, after: id })
      ?.keys.map(({ record }) => record.id)
      .join('');
  declare('abcde');
  assert.equal(after('b'), 'cdes0s1');
  declare('acde');
  assert.equal(after('b'), 'cdes0s1');
  declare('ce');
  assert.deepEqual(
    ['a', 'b', 'c', 'd', 'e'].map((id) => after(id)),
    ['ces0s1', 'ces0s1', 'es0s1', 'es0s1', 's0s1'],
  );
  declare('');
  assert.deepEqual(
    ['a', 'c', 'e', 's0'].map((id) => after(id)),
    ['s0s1', 's0s1', 's0s1', 's1'],
  );
  declare('bc');
  assert.equal(after('b'), 'cs0s1');
  assert.equal(after('nobody'), undefined);
});
