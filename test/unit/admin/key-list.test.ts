/** Issue 24: the list of keys in the order of spending and of last use, with what was spent. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { costing } from '../../store/rows.ts';
import { callRow, day } from '../store/call-rows.ts';
import { adminRig, errorOf, listOf, textOf, type Rig } from './admin-rig.ts';

interface Made {
  readonly rig: Rig;
  /** Ids by name, in the order of creation. */
  readonly ids: { readonly [name: string]: string };
}

/** Four keys: two of a team, the last of which is revoked; the first and the third were used. */
async function made(t: TestContext): Promise<Made> {
  const rig = await adminRig(t);
  const ids: Record<string, string> = {};
  for (const [name, more] of [
    ['first', { budget: 2, per: 'day', time_zone: 'UTC' }],
    ['second', { team: 'red' }],
    ['third', {}],
    ['gone', { team: 'red' }],
  ] as const) {
    const { body } = await rig.ask('/api/keys', {
      method: 'POST',
      body: { name, models: ['*'], ...more },
    });
    ids[name] = textOf(body, 'id');
    rig.clock.time += 1000;
    if (name === 'first' || name === 'third') {
      rig.keys.authenticate(undefined, textOf(body, 'key'));
    }
  }
  await rig.ask(`/api/keys/${ids['gone']}/revoke`, { method: 'POST' });
  return { rig, ids };
}

const namesOf = (body: JsonObject): readonly unknown[] =>
  listOf(body, 'keys').map(({ name }) => name);

test('issue 24 keys by spending: the dearest of 30 days first, the others as they were made, in pages', async (t) => {
  const { rig, ids } = await made(t);
  const now = rig.clock.wall();
  const window = new Date(now).toISOString().slice(0, 10);
  const budgets = [{ counter: `key:${ids['first']}:day`, window, endsAt: now + day }];
  const rows = [
    { keyId: ids['first'] ?? '', startedAt: now, budgets, ...costing(1_500_000_000) },
    { keyId: ids['third'] ?? '', startedAt: now - 2 * day, ...costing(4_000_000_000) },
    // Older than a month.
    { keyId: ids['second'] ?? '', startedAt: now - 40 * day, ...costing(9_000_000_000) },
  ];
  for (const [i, row] of rows.entries()) rig.ledger.record(callRow(`c${i}`, row));
  const all = await rig.ask('/api/keys?sort=spend&with=spend');
  assert.deepEqual(namesOf(all.body), ['third', 'first', 'second', 'gone']);
  const spent = listOf(all.body, 'keys').map((key) => key['spent_usd']);
  assert.deepEqual(spent, [4, 1.5, 0, 0]);
  const [, first] = listOf(all.body, 'keys');
  assert.partialDeepStrictEqual(first, { budgets: [{ usd: '2', spent_usd: '1.5' }] });
  let after = '';
  const paged: unknown[] = [];
  for (let page = 0; page < 4; page += 1) {
    const { body } = await rig.ask(`/api/keys?sort=spend&limit=1${after}`);
    paged.push(...namesOf(body));
    after = `&after=${String(body['next'])}`;
    assert.equal(body['next'] === null, page === 3);
    assert.ok(!('spent_usd' in (listOf(body, 'keys')[0] ?? {})));
  }
  assert.deepEqual(paged, ['third', 'first', 'second', 'gone']);
});

test('issue 24 F6 the spending of a key whose calls have no price is unknown, not zero', async (t) => {
  const { rig, ids } = await made(t);
  rig.ledger.record(callRow('c1', { keyId: ids['second'] ?? '', startedAt: rig.clock.wall() }));
  const { body } = await rig.ask('/api/keys?with=spend&team=red');
  assert.deepEqual(
    listOf(body, 'keys').map(({ name, spent_usd: spent }) => [name, spent]),
    [
      ['second', null],
      ['gone', 0],
    ],
  );
});

test('issue 24 keys by last use, by team, by state and by text', async (t) => {
  const { rig } = await made(t);
  const used = await rig.ask('/api/keys?sort=used');
  assert.deepEqual(namesOf(used.body), ['third', 'first', 'second', 'gone']);
  const active = await rig.ask('/api/keys?sort=used&state=active&text=IR');
  assert.deepEqual(namesOf(active.body), ['third', 'first']);
  const team = await rig.ask('/api/keys?team=red&state=revoked');
  assert.deepEqual(namesOf(team.body), ['gone']);
  for (const [query, field] of [
    ['sort=name', 'sort'],
    ['state=dead', 'state'],
    ['with=all', 'with'],
    ['sort=spend&after=nobody', 'after'],
  ]) {
    const refused = await rig.ask(`/api/keys?${query}`);
    assert.equal(refused.status, 400);
    assert.equal(errorOf(refused)['field'], field, query);
  }
});

test('issue 24 names of keys: ids and names alone, in pages, in the order of the keys', async (t) => {
  const { rig, ids } = await made(t);
  const all = await rig.ask('/api/keys/names');
  assert.equal(all.status, 200);
  const expected = Object.entries(ids).map(([name, id]) => ({ id, name }));
  assert.deepEqual(all.body, { keys: expected, next: null });
  const first = await rig.ask('/api/keys/names?limit=3');
  assert.deepEqual(namesOf(first.body), ['first', 'second', 'third']);
  const rest = await rig.ask(`/api/keys/names?limit=3&after=${String(first.body['next'])}`);
  assert.deepEqual(rest.body, { keys: expected.slice(3), next: null });
  const refused = await rig.ask('/api/keys/names?after=nobody');
  assert.deepEqual([refused.status, errorOf(refused)['field']], [400, 'after']);
});
