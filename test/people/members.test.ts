/** What members and leads of a team may make and see: their part, by every route that they may use (issue 23). */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { MemberTeam } from '../../src/config/oidc.ts';
import type { JsonObject } from '../../src/json/value.ts';
import { costing } from '../store/rows.ts';
import {
  adminRig,
  errorOf,
  listOf,
  textOf,
  type Answer,
  type Rig,
} from '../unit/admin/admin-rig.ts';
import { callRow, day } from '../unit/store/call-rows.ts';
import { signedInAs, type SignedIn } from './signed-in.ts';

const rules = { members: [], leads: [] };
const memberTeams: readonly MemberTeam[] = [
  { name: 'red', ...rules, models: ['local/*', 'fast'], keys: 2, expiresMs: 30 * day },
  { name: 'blue', ...rules, models: ['*'], keys: 5, expiresMs: Infinity },
  { name: 'new', ...rules, models: ['*'], keys: 5, expiresMs: Infinity },
];

async function rigOfTeams(t: TestContext): Promise<Rig> {
  const rig = await adminRig(t, { memberTeams: () => memberTeams });
  for (const team of ['red', 'blue']) {
    const put = await rig.ask(`/api/teams/${team}`, { method: 'PUT', body: { rpm: 60 } });
    assert.equal(put.status, 200);
  }
  return rig;
}

const max = { id: 'max', teams: ['red'] };
const lea = { id: 'lea', leads: ['red'] };

function makeKey(who: SignedIn, body: JsonObject = {}): Promise<Answer> {
  const wished = { name: 'mine', models: ['local/tiny'], ...body };
  return who.ask('/api/keys', { method: 'POST', body: wished });
}

/** Ids of the keys that are listed for a person; the list of names has the same ones. */
async function keysOf(who: SignedIn, query = ''): Promise<readonly unknown[]> {
  const idsAt = async (path: string): Promise<readonly unknown[]> =>
    listOf((await who.ask(path)).body, 'keys').map(({ id }) => id);
  const ids = await idsAt(`/api/keys${query}`);
  if (query === '') assert.deepEqual(await idsAt('/api/keys/names'), ids);
  return ids;
}

it('a member makes a key: of the team, for themselves, for no longer than may be', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, max);
  const made = await makeKey(who, { models: ['local/*', 'fast'], tags: [], log_content: false });
  assert.equal(made.status, 201, textOf(errorOf(made), 'message'));
  const { team, owner, expires_at: expires, id } = made.body;
  const last = new Date(rig.clock.wall() + 30 * day).toISOString();
  assert.deepEqual([team, owner, expires], ['red', 'max', last]);
  const principal = rig.keys.authenticate(`Bearer ${textOf(made.body, 'key')}`, undefined);
  assert.equal(principal.team, 'red', 'the limits of the team hold for it');
  const [entry] = listOf((await rig.ask('/api/audit')).body, 'entries');
  assert.deepEqual(
    [entry?.['actor'], entry?.['action'], entry?.['subject']],
    ['person:max', 'key.create', `key:${String(id)}`],
  );
  const sooner = await makeKey(who, { expires_in: '1h' });
  const hour = new Date(rig.clock.wall() + 3_600_000).toISOString();
  assert.equal(sooner.body['expires_at'], hour);
});

const refusals: readonly (readonly [string, JsonObject, string])[] = [
  ['another team', { team: 'blue' }, 'team'],
  ['another owner', { owner: 'lea' }, 'owner'],
  ['models beyond the team', { models: ['local/tiny', 'openai/gpt-5'] }, 'models'],
  ['all models', { models: ['*'] }, 'models'],
  ['a glob that only looks alike', { models: ['*/tiny'] }, 'models'],
  ['a longer life', { expires_in: '31d' }, 'expires_at'],
  ['tags, whose limits others share', { tags: ['prod'] }, 'tags'],
  ['content logging', { log_content: true }, 'log_content'],
];

for (const [what, body, field] of refusals) {
  it(`a member may not have ${what}`, async (t) => {
    const rig = await rigOfTeams(t);
    const answer = await makeKey(await signedInAs(rig, max), body);
    assert.deepEqual([answer.status, errorOf(answer)['field']], [403, field]);
    assert.deepEqual(listOf((await rig.ask('/api/keys')).body, 'keys'), []);
  });
}

it('a team without limits gives no keys: an operator sets them first', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, { id: 'nina', teams: ['new'] });
  const answer = await makeKey(who);
  assert.equal(answer.status, 403);
  assert.match(textOf(errorOf(answer), 'message'), /model-gateway teams set new/);
  await rig.ask('/api/teams/new', { method: 'PUT', body: { rpm: 5 } });
  assert.equal((await makeKey(who)).status, 201);
});

it('who is in two teams says which one', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, { id: 'tom', teams: ['red', 'blue'] });
  const unsaid = await makeKey(who);
  assert.deepEqual([unsaid.status, errorOf(unsaid)['field']], [403, 'team']);
  assert.equal((await makeKey(who, { team: 'blue', models: ['*'] })).body['team'], 'blue');
});

it('no person has more active keys than the maximum, not by concurrent requests either', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, max);
  const answers = await Promise.all(Array.from({ length: 6 }, () => makeKey(who)));
  const made = answers.filter(({ status }) => status === 201);
  assert.ok(made.length <= 2, `${made.length} keys`);
  const active = rig.keys.ofOwner('max').filter(({ state }) => state === 'active');
  assert.deepEqual(
    active.map(({ record }) => record.id).toSorted(),
    made.map(({ body }) => body['id']).toSorted(),
  );
  while ((await makeKey(who)).status === 201);
  const [first] = rig.keys.ofOwner('max').filter(({ state }) => state === 'active');
  assert.ok(first !== undefined);
  const revoked = await who.ask(`/api/keys/${first.record.id}/revoke`, { method: 'POST' });
  assert.equal(revoked.status, 200);
  assert.equal((await makeKey(who)).status, 201, 'a revoked key makes room');
});

it('S6 a person who is revoked while their key is made has none', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, max);
  const { keys } = rig;
  const create = keys.create.bind(keys);
  keys.create = async (...given) => {
    const made = await create(...given);
    await rig.deps.store.people.setRevoked('max', rig.clock.wall());
    return made;
  };
  assert.equal((await makeKey(who)).status, 403);
  assert.deepEqual(
    rig.keys.ofOwner('max').map(({ state }) => state),
    ['revoked'],
  );
});

it('a member sees, rotates and revokes own keys, and no other one', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, max);
  const own = textOf((await makeKey(who)).body, 'id');
  const others = await Promise.all(
    [{ owner: 'lea', team: 'red' }, { team: 'red' }, { owner: 'maximilian' }, {}].map((scope) =>
      rig.keys.create({ name: 'other', models: ['*'], ...scope }),
    ),
  );
  assert.deepEqual(await keysOf(who), [own]);
  assert.deepEqual(await keysOf(who, '?limit=1'), [own]);
  assert.deepEqual(await keysOf(who, '?text=other'), []);
  for (const query of ['?sort=spend', '?sort=used&with=spend', '?team=red', '?state=active']) {
    assert.deepEqual(await keysOf(who, query), [own], query);
  }
  for (const { id } of others) {
    for (const [path, method] of [
      ['', 'GET'],
      ['/rotate', 'POST'],
      ['/revoke', 'POST'],
    ] as const) {
      const answer = await who.ask(`/api/keys/${id}${path}`, { method });
      const absent = await who.ask(`/api/keys/nothing1${path}`, { method });
      assert.deepEqual([answer.status, absent.status], [404, 404], `${method} ${path}`);
    }
    assert.equal(rig.keys.find(id)?.state, 'active');
  }
  assert.equal((await who.ask(`/api/keys/${own}`)).status, 200);
  const rotated = await who.ask(`/api/keys/${own}/rotate`, { method: 'POST', body: {} });
  assert.equal(rotated.status, 200);
  rig.keys.authenticate(`Bearer ${textOf(rotated.body, 'key')}`, undefined);
  const changed = await who.ask(`/api/keys/${own}`, { method: 'PATCH', body: { models: ['*'] } });
  assert.equal(changed.status, 403, 'limits and models are changed by operators');
  const revoked = await who.ask(`/api/keys/${own}/revoke`, { method: 'POST' });
  assert.equal(revoked.body['state'], 'revoked');
});

it('a lead sees and makes the keys of the team, for its people, too', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, lea);
  const ofMax = textOf((await makeKey(await signedInAs(rig, max))).body, 'id');
  const ofBlue = await rig.keys.create({ name: 'blue', models: ['*'], team: 'blue' });
  const made = await makeKey(who, { owner: 'max' });
  assert.deepEqual([made.body['owner'], made.body['team']], ['max', 'red']);
  const third = await makeKey(who, { owner: 'max' });
  assert.deepEqual([third.status, errorOf(third)['field']], [403, 'team'], 'as many as max may');
  assert.deepEqual((await keysOf(who)).toSorted(), [ofMax, made.body['id']].toSorted());
  assert.equal((await makeKey(who, { team: 'blue' })).status, 403);
  assert.equal((await who.ask(`/api/keys/${ofBlue.id}/revoke`, { method: 'POST' })).status, 404);
  assert.equal((await who.ask(`/api/keys/${ofMax}/revoke`, { method: 'POST' })).status, 200);
});

it('a member sees own calls and spend, a lead those of the team; viewers all', async (t) => {
  const rig = await rigOfTeams(t);
  const own = await rig.keys.create({ name: 'own', models: ['*'], owner: 'max', team: 'red' });
  const gone = await rig.keys.create({ name: 'gone', models: ['*'], owner: 'max' });
  await rig.keys.revoke(gone.id);
  const team = await rig.keys.create({ name: 'team', models: ['*'], owner: 'lea', team: 'red' });
  const other = await rig.keys.create({ name: 'other', models: ['*'], team: 'blue' });
  const at = rig.clock.wall();
  for (const [id, keyId, of] of [
    ['req_own', own.id, 'red'],
    ['req_gone', gone.id, undefined],
    ['req_team', team.id, 'red'],
    ['req_other', other.id, 'blue'],
  ] as const) {
    const whose = of === undefined ? {} : { team: of };
    rig.ledger.record(callRow(id, { startedAt: at, keyId, ...whose, ...costing(1_000_000_000) }));
  }
  const all = ['req_gone', 'req_other', 'req_own', 'req_team'];
  for (const [person, ids] of [
    [max, ['req_gone', 'req_own']],
    [lea, ['req_own', 'req_team']],
    [{ id: 'vera', roles: ['viewer'] }, all],
    // Who may see everything sees everything, whatever else they are.
    [{ id: 'both', roles: ['viewer'], teams: ['red'] }, all],
    [{ id: 'new', teams: ['blue'] }, []],
  ] as const) {
    const who = await signedInAs(rig, person);
    const told = async (path: string, list: string): Promise<readonly JsonObject[]> =>
      listOf((await who.ask(path)).body, list);
    const calls = await told('/api/calls', 'calls');
    assert.deepEqual(calls.map((call) => call['id']).toSorted(), ids, person.id);
    const cost = (rows: readonly JsonObject[]): number =>
      rows.reduce((sum, row) => sum + Number(row['cost_usd']), 0);
    for (const by of ['key', 'model', 'team', 'day']) {
      assert.equal(cost(await told(`/api/usage?by=${by}`, 'rows')), ids.length, person.id);
    }
    for (const query of ['', '?by=key']) {
      assert.equal(cost(await told(`/api/series${query}`, 'groups')), ids.length, person.id);
    }
    const csv = textOf((await who.ask('/api/usage?format=csv&by=key')).body, 'text');
    assert.equal(
      csv.includes(other.id),
      ids.some((id) => id === 'req_other'),
      csv,
    );
    for (const id of all) {
      const { status } = await who.ask(`/api/calls/${id}`);
      assert.equal(status, ids.some((each) => each === id) ? 200 : 404, `${person.id} ${id}`);
    }
    assert.equal((await who.ask(`/api/calls?key=${other.id}`)).status, 200);
  }
});

it('people of a team see that team with its limits, and no other one', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, { id: 'tom', teams: ['red', 'new'] });
  const teams = listOf((await who.ask('/api/teams')).body, 'teams');
  assert.deepEqual(
    teams.map(({ name }) => name),
    ['red'],
  );
  assert.equal((await who.ask('/api/teams/red')).status, 200);
  assert.equal((await who.ask('/api/teams/blue')).status, 404);
});

it('S6 who loses their teams sees and makes nothing any more', async (t) => {
  const rig = await rigOfTeams(t);
  const who = await signedInAs(rig, max);
  assert.equal((await makeKey(who)).status, 201);
  const { people } = rig.deps.store;
  const now = rig.clock.wall();
  const times = { firstAt: now, seenAt: now };
  await people.signedIn({ id: 'max', name: 'max', roles: [], leads: [], teams: [], ...times });
  assert.equal((await makeKey(who)).status, 403);
  rig.clock.time += 6000;
  for (const path of ['/api/keys', '/api/calls', '/api/models']) {
    assert.equal((await who.ask(path)).status, 403, path);
  }
});
