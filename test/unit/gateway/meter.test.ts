import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Meter } from '../../../src/gateway/answer/meter.ts';
import { TokenEstimator } from '../../../src/gateway/call-size.ts';

/** A prompt that is told as 100 tokens as long as nothing was learned. */
function meter(): Meter {
  return new Meter(new TokenEstimator(), 'p/m', () => 95);
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
  const counted = meter();
  counted.see(text('x'.repeat(40)));
  counted.see(finish);
  assert.deepEqual(counted.complete(), { freshInputTokens: 100, outputTokens: 10 });
  assert.equal(counted.source, 'estimated');
});

test('F57: absurd counts are dropped, not believed', () => {
  const counted = meter();
  const usage = { freshInputTokens: -5, outputTokens: 1e308, webSearches: 1e10 };
  counted.see({ type: 'usage', usage });
  counted.see(finish);
  assert.equal(counted.reported?.freshInputTokens, undefined);
  assert.equal(counted.complete().freshInputTokens, 100);
  assert.equal(counted.complete().webSearches, undefined);
});

test('F57: a prompt that was reported does not become empty by a later report, which is flagged', () => {
  const counted = meter();
  counted.see({ type: 'usage', usage: { freshInputTokens: 70, cacheReadTokens: 30 } });
  const last = { freshInputTokens: 0, cacheReadTokens: 0, outputTokens: 7 };
  counted.see({ type: 'usage', usage: last });
  counted.see(finish);
  const whole = { freshInputTokens: 70, cacheReadTokens: 30, outputTokens: 7 };
  assert.deepEqual(counted.complete(), whole);
  assert.equal(counted.source, 'reported');
  // The client is told the whole as well.
  assert.deepEqual(counted.gap, whole);
  assert.equal(counted.suspect, true);
});

test('F57: more reasoning than output is flagged, and charged as the output that there was', () => {
  const counted = meter();
  const usage = { freshInputTokens: 9, outputTokens: 10, reasoningTokens: 300 };
  counted.see({ type: 'usage', usage });
  counted.see(finish);
  assert.equal(counted.suspect, true);
  assert.deepEqual(counted.reported, usage);
  assert.deepEqual(counted.complete(), { ...usage, reasoningTokens: 10 });
});

test('LP: a cut answer is charged for the text that was streamed', () => {
  const counted = meter();
  counted.see({ type: 'usage', usage: { freshInputTokens: 10, outputTokens: 0 } });
  counted.see(text('x'.repeat(80)));
  assert.deepEqual(counted.complete(), { freshInputTokens: 10, outputTokens: 20 });
});

test('F5 the estimator learns from reports, per model; a count keeps the high-water mark', () => {
  const estimator = new TokenEstimator();
  for (let i = 0; i < 50; i++) estimator.learnPrompt('a', { guess: 1000, tokens: 500 });
  estimator.learnPrompt('a', { guess: 1000, tokens: 1500 });
  for (let i = 0; i < 5; i++) estimator.learnPrompt('a', { guess: 1000, tokens: 500 });
  assert.ok(estimator.prompt('a', 1000) < 700);
  assert.ok(estimator.promptAtMost('a', 1000) > 1350);
  assert.equal(estimator.prompt('b', 1000), 1050);
  assert.equal(estimator.prompt('b', 0), 1);
});

test('the guess of a prompt is made when it is needed, and for the first lessons', () => {
  const estimator = new TokenEstimator();
  let guesses = 0;
  for (let i = 0; i < 20; i++) {
    const counted = new Meter(estimator, 'p/m', () => {
      guesses += 1;
      return 100;
    });
    counted.see({ type: 'usage', usage: { freshInputTokens: 100, outputTokens: 20 } });
    counted.see(finish);
    counted.learn();
  }
  assert.equal(guesses, 8);
  const gap = new Meter(estimator, 'p/m', () => 100);
  assert.ok(gap.promptEstimate >= 100);
});

test('F81 the record of a running call takes a rough guess, and the true one where it was made', () => {
  let guesses = 0;
  const guess = (): number => {
    guesses += 1;
    return 95;
  };
  const counted = new Meter(new TokenEstimator(), 'p/m', guess, () => 190);
  assert.deepEqual([counted.soFar().freshInputTokens, guesses], [200, 0]);
  assert.deepEqual([counted.complete().freshInputTokens, guesses], [100, 1]);
  assert.deepEqual([counted.soFar().freshInputTokens, guesses], [100, 1]);
  counted.see({ type: 'usage', usage: { freshInputTokens: 10 } });
  assert.equal(counted.soFar().freshInputTokens, 10);
});

test('no guess is made for a report that is too small to teach', () => {
  const estimator = new TokenEstimator();
  const counted = new Meter(estimator, 'p/m', () => assert.fail('guessed'));
  counted.see({ type: 'usage', usage: { freshInputTokens: 15, outputTokens: 20 } });
  counted.see(finish);
  counted.learn();
});
