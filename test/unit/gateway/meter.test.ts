import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Meter } from '../../../src/gateway/meter.ts';
import { TokenEstimator } from '../../../src/gateway/token-estimator.ts';

function meter(requestBytes = 400): Meter {
  const fresh = new Meter(new TokenEstimator(), requestBytes);
  fresh.begin('p/m');
  return fresh;
}

const text = (delta: string) => ({ type: 'part-delta', index: 0, field: 'text', delta }) as const;
const finish = { type: 'finish', reason: { kind: 'stop' } } as const;

test('F56: usage is cumulative, the last report of each field wins and nothing is summed', () => {
  const counted = meter();
  counted.see({ type: 'usage', usage: { freshInputTokens: 10, outputTokens: 1 } });
  counted.see({ type: 'usage', usage: { outputTokens: 7 } });
  counted.see(finish);
  assert.deepEqual(counted.complete(), { freshInputTokens: 10, outputTokens: 7 });
  assert.equal(counted.source, 'reported');
});

test('F55: missing usage is estimated from the text, and marked', () => {
  const counted = meter(400);
  counted.see(text('x'.repeat(40)));
  counted.see(finish);
  assert.deepEqual(counted.complete(), { freshInputTokens: 100, outputTokens: 10 });
  assert.equal(counted.source, 'estimated');
});

test('F57: absurd counts are dropped, not believed', () => {
  const counted = meter(400);
  counted.see({ type: 'usage', usage: { freshInputTokens: -5, outputTokens: 1e308 } });
  counted.see(finish);
  assert.equal(counted.reported?.freshInputTokens, undefined);
  assert.equal(counted.complete().freshInputTokens, 100);
});

test('LP: a cut answer is charged for the text that was streamed', () => {
  const counted = meter();
  counted.see({ type: 'usage', usage: { freshInputTokens: 10, outputTokens: 0 } });
  counted.see(text('x'.repeat(80)));
  assert.deepEqual(counted.complete(), { freshInputTokens: 10, outputTokens: 20 });
});

test('L0: what an earlier attempt reported is forgotten', () => {
  const counted = meter();
  counted.see({ type: 'usage', usage: { freshInputTokens: 10, outputTokens: 3 } });
  counted.begin('q/m');
  assert.equal(counted.reported, undefined);
});

test('the estimator learns bytes per token from reports, per model', () => {
  const estimator = new TokenEstimator();
  for (let i = 0; i < 50; i++) estimator.learn('a', 'input', { bytes: 2000, tokens: 1000 });
  assert.ok(estimator.input('a', 2000) > 900);
  assert.equal(estimator.input('b', 2000), 500);
});
