import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallQuery, CallRow, Store } from '../../src/store/store.ts';
import { callRow, march } from '../unit/store/call-rows.ts';
import { eachWith, type OpenStore } from './opened.ts';
import { fullCall } from './rows.ts';

/** Page by page to the end. */
async function walk(store: Store, query: CallQuery): Promise<readonly string[]> {
  const ids: string[] = [];
  let before: CallQuery['before'];
  for (;;) {
    const page = await store.calls.list({ ...query, ...(before === undefined ? {} : { before }) });
    ids.push(...page.calls.map((row) => row.id));
    if (page.next === undefined) return ids;
    assert.notDeepEqual(page.next, before);
    before = page.next;
  }
}

const filters: { readonly [name: string]: readonly [Partial<CallRow>, Partial<CallQuery>] } = {
  key: [{ keyId: 'k9' }, { key: 'k9' }],
  team: [{ team: 'red' }, { team: 'red' }],
  model: [{ model: 'm9' }, { model: 'm9' }],
  provider: [{ provider: 'p9' }, { provider: 'p9' }],
  tag: [{ tags: ['a', 'x"'] }, { tag: 'x"' }],
  outcome: [{ outcome: 'canceled' }, { outcome: 'canceled' }],
  endpoint: [{ endpoint: 'anthropic-messages' }, { endpoint: 'anthropic-messages' }],
  user: [{ user: 'ana' }, { user: 'ana' }],
  status: [{ status: 418 }, { status: 418 }],
  mode: [{ mode: 'translate' }, { mode: 'translate' }],
  notes: [{ notes: 'dropped: 100%_Seed' }, { notes: '%_sEED' }],
  'an unknown model': [{ model: 'no such', error: 'model_not_found' }, { model: 'no such' }],
};

export function pageSuite(open: OpenStore): void {
  describe('pages of calls', () => {
    const opened = eachWith(open);

    it('newest first, by id within a millisecond, without attempts', async () => {
      const twin = callRow('c0', { startedAt: march + 1 });
      await opened.store.calls.record([callRow('c1'), fullCall, twin]);
      const { calls, next } = await opened.store.calls.list({ limit: 10 });
      assert.deepEqual(calls, [{ ...fullCall, attemptRows: [] }, twin, callRow('c1')]);
      assert.equal(next, undefined);
    });

    it('L5 continues where a page ended, also within a millisecond and while calls come', async () => {
      const { store } = opened;
      const rows = Array.from({ length: 23 }, (_, i) =>
        callRow(`c${String(i).padStart(2, '0')}`, { startedAt: march + Math.floor(i / 6) }),
      );
      await store.calls.record(rows);
      const ids = rows.map((row) => row.id).toReversed();
      for (const limit of [1, 5, 6, 23, 50]) assert.deepEqual(await walk(store, { limit }), ids);
      const first = await store.calls.list({ limit: 10 });
      await store.calls.record([callRow('late', { startedAt: march + 99 })]);
      assert.ok(first.next !== undefined);
      const second = await store.calls.list({ limit: 13, before: first.next });
      assert.deepEqual(
        second.calls.map((row) => row.id),
        ids.slice(10),
      );
    });

    for (const [name, [change, filter]] of Object.entries(filters)) {
      it(`finds calls by ${name}`, async () => {
        await opened.store.calls.record([
          callRow('c1'),
          callRow('c2', change),
          callRow('c3', { startedAt: march + 1 }),
          callRow('c4', { ...change, startedAt: march + 2 }),
        ]);
        assert.deepEqual(await walk(opened.store, { limit: 10, ...filter }), ['c4', 'c2']);
        assert.deepEqual(await walk(opened.store, { limit: 1, ...filter }), ['c4', 'c2']);
      });
    }

    it('finds calls that have no team, provider or tag, and calls of a time', async () => {
      const { store } = opened;
      await store.calls.record([
        callRow('c1', { team: 'red', provider: 'p', tags: ['t'] }),
        callRow('c2', { startedAt: march + 1 }),
        callRow('c3', { startedAt: march + 2, team: '' }),
      ]);
      assert.deepEqual(await walk(store, { limit: 5, team: '' }), ['c3', 'c2']);
      assert.deepEqual(await walk(store, { limit: 5, provider: '' }), ['c3', 'c2']);
      assert.deepEqual(await walk(store, { limit: 5, tag: '' }), ['c3', 'c2']);
      assert.deepEqual(await walk(store, { limit: 5, since: march + 1 }), ['c3', 'c2']);
      assert.deepEqual(await walk(store, { limit: 5, until: march + 2 }), ['c2', 'c1']);
      assert.deepEqual(await walk(store, { limit: 1, since: march + 1, until: march + 2 }), ['c2']);
    });

    it('S21 takes what a client named for a value, never for SQL', async () => {
      const odd = `' OR 1=1; DROP TABLE calls; --`;
      await opened.store.calls.record([callRow('c1'), callRow('c2', { model: odd, keyId: odd })]);
      assert.deepEqual(await walk(opened.store, { limit: 5, model: odd }), ['c2']);
      assert.deepEqual(await walk(opened.store, { limit: 5, key: odd }), ['c2']);
      assert.deepEqual(await walk(opened.store, { limit: 5, user: odd }), []);
      assert.equal(await opened.store.calls.find(odd), undefined);
    });
  });
}
