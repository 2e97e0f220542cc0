/** Issues 23 and 24: who of the users and which tags spend. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import type { CallRow } from '../../../src/store/store.ts';
import { costing } from '../../store/rows.ts';
import { callRow, day, march } from '../store/call-rows.ts';
import { adminRig, errorOf, listOf, type Rig } from './admin-rig.ts';

const hour = day / 24;

async function recorded(rig: Rig, rows: readonly CallRow[]): Promise<void> {
  for (let i = 0; i < rows.length; i += 500) {
    await rig.deps.store.calls.record(rows.slice(i, i + 500));
  }
}

async function bodyOf(rig: Rig, path: string): Promise<JsonObject> {
  const { status, body } = await rig.ask(path);
  assert.equal(status, 200, path);
  return body;
}

it('issue 23 usage by user is exact over any number of calls, and says how many have expired', async (t) => {
  const rig = await adminRig(t);
  const since = march - 2 * day;
  const dates = `since=${new Date(since).toISOString()}`;
  // A busy hour is more than the store adds up at once.
  const rows = Array.from({ length: 12_000 }, (_, i) => {
    const user = i % 3 === 0 ? {} : { user: i % 3 === 1 ? 'ana' : '=bob' };
    const startedAt = i < 11_000 ? march - hour + i * 300 : since + i * 1000;
    return callRow(`c${i}`, { ...user, startedAt, ...costing(i) });
  });
  await recorded(rig, rows);
  const sumsOf = (user: string | undefined) => {
    const own = rows.filter((row) => row.user === user);
    return [own.length, own.reduce((sum, { cost }) => sum + (cost?.total ?? 0), 0) / 1e9];
  };
  const usage = async (query: string) => {
    const body = await bodyOf(rig, `/api/usage?by=user&${query}`);
    const found = listOf(body, 'rows').map((row) => [row['user'], row['calls'], row['cost_usd']]);
    return { found, expired: body['expired_calls'] };
  };
  const all = [
    [null, ...sumsOf(undefined)],
    ['=bob', ...sumsOf('=bob')],
    ['ana', ...sumsOf('ana')],
  ];
  assert.deepEqual(await usage(dates), { found: all, expired: 0 });
  assert.deepEqual(await usage(`${dates}&team=red`), { found: [], expired: 0 });
  const retention = { callsBefore: march - day, hoursBefore: march - 9 * day };
  assert.equal(await rig.deps.store.calls.prune(retention, 100_000), 1000);
  const later = await usage(dates);
  assert.equal(later.expired, 1000);
  assert.equal(
    later.found.reduce((sum, row) => sum + Number(row[1]), 0),
    11_000,
  );
});

it('issue 24 series by user and by tag are those of the calls; a call counts for each of its tags', async (t) => {
  const rig = await adminRig(t);
  const at = (i: number): number => march - 3 * hour + i * hour;
  await recorded(rig, [
    callRow('c1', { startedAt: at(0), user: 'ana', tags: ['a', 'b', 'a'], ...costing(1e9) }),
    callRow('c2', { startedAt: at(1), user: 'ana', tags: ['b'], ...costing(2e9) }),
    callRow('c3', { startedAt: at(1) + 1, user: 'bob', totalMs: 100, ...costing(4e9) }),
    callRow('c4', { startedAt: at(2), ...costing(8e9) }),
  ]);
  const series = async (query: string) =>
    listOf(await bodyOf(rig, `/api/series?since=12h&step=hour&${query}`), 'groups').map((group) => [
      group['name'],
      group['calls'],
      group['cost_usd'],
      group['p50_ms'],
      listOf(group, 'points').map((point) => Date.parse(String(point['at']))),
    ]);
  assert.deepEqual(await series('by=user'), [
    ['ana', 2, 3, 12.5, [at(0), at(1)]],
    [null, 1, 8, 12.5, [at(2)]],
    ['bob', 1, 4, 100, [at(1)]],
  ]);
  assert.deepEqual(await series('by=tag'), [
    [null, 2, 12, 12.5, [at(1), at(2)]],
    ['b', 2, 3, 12.5, [at(0), at(1)]],
    ['a', 1, 1, 12.5, [at(0)]],
  ]);
  assert.equal((await rig.ask('/api/series?by=tag&tag=a')).status, 400);
  assert.deepEqual(await series('by=user&groups=1'), [['ana', 2, 3, 12.5, [at(0), at(1)]]]);
});

it('sums by user over too many calls are refused with what to do', async (t) => {
  const rig = await adminRig(t);
  const { calls } = rig.deps.store;
  const [row] = [callRow('c1')];
  await calls.record([row]);
  const series = calls.series.bind(calls);
  Object.assign(calls, {
    series: async (query: Parameters<typeof series>[0]) =>
      (await series(query)).map((each) => ({ ...each, calls: 1_000_001 })),
  });
  for (const path of ['/api/usage', '/api/series']) {
    const answer = await rig.ask(`${path}?by=user&since=30d`);
    assert.equal(answer.status, 400);
    assert.equal(errorOf(answer)['field'], 'since');
    // Without their number: a member must not learn how many calls the gateway has.
    assert.match(String(errorOf(answer)['message']), /1000000 calls at most.* has more/);
  }
});
