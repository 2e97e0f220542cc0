import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IdTable } from '../../../src/core/id-table.ts';

test('L2: a table of ids is what a Map is, through growth, replacement and removal', () => {
  const table = new IdTable<number>();
  const map = new Map<string, number>();
  // Short ids, ids that differ in front only (they share a bucket), and enough of them for it to grow.
  const idOf = (n: number): string => (n % 3 === 0 ? `${n}-same-end` : `req_${n.toString(36)}`);
  let seed = 20261121;
  const next = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  for (let i = 0; i < 20_000; i++) {
    const id = idOf(next(4000));
    if (next(3) === 0) {
      assert.equal(table.delete(id), map.get(id));
      map.delete(id);
    } else {
      table.set(id, i);
      map.set(id, i);
    }
    assert.equal(table.get(id), map.get(id));
    assert.equal(table.has(id), map.has(id));
    assert.equal(table.size, map.size);
  }
  assert.deepEqual(new Map(table.entries()), map);
  for (const id of map.keys()) table.delete(id);
  assert.equal(table.size, 0);
  assert.deepEqual(table.entries(), []);
  assert.equal(table.get(''), undefined);
});
