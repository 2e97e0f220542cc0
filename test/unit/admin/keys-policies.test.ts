import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { adminRig, errorOf, listOf, textOf, type Answer, type Rig } from './admin-rig.ts';

const day = 86_400_000;

async function make(rig: Rig, body: JsonObject = {}): Promise<JsonObject> {
  const made = await rig.ask('/api/keys', {
    method: 'POST',
    body: { name: 'a', models: ['*'], ...body },
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  return made.body;
}

function patch(rig: Rig, id: string, body: JsonObject): Promise<Answer> {
  return rig.ask(`/api/keys/${id}`, { method: 'PATCH', body });
}

const whole = {
  owner: 'Ada',
  tags: ['nightly'],
  cidrs: ['10.0.0.0/8'],
  cache: 'auto',
  shrink: false,
  rpm: 60,
  concurrent: 5,
  limits: [{ kind: 'tokens', amount: 1000, model: 'x/*' }],
  budget: '0.30',
  per: 'day',
  time_zone: 'Europe/Berlin',
  budgets: [{ usd: 20, per: 'month' }],
};

it('S7 a key is made with limits and budgets, and shows them', async (t) => {
  const rig = await adminRig(t);
  const made = await make(rig, whole);
  assert.deepEqual(made['limits'], [
    { kind: 'concurrent', amount: 5, model: null },
    { kind: 'requests', amount: 60, model: null },
    { kind: 'tokens', amount: 1000, model: 'x/*' },
  ]);
  assert.deepEqual([made['rpm'], made['tpm'], made['concurrent']], [60, null, 5]);
  assert.deepEqual(made['budgets'], [
    { usd: '0.3', per: 'day', time_zone: 'Europe/Berlin' },
    { usd: '20', per: 'month', time_zone: 'Europe/Berlin' },
  ]);
  const principal = rig.keys.authenticate(undefined, textOf(made, 'key'));
  const [held] = principal.policies();
  assert.equal(held?.policy.budgets[0]?.nanodollars, 300_000_000);
  assert.deepEqual(
    [principal.shrink, principal.cache, principal.anywhere, principal.tags],
    [false, 'auto', false, ['nightly']],
  );
});

it('PATCH: what is absent stays, null takes away', async (t) => {
  const rig = await adminRig(t);
  const id = textOf(await make(rig, { ...whole, team: 'red', expires_in: '1d' }), 'id');
  const before = (await rig.ask(`/api/keys/${id}`)).body;
  const same = await patch(rig, id, { name: 'b' });
  assert.deepEqual({ ...same.body, name: 'a', budgets: 0 }, { ...before, budgets: 0 });
  const changed = await patch(rig, id, {
    team: null,
    owner: null,
    tags: null,
    cidrs: null,
    cache: null,
    shrink: null,
    expires_at: null,
    rpm: null,
    budget: null,
    per: 'day',
  });
  assert.deepEqual(
    ['team', 'owner', 'tags', 'cidrs', 'cache', 'shrink', 'expires_at', 'rpm', 'concurrent'].map(
      (name) => changed.body[name],
    ),
    [null, null, [], [], null, true, null, null, 5],
  );
  assert.deepEqual(
    listOf(changed.body, 'budgets').map(({ per }) => per),
    ['month'],
  );
  assert.equal((await patch(rig, 'nobody00', { name: 'x' })).status, 404);
});

const wrong: readonly (readonly [JsonObject, string])[] = [
  [{ name: null }, 'name'],
  [{ models: [] }, 'models'],
  [{ models: null }, 'models'],
  [{ budget: 5 }, 'per'],
  [{ budget: -1, per: 'day' }, 'budget'],
  [{ budget: 9e-10, per: 'day' }, 'budget'],
  [{ budget: 1e-300, per: 'day' }, 'budget'],
  [{ budgets: [{ usd: '$0.0000000001', per: 'day' }] }, 'budgets.0.usd'],
  [{ rpm: 0 }, 'rpm'],
  [{ rpm: '60' }, 'rpm'],
  [{ cidrs: ['10.0.0.1/8'] }, 'cidrs.0'],
  [{ expires_at: '2020-01-01' }, 'expires_at'],
  [{ digest: 'x' }, 'digest'],
  [{ id: 'abcdefgh' }, 'id'],
  [{ revoked_at: null }, 'revoked_at'],
  [{ spent: 0 }, 'spent'],
];

for (const [body, field] of wrong) {
  it(`B75 a change refuses ${JSON.stringify(body)} and names the field`, async (t) => {
    const rig = await adminRig(t);
    const id = textOf(await make(rig), 'id');
    const answer = await patch(rig, id, body);
    assert.equal(answer.status, 400);
    assert.equal(errorOf(answer)['field'], field);
  });
}

it('S5 rotate: a new secret under the same id, the old one for a while, both with last use', async (t) => {
  const rig = await adminRig(t);
  const made = await make(rig);
  const id = textOf(made, 'id');
  rig.keys.authenticate(undefined, textOf(made, 'key'));
  const usedAt = new Date(rig.clock.wall()).toISOString();
  rig.clock.time += 1000;
  const now = rig.clock.wall();
  const rotated = await rig.ask(`/api/keys/${id}/rotate`, { method: 'POST' });
  assert.equal(rotated.status, 200);
  assert.equal(rotated.body['id'], id);
  assert.deepEqual(
    [rotated.body['previous'], rotated.body['last_used_at'], rotated.body['previous_used_at']],
    [
      [
        {
          replaced_at: new Date(now).toISOString(),
          valid_until: new Date(now + day).toISOString(),
        },
      ],
      null,
      usedAt,
    ],
  );
  for (const answer of [made, rotated.body]) {
    assert.equal(rig.keys.authenticate(undefined, textOf(answer, 'key')).keyId, id);
  }
  const shown = await rig.ask(`/api/keys/${id}`);
  assert.ok(!JSON.stringify(shown.body).includes(textOf(rotated.body, 'key')));
  assert.equal(shown.body['last_used_at'], new Date(now).toISOString());
  for (const overlap of ['8d', '-1h', 'soon', 5]) {
    const bad = await rig.ask(`/api/keys/${id}/rotate`, { method: 'POST', body: { overlap } });
    assert.deepEqual([bad.status, errorOf(bad)['field']], [400, 'overlap'], String(overlap));
  }
  const last = await rig.ask(`/api/keys/${id}/rotate`, { method: 'POST', body: { overlap: '0' } });
  assert.deepEqual(last.body['previous'], []);
  assert.throws(() => rig.keys.authenticate(undefined, textOf(rotated.body, 'key')));
});

it('keys of the config are listed, and cannot be changed here', async (t) => {
  const rig = await adminRig(t);
  rig.keys.declare([{ id: 'ci', name: 'ci', digests: ['ab'.repeat(32)], models: ['*'] }]);
  const shown = await rig.ask('/api/keys/ci');
  assert.equal(shown.body['source'], 'config');
  assert.ok(!JSON.stringify(shown.body).includes('abab'));
  for (const answer of [
    await patch(rig, 'ci', { name: 'x' }),
    await rig.ask('/api/keys/ci/rotate', { method: 'POST' }),
    await rig.ask('/api/keys/ci/revoke', { method: 'POST' }),
  ]) {
    assert.equal(answer.status, 400);
    assert.match(textOf(errorOf(answer), 'message'), /declared in the config/);
  }
});

for (const kind of ['team', 'tag'] as const) {
  it(`${kind}s are set as a whole, listed by name page by page, and taken away`, async (t) => {
    const rig = await adminRig(t);
    const path = `/api/${kind}s`;
    for (const name of ['c', 'a', 'b']) {
      const put = await rig.ask(`${path}/${name}`, { method: 'PUT', body: { rpm: 5, tpm: 50 } });
      assert.equal(put.status, 200);
    }
    const again = await rig.ask(`${path}/a`, {
      method: 'PUT',
      body: { budget: 10, per: 'week' },
    });
    assert.deepEqual([again.body['name'], again.body['rpm']], ['a', null]);
    assert.equal(listOf(again.body, 'budgets')[0]?.['spent_usd'], '0');
    const first = await rig.ask(`${path}?limit=2`);
    const second = await rig.ask(`${path}?limit=2&after=${textOf(first.body, 'next')}`);
    assert.deepEqual(
      [...listOf(first.body, `${kind}s`), ...listOf(second.body, `${kind}s`)].map(
        ({ name }) => name,
      ),
      ['a', 'b', 'c'],
    );
    assert.equal(second.body['next'], null);
    assert.equal((await rig.ask(`${path}/b`, { method: 'DELETE' })).status, 200);
    assert.equal((await rig.ask(`${path}/b`, { method: 'DELETE' })).status, 404);
    assert.equal((await rig.ask(`${path}/b`)).status, 404);
    rig.deps.policies.declare([{ kind, name: 'a', limits: [], budgets: [] }]);
    assert.equal((await rig.ask(`${path}/a`)).body['source'], 'config');
    for (const method of ['PUT', 'DELETE']) {
      const answer = await rig.ask(`${path}/a`, {
        method,
        ...(method === 'PUT' ? { body: {} } : {}),
      });
      assert.equal(answer.status, 400, method);
    }
  });
}

it('names of teams may hold anything that one line can', async (t) => {
  const rig = await adminRig(t);
  const name = 'R & D / Zürich %41';
  const path = `/api/teams/${encodeURIComponent(name)}`;
  assert.equal((await rig.ask(path, { method: 'PUT', body: { rpm: 1 } })).body['name'], name);
  assert.equal((await rig.ask(path)).body['rpm'], 1);
  assert.equal((await rig.ask('/api/teams/a%0Ab', { method: 'PUT', body: {} })).status, 400);
  assert.equal((await rig.ask('/api/teams/%E0%A4%A', { method: 'PUT', body: {} })).status, 404);
  assert.equal((await rig.ask('/api/tags/a%2Cb', { method: 'PUT', body: {} })).status, 400);
});

it('what a budget has spent is reported with its window', async (t) => {
  const rig = await adminRig(t);
  const { store, clock } = rig.deps;
  const id = textOf(await make(rig, { budget: 1, per: 'month' }), 'id');
  const counter = `key:${id}:month`;
  await store.calls.record([
    {
      id: 'c1',
      startedAt: clock.wall(),
      keyId: id,
      tags: [],
      endpoint: 'openai-chat',
      model: 'm',
      stream: false,
      outcome: 'ok',
      attempts: 1,
      attemptRows: [],
      charged: {},
      usageSource: 'reported',
      cost: {
        total: 250_000_000,
        input: 250_000_000,
        cacheRead: 0,
        cacheWrite: 0,
        output: 0,
        reasoning: 0,
        call: 0,
      },
      budgets: [{ counter, window: '2026-03', endsAt: Date.UTC(2026, 3, 1) }],
      totalMs: 1,
    },
  ]);
  const [budget] = listOf((await rig.ask(`/api/keys/${id}`)).body, 'budgets');
  assert.deepEqual(budget, {
    usd: '1',
    per: 'month',
    time_zone: 'UTC',
    window: '2026-03',
    starts_at: '2026-03-01T00:00:00.000Z',
    ends_at: '2026-04-01T00:00:00.000Z',
    spent_usd: '0.25',
  });
});

it('B64 a name that is no text (a lone surrogate) is refused: stores would keep another', async (t) => {
  const rig = await adminRig(t);
  const raw = String.raw`{"name":"a\ud800","models":["*"]}`;
  assert.equal((await rig.ask('/api/keys', { method: 'POST', raw })).status, 400);
});
