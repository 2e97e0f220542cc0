/** Kept responses in SQLite: each request looks them up, among as many as their key has. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { StatementSync } from 'node:sqlite';
import { responseColumns } from '../../../src/store/sealed.ts';
import { openInMemory, Statements } from '../../../src/store/sqlite/database.ts';
import { SqliteResponses } from '../../../src/store/sqlite/sealed.ts';
import type { Statement } from '../../../src/store/statements.ts';

class Noted extends Statements {
  readonly all = new Set<string>();

  override of(sql: string | Statement): StatementSync {
    this.all.add(typeof sql === 'string' ? sql : sql.text);
    return super.of(sql);
  }
}

test('no look-up, write or removal of a kept response goes through the others of its key', () => {
  const db = openInMemory();
  const noted = new Noted(db, () => undefined);
  const responses = new SqliteResponses(noted, () => 1);
  const sealed = Uint8Array.of(1);
  const own = { keyId: 'key', previous: undefined, sealed, startedAt: 1, keepMs: 1000 };
  const columns = responseColumns([{ id: 'a', items: ['x', 'y'], ...own }]);
  // The second one takes the place of the first.
  for (let times = 0; times < 2; times += 1) assert.deepEqual(responses.keep(columns), [true]);
  assert.equal(responses.chain('key', 'a', { links: 9, bytes: 99 }).end, 'whole');
  assert.deepEqual(responses.holding('key', ['x', 'y'], 99).places, [
    ['x', 'a'],
    ['y', 'a'],
  ]);
  assert.equal(responses.remove('key', 'a'), true);
  assert.deepEqual(responses.holding('key', ['x', 'y'], 99).places, []);
  const items = `DELETE FROM kept_response_items WHERE key_id = 'k' AND response_id = 'r'
    AND item_id IN (SELECT value FROM json_each('["a"]'))`;
  for (const sql of [...noted.all, items]) {
    const plan = db.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    for (const { detail } of plan) {
      assert.doesNotMatch(String(detail), /^SCAN kept|^SEARCH .* kept_responses_key/, sql);
    }
  }
});
