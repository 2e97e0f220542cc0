import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costing } from '../../store/rows.ts';
import { callRow, day } from '../store/call-rows.ts';
import { adminRig, textOf } from './admin-rig.ts';

test('issue 24 budgets are reported by their spent part, the fullest first, in pages; old windows are not', async (t) => {
  const rig = await adminRig(t);
  const now = rig.clock.wall();
  const window = new Date(now).toISOString().slice(0, 10);
  const made = await rig.ask('/api/keys', {
    method: 'POST',
    body: { name: 'ci', models: ['*'], budget: 2, per: 'day', time_zone: 'UTC' },
  });
  const id = textOf(made.body, 'id');
  const team = { budget: 100, per: 'day', time_zone: 'UTC' };
  await rig.ask('/api/teams/research', { method: 'PUT', body: team });
  const endsAt = Date.parse(window) + day;
  const counted = [`key:${id}:day`, 'team:research:day', 'key:gone:day'];
  const budgets = counted.map((counter) => ({ counter, window, endsAt }));
  const old = { counter: `key:${id}:day`, window: '2020-01-01', endsAt: now - 1 };
  rig.ledger.record(
    callRow('c1', { startedAt: now, budgets: [...budgets, old], ...costing(1_500_000_000) }),
  );
  const { body } = await rig.ask('/api/budgets');
  const ends_at = new Date(endsAt).toISOString();
  const common = { per: 'day', spent_usd: 1.5, ends_at };
  const ofKey = { id: counted[0], holder: 'key', name: id, key_name: 'ci', usd: 2, share: 0.75 };
  const ofTeam = { id: counted[1], holder: 'team', name: 'research', usd: 100, share: 0.015 };
  assert.deepEqual(body, {
    cut: false,
    budgets: [
      { ...ofKey, ...common },
      { ...ofTeam, ...common },
    ],
    next: null,
  });
  const first = await rig.ask('/api/budgets?limit=1');
  assert.equal(first.body['next'], counted[0]);
  const rest = await rig.ask(`/api/budgets?limit=1&after=${counted[0]}`);
  assert.partialDeepStrictEqual(rest.body, { budgets: [ofTeam], next: null });
  assert.equal((await rig.ask('/api/budgets', { token: 'wrong' })).status, 401);
});

test('a key, a team and a tag that are asked for right after a call have spent it', async (t) => {
  const rig = await adminRig(t);
  const budget = { budget: 2, per: 'ever' };
  const made = await rig.ask('/api/keys', {
    method: 'POST',
    body: { name: 'ci', models: ['*'], ...budget },
  });
  await rig.ask('/api/teams/research', { method: 'PUT', body: budget });
  await rig.ask('/api/tags/nightly', { method: 'PUT', body: budget });
  const paths = [`keys/${textOf(made.body, 'id')}`, 'teams/research', 'tags/nightly'];
  for (const [i, path] of paths.entries()) {
    const counter = `${path.replace('s/', ':')}:ever`;
    const budgets = [{ counter, window: 'ever' }];
    rig.ledger.record(
      callRow(`c${i}`, { startedAt: rig.clock.wall(), budgets, ...costing(1_500_000_000) }),
    );
    const { body } = await rig.ask(`/api/${path}`);
    assert.partialDeepStrictEqual(body, { budgets: [{ spent_usd: '1.5' }] }, path);
  }
});

test('a budget of 0 with calls is full, whether they were free or it was lowered', async (t) => {
  const rig = await adminRig(t);
  const now = rig.clock.wall();
  for (const [name, cost] of [
    ['free', 0],
    ['lowered', 7],
  ] as const) {
    await rig.ask(`/api/teams/${name}`, { method: 'PUT', body: { budget: 0, per: 'ever' } });
    const budgets = [{ counter: `team:${name}:ever`, window: 'ever' }];
    rig.ledger.record(callRow(name, { startedAt: now, budgets, ...costing(cost) }));
  }
  const { body } = await rig.ask('/api/budgets');
  assert.partialDeepStrictEqual(body, {
    budgets: [
      { name: 'free', spent_usd: 0, share: 1 },
      { name: 'lowered', share: 1 },
    ],
  });
});
