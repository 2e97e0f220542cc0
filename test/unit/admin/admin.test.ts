import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Json, JsonObject } from '../../../src/json/value.ts';
import { createAdminHandler, type ReloadOutcome } from '../../../src/admin/handler.ts';
import { day } from '../store/call-rows.ts';
import { adminRig, adminToken, errorOf, listOf, textOf } from './admin-rig.ts';

const routes: readonly (readonly [string, string])[] = [
  ['POST', '/api/keys'],
  ['GET', '/api/keys'],
  ['GET', '/api/keys/abcdefgh'],
  ['POST', '/api/keys/abcdefgh/revoke'],
  ['GET', '/api/usage'],
  ['GET', '/api/calls'],
  ['GET', '/api/models'],
  ['GET', '/api/status'],
  ['POST', '/api/reload'],
  ['GET', '/api/nothing'],
  ['GET', '/v1/models'],
  ['DELETE', '/api/keys'],
  ['GET', '/healthz/'],
  ['GET', '/healthz?x=1'],
];

it('S9 S10 every route but /healthz is 401 without the token; keys open nothing', async (t) => {
  const rig = await adminRig(t);
  const { key } = await rig.keys.create({ name: 'a', models: ['*'] });
  const answers = new Set<string>();
  // Paths of calls have a text of their own, which says where calls go.
  const answersToCalls = new Set<string>();
  for (const [method, path] of routes) {
    for (const token of [undefined, '', 'wrong', key.reveal(), `${adminToken}x`]) {
      rig.clock.time += 60_000;
      const answer = await rig.ask(path, { method, token });
      assert.equal(answer.status, 401, `${method} ${path}`);
      assert.equal(answer.headers['www-authenticate'], 'Bearer');
      const of = path.startsWith('/v1/') ? answersToCalls : answers;
      of.add(JSON.stringify(answer.body));
    }
    const byKeyHeader = await rig.ask(path, {
      method,
      token: undefined,
      headers: { 'x-api-key': adminToken },
    });
    assert.equal(byKeyHeader.status, 401);
  }
  assert.deepEqual([answers.size, answersToCalls.size], [1, 1]);
  const health = await rig.ask('/healthz', { token: undefined });
  assert.deepEqual([health.status, health.body], [200, { status: 'ok' }]);
  assert.equal((await rig.ask('/healthz', { method: 'POST' })).status, 405);
});

it('S11 a sixth wrong token within a minute is refused for that; the right one opens all the while', async (t) => {
  const rig = await adminRig(t);
  for (let i = 0; i < 5; i++) {
    assert.equal((await rig.ask('/api/status', { token: `guess ${i}` })).status, 401);
  }
  const refused = await rig.ask('/api/status', { token: 'guess 6' });
  assert.equal(refused.status, 429);
  assert.equal(refused.headers['retry-after'], '12');
  assert.equal((await rig.ask('/api/status')).status, 200);
  assert.equal((await rig.ask('/api/status', { token: undefined })).status, 401, 'guesses nothing');
  assert.equal((await rig.ask('/api/status', { token: 'guess 7' })).status, 429);
  rig.clock.time += 12_000;
  assert.equal((await rig.ask('/api/status', { token: 'guess 8' })).status, 401);
});

it('S9 the admin token opens the admin plane and nothing of the data plane', async (t) => {
  const rig = await adminRig(t);
  assert.equal((await rig.ask('/api/status')).status, 200);
  assert.equal((await rig.ask('/api/status', { token: rig.control.reveal() })).status, 200);
  for (const token of [adminToken, rig.control.reveal()]) {
    assert.throws(() => rig.keys.authenticate(`Bearer ${token}`, undefined), {
      code: 'unauthenticated',
    });
  }
});

it('S4 S7 a key is made, shown once, listed without its secret, and revoked', async (t) => {
  const rig = await adminRig(t);
  const body = {
    name: 'ci',
    models: ['openai/*', 'local/tiny'],
    endpoints: ['chat'],
    team: 'red',
    expires_in: '30d',
  };
  const made = await rig.ask('/api/keys', { method: 'POST', body });
  assert.equal(made.status, 201);
  const id = textOf(made.body, 'id');
  const key = textOf(made.body, 'key');
  const expected = {
    id,
    name: 'ci',
    state: 'active',
    source: 'store',
    models: ['openai/*', 'local/tiny'],
    endpoints: ['chat'],
    team: 'red',
    owner: null,
    tags: [],
    cidrs: [],
    strict: false,
    cache: null,
    log_content: false,
    shrink: true,
    rpm: null,
    tpm: null,
    concurrent: null,
    limits: [],
    budgets: [],
    created_at: new Date(rig.clock.wall()).toISOString(),
    expires_at: new Date(rig.clock.wall() + 30 * day).toISOString(),
    revoked_at: null,
    last_used_at: new Date(rig.clock.wall()).toISOString(),
    previous: [],
    previous_used_at: null,
  };
  assert.deepEqual(made.body, { ...expected, last_used_at: null, key });
  assert.equal(rig.keys.authenticate(`Bearer ${key}`, undefined).keyId, id);

  const one = await rig.ask(`/api/keys/${id}`);
  assert.deepEqual([one.status, one.body], [200, expected]);
  const all = await rig.ask('/api/keys');
  assert.deepEqual(all.body, { keys: [expected], next: null });
  assert.equal(all.headers['cache-control'], 'no-store');

  const revoked = await rig.ask(`/api/keys/${id}/revoke`, { method: 'POST' });
  const revoked_at = new Date(rig.clock.wall()).toISOString();
  assert.deepEqual(revoked.body, { ...expected, state: 'revoked', revoked_at });
  assert.throws(() => rig.keys.authenticate(`Bearer ${key}`, undefined));
  rig.clock.time += 5000;
  const again = await rig.ask(`/api/keys/${id}/revoke`, { method: 'POST', body: {} });
  assert.deepEqual(again.body, revoked.body);
  const everything = JSON.stringify([one, all, revoked, again]);
  assert.ok(!everything.includes(key) && !everything.includes(key.slice(12)));
});

const good: JsonObject = { name: 'a', models: ['*'] };
const bad: readonly (readonly [string, Json, string | undefined])[] = [
  ['no body', '', undefined],
  ['an array', [], undefined],
  ['no name', { models: ['*'] }, 'name'],
  ['an empty name', { ...good, name: '' }, 'name'],
  ['a long name', { ...good, name: 'n'.repeat(201) }, 'name'],
  ['a name of two lines', { ...good, name: 'a\r\nb' }, 'name'],
  ['an escape sequence', { ...good, name: '\u001b[2J' }, 'name'],
  ['a direction mark', { ...good, name: 'a\u202Eb' }, 'name'],
  ['S7 no models', { name: 'a' }, 'models'],
  ['S7 an empty list of models', { ...good, models: [] }, 'models'],
  ['models as text', { ...good, models: '*' }, 'models'],
  ['an empty model', { ...good, models: ['*', ''] }, 'models.1'],
  ['a model with a space', { ...good, models: ['a b'] }, 'models.0'],
  ['a model that is a number', { ...good, models: [1] }, 'models.0'],
  ['too many models', { ...good, models: Array.from({ length: 201 }, () => 'm') }, 'models'],
  ['an unknown endpoint', { ...good, endpoints: ['admin'] }, 'endpoints.0'],
  ['no endpoint', { ...good, endpoints: [] }, 'endpoints'],
  ['a null team', { ...good, team: null }, 'team'],
  ['a past expiry', { ...good, expires_at: '2020-01-01' }, 'expires_at'],
  ['no date', { ...good, expires_at: 'tomorrow' }, 'expires_at'],
  ['an impossible date', { ...good, expires_at: '2026-13-45' }, 'expires_at'],
  ['no span', { ...good, expires_in: '30' }, 'expires_in'],
  ['a negative span', { ...good, expires_in: '-1d' }, 'expires_in'],
  ['an endless span', { ...good, expires_in: '9999999w' }, 'expires_in'],
  ['two expiries', { ...good, expires_in: '1d', expires_at: '2030-01-01' }, 'expires_at'],
  ['B75 spent', { ...good, spent: 0 }, 'spent'],
  ['B75 role', { ...good, role: 'admin' }, 'role'],
  ['B75 id', { ...good, id: 'abcdefgh' }, 'id'],
  ['B75 digest', { ...good, digest: 'x' }, 'digest'],
  ['B75 1e308', { ...good, budget: 1e308 }, 'budget'],
];

for (const [name, body, field] of bad) {
  it(`key creation refuses ${name} and names the field`, async (t) => {
    const rig = await adminRig(t);
    const answer = await rig.ask('/api/keys', {
      method: 'POST',
      ...(body === '' ? {} : { body }),
    });
    assert.equal(answer.status, 400);
    assert.equal(errorOf(answer)['field'], field);
    assert.equal(typeof errorOf(answer)['message'], 'string');
    assert.deepEqual(rig.keys.list({ limit: 5 })?.keys, []);
  });
}

it('B75 a foreign id is 404, a strange one too', async (t) => {
  const rig = await adminRig(t);
  for (const id of ['abcdefgh', '..', '%2e%2e', `'%20OR%201=1--`, '__proto__', 'a'.repeat(65)]) {
    assert.equal((await rig.ask(`/api/keys/${id}`)).status, 404, id);
    assert.equal((await rig.ask(`/api/keys/${id}/revoke`, { method: 'POST' })).status, 404, id);
  }
});

it('answers 404 and 405 in JSON, with allow', async (t) => {
  const rig = await adminRig(t);
  for (const path of ['/api', '/api/', '/api/keys/', '/api/nothing', '/API/keys']) {
    const answer = await rig.ask(path);
    assert.equal(answer.status, 404, path);
    assert.equal(typeof errorOf(answer)['message'], 'string');
  }
  const wrong = await rig.ask('/api/keys', { method: 'DELETE' });
  assert.deepEqual([wrong.status, wrong.headers['allow']], [405, 'GET, POST']);
  assert.equal((await rig.ask('/api/reload')).headers['allow'], 'POST');
});

it('refuses bodies that are too large, of another type, or no JSON', async (t) => {
  const rig = await adminRig(t);
  const post = (raw: string, headers = {}) =>
    rig.ask('/api/keys', { method: 'POST', raw, headers });
  assert.equal((await post(`{"name":"${'x'.repeat(1_100_000)}"}`)).status, 413);
  assert.equal((await post('{"name":')).status, 400);
  assert.equal((await post('['.repeat(10_000))).status, 400);
  assert.equal((await post('{"a":'.repeat(10_000))).status, 413);
  assert.equal((await post('name=a', { 'content-type': 'text/plain' })).status, 415);
  assert.equal((await post('{}', { 'content-encoding': 'gzip' })).status, 415);
  assert.equal((await rig.ask('/api/status')).status, 200);
});

it('L5 keys are listed page by page', async (t) => {
  const rig = await adminRig(t);
  for (let i = 0; i < 5; i++) await rig.keys.create({ name: `k${i}`, models: ['*'] });
  const first = await rig.ask('/api/keys?limit=3');
  assert.equal(listOf(first.body, 'keys').length, 3);
  const second = await rig.ask(`/api/keys?limit=3&after=${textOf(first.body, 'next')}`);
  assert.deepEqual(
    listOf(second.body, 'keys').map((key) => key['name']),
    ['k3', 'k4'],
  );
  assert.equal(second.body['next'], null);
  for (const query of ['limit=0', 'limit=1001', 'limit=x', 'limit=1.5', 'after=zz', 'page=2']) {
    assert.equal((await rig.ask(`/api/keys?${query}`)).status, 400, query);
  }
});

it('models, status and reload say what they were given', async (t) => {
  let outcome: ReloadOutcome = { applied: true, problems: [] };
  const rig = await adminRig(t, { reload: async () => outcome });
  assert.deepEqual((await rig.ask('/api/models')).body, {
    models: [
      {
        id: 'local/tiny',
        targets: [{ target: 'local/tiny', health: 'healthy' }],
        max_input_tokens: null,
        max_tokens: null,
      },
    ],
    problems: [],
    next: null,
  });
  assert.deepEqual((await rig.ask('/api/status')).body, { version: '1.2.3' });
  const applied = await rig.ask('/api/reload', { method: 'POST' });
  assert.deepEqual([applied.status, applied.body], [200, { applied: true, needs_restart: [] }]);
  outcome = { applied: false, problems: ['gateway.yaml:3: unknown key'] };
  const refused = await rig.ask('/api/reload', { method: 'POST' });
  assert.equal(refused.status, 422);
  assert.match(textOf(errorOf(refused), 'message'), /gateway\.yaml:3/);
  assert.deepEqual(errorOf(refused)['problems'], outcome.problems);
});

it('a fault of ours is a 500 without its text; a store that is down is a 503', async (t) => {
  const rig = await adminRig(t, {
    status: () => {
      throw new Error('secret detail');
    },
  });
  const answer = await rig.ask('/api/status');
  assert.equal(answer.status, 500);
  assert.doesNotMatch(JSON.stringify(answer.body), /secret detail/);
  await rig.deps.store.close();
  for (const path of ['/api/usage', '/api/calls']) {
    assert.equal((await rig.ask(path)).status, 503, path);
  }
  const post = await rig.ask('/api/keys', { method: 'POST', body: good });
  assert.equal(post.status, 503);
});

it('the handler gives the same answers without HTTP', async (t) => {
  const rig = await adminRig(t);
  const handle = createAdminHandler(rig.deps);
  const made = await handle('POST', '/api/keys', { body: good });
  assert.equal(made.status, 201);
  const listed = await handle('GET', '/api/keys?limit=5');
  assert.deepEqual(listed, { status: 200, body: (await rig.ask('/api/keys')).body });
  assert.equal((await handle('PUT', '/api/keys')).allow, 'GET, POST');
});
