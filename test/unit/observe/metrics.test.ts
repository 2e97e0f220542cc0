/** issue 8 point 2: what is counted, at the edges that no call of an ordinary provider reaches. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Capped, Histogram } from '../../../src/observe/metrics/family.ts';
import { CallMetrics } from '../../../src/observe/metrics/call-metrics.ts';
import type { CallRow } from '../../../src/store/calls.ts';

function row(id: string, outputTokens: number): CallRow {
  return {
    id,
    startedAt: 1000,
    keyId: 'key_1',
    tags: [],
    endpoint: 'openai-chat',
    model: 'fast',
    provider: 'up',
    upstreamModel: 'real',
    stream: true,
    outcome: 'ok',
    status: 200,
    attempts: 1,
    attemptRows: [],
    charged: { freshInputTokens: 1, outputTokens },
    usageSource: 'reported',
    budgets: [],
    firstEventMs: 10,
    totalMs: 30,
  };
}

function counted(metrics: CallMetrics, name: string): { count: number; sum: number } {
  const family = metrics.families().find((each) => each.name === name);
  assert.ok(family?.type === 'histogram');
  const all = family.samples.map(({ data }) => ({
    count: data.counts.reduce((sum, count) => sum + count, 0),
    sum: data.sum,
  }));
  return all[0] ?? { count: 0, sum: 0 };
}

const pace = 'gen_ai_server_time_per_output_token_seconds';

test('issue 8 an answer of one token, or none, has no time per further token', () => {
  const metrics = new CallMetrics({ isDeclared: () => true });
  metrics.called(row('req_0', 0));
  metrics.called(row('req_1', 1));
  assert.deepEqual(counted(metrics, pace), { count: 0, sum: 0 });
  assert.equal(counted(metrics, 'gen_ai_server_time_to_first_token_seconds').count, 2);
  metrics.called(row('req_2', 3));
  assert.deepEqual(counted(metrics, pace), { count: 1, sum: 0.01 });
});

test('issue 8 what is as large as a bound is within it (le)', () => {
  const histogram = new Histogram([1, 2]);
  for (const value of [0.5, 1, 1.5, 2, 2.5]) histogram.observe(value);
  assert.deepEqual([...histogram.counts], [2, 2, 1]);
  assert.equal(histogram.sum, 7.5);
});

test('B49 names that are long, invisible in part, too many, or other, share one series', () => {
  const made: string[] = [];
  const capped = new Capped({ left: 2 }, (label) => {
    made.push(label);
    return { label };
  });
  const names = ['a', 'other', 'l'.repeat(129), 'a\u200b', 'a\n', 'b', 'c'];
  assert.deepEqual(
    names.map((name) => capped.of(name).label),
    ['a', 'other', 'other', 'other', 'other', 'b', 'other'],
  );
  assert.deepEqual(made, ['a', 'other', 'b'], 'each once');
  assert.equal(capped.of('d'.repeat(128)).label, 'other');
  assert.deepEqual(
    [...capped.values()].map(({ label }) => label),
    ['a', 'b', 'other'],
  );
});

test('issue 8 B49 keys and teams have series up to a number, the others share one, and no call is lost', () => {
  const metrics = new CallMetrics({ isDeclared: () => true });
  const calls = 1000;
  for (let i = 0; i < calls; i += 1) {
    metrics.called({ ...row(`req_${i}`, 3), keyId: `key_${i}`, team: `team_${i}` });
  }
  const family = metrics.families().find(({ name }) => name === 'model_gateway_key_calls');
  assert.ok(family?.type === 'counter');
  const values = (label: string): Set<string | undefined> =>
    new Set(
      family.samples.map(({ labels }) => new RegExp(`\\b${label}="(\\w*)"`).exec(labels)?.[1]),
    );
  assert.equal(values('key').size, 201);
  assert.equal(values('team').size, 101);
  assert.ok(values('key').has('other') && values('team').has('other'));
  const counted = family.samples.reduce((sum, { value }) => sum + value, 0);
  assert.equal(counted, calls);
});

test('issue 8 an exemplar names the trace where it is recorded, else the call', () => {
  const traceId = 'a'.repeat(32);
  const exemplar = (more: Partial<CallRow>): readonly string[] => {
    const metrics = new CallMetrics({ isDeclared: () => true });
    metrics.called({ ...row('req_1', 3), ...more });
    const duration = 'gen_ai_server_request_duration_seconds';
    const family = metrics.families().find(({ name }) => name === duration);
    assert.ok(family?.type === 'histogram');
    const [sample] = family.samples;
    return sample?.data.exemplars?.ids.filter((id) => id !== '') ?? [];
  };
  assert.deepEqual(exemplar({}), ['req_1']);
  assert.deepEqual(exemplar({ traceId }), ['req_1'], 'a trace that is recorded nowhere');
  assert.deepEqual(exemplar({ traceId, sampled: true }), [traceId]);
});
