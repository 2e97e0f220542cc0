import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GatewayError } from '../../../src/core/errors.ts';
import { Collector, type Generation, type GenerationEvent } from '../../../src/core/generation.ts';
import { StreamCollector, eventsFrame } from '../../../src/gateway/answer/upstream-answer.ts';

interface Seen {
  readonly collector: StreamCollector;
  readonly failures: GatewayError[];
  readonly answers: Generation[];
}

function collecting(): Seen {
  const failures: GatewayError[] = [];
  const answers: Generation[] = [];
  const collector = new StreamCollector(new Collector(), {
    complete: (generation) => answers.push(generation),
    failed: (error) => failures.push(error),
  });
  collector.frames([
    eventsFrame([{ type: 'part-start', index: 0, part: { type: 'text', text: '' } }]),
  ]);
  return { collector, failures, answers };
}

const mebibyte = 'x'.repeat(1024 * 1024);
const delta: GenerationEvent = { type: 'part-delta', index: 0, field: 'text', delta: mebibyte };

test('E3 F9 a stream that does not end is not put together without a bound', () => {
  const { collector, failures } = collecting();
  for (let i = 0; i < 70; i++) collector.frames([eventsFrame([delta])]);
  assert.deepEqual(
    failures.map(({ code, message }) => [code, message]),
    [['upstream_invalid', 'The upstream sent an answer beyond 64 MiB.']],
  );
});

test('E3 a long answer is put together', () => {
  const { collector, failures, answers } = collecting();
  for (let i = 0; i < 60; i++) collector.frames([eventsFrame([delta])]);
  collector.frames([eventsFrame([{ type: 'finish', reason: { kind: 'stop' } }])]);
  assert.equal(failures.length, 0);
  const part = answers[0]?.parts[0];
  assert.equal(part?.type === 'text' && part.text.length, 60 * mebibyte.length);
});
