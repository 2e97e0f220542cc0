/** An answer beyond what was reserved for it is cut, once, on both sides (F63, F64). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { OutputGuard } from '../../../src/gateway/answer/output-guard.ts';
import { eventsFrame } from '../../../src/gateway/answer/upstream-answer.ts';

const cap = 10;
const start: GenerationEvent = {
  type: 'part-start',
  index: 0,
  part: { type: 'text', text: '' },
};
const words = (count: number): GenerationEvent => ({
  type: 'part-delta',
  index: 0,
  field: 'text',
  delta: 'harbour light '.repeat(count),
});

function scene({ paidFor }: { readonly paidFor?: number } = {}) {
  const told: string[] = [];
  const ends: (readonly GenerationEvent[])[] = [];
  const guard = new OutputGuard({
    consumer: {
      frames: () => told.push('frames'),
      ended: () => told.push('ended'),
      failed: ({ code }) => told.push(`failed ${code}`),
      cutShort: (events) => {
        told.push('cut short');
        ends.push(events);
      },
    },
    source: {
      finished: () => false,
      cut: () => told.push('upstream cut'),
      fail: ({ code }) => told.push(`upstream failed ${code}`),
    },
    grant: {
      standings: {},
      paid: true,
      sendsCap: false,
      outputAfter: () => paidFor,
      outputOfRound: () => paidFor,
      releaseSlots: () => undefined,
    },
    cap,
    choices: 1,
    meter: {
      atMost: () => undefined,
      complete: () => ({ outputTokens: cap }),
      outputLength: 0,
      outputOf: (length) => length / 4,
    },
  });
  return { guard, told, ends };
}

test('F63 an answer far beyond its cap lets go of the upstream, and ends as one at its limit', () => {
  const { guard, told, ends } = scene();
  guard.frames([eventsFrame([start, words(2)])]);
  assert.deepEqual(told, ['frames']);
  guard.frames([eventsFrame([words(100)])]);
  assert.deepEqual(told, ['frames', 'frames', 'upstream cut', 'cut short']);
  assert.deepEqual(ends, [
    [
      { type: 'part-end', index: 0 },
      { type: 'usage', usage: { outputTokens: cap } },
      { type: 'finish', reason: { kind: 'length' } },
    ],
  ]);
});

test('F63 behind the cut nothing of the upstream is heard any more', () => {
  const { guard, told } = scene();
  guard.frames([eventsFrame([start, words(100)])]);
  const before = told.length;
  guard.frames([eventsFrame([words(1)])]);
  guard.ended([]);
  guard.failed(new GatewayError('timeout', 'late'));
  assert.equal(told.length, before);
});

test('F63 an answer that ends by itself is not cut, however long it is', () => {
  const { guard, told } = scene();
  const finish: GenerationEvent = { type: 'finish', reason: { kind: 'stop' } };
  guard.frames([eventsFrame([start, words(100), finish])]);
  guard.ended([]);
  assert.deepEqual(told, ['frames', 'ended']);
});

test('F64 where the budget has no money for more the upstream fails, and one failure is reported', () => {
  const { guard, told } = scene({ paidFor: 4 });
  guard.frames([
    eventsFrame([{ type: 'usage', usage: { freshInputTokens: 9 } }, start, words(50)]),
  ]);
  assert.deepEqual(told, ['frames', 'upstream failed budget_exhausted']);
  const spent = new GatewayError('budget_exhausted', 'spent');
  guard.failed(spent);
  guard.failed(spent);
  guard.frames([eventsFrame([words(1)])]);
  guard.ended([]);
  assert.deepEqual(told.slice(2), ['failed budget_exhausted']);
});
