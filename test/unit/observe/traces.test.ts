/** issue 8.3: trace context and the queue of spans. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assert as check, oneof, property, string, stringMatching } from 'fast-check';
import type { SpanData } from '../../../src/core/call.ts';
import {
  beginTrace,
  newHex,
  readParent,
  SpanQueue,
  type SpanSender,
} from '../../../src/observe/traces/tracer.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';
const all = { ratio: 1, followsParent: true } as const;

test('W3C a valid traceparent is read, of a later version as well', () => {
  const parent = { traceId, spanId, flags: 1 };
  assert.deepEqual(readParent(`00-${traceId}-${spanId}-01`), parent);
  assert.deepEqual(readParent(`cc-${traceId}-${spanId}-01-what-is-to-come`), parent);
  assert.deepEqual(readParent(`cc-${traceId}-${spanId}-01`), parent);
});

test('W3C an invalid traceparent begins a trace of its own', () => {
  for (const text of [
    undefined,
    '',
    'x',
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${traceId}-${spanId}-1`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-zz`,
    ` 00-${traceId}-${spanId}-01`,
  ]) {
    assert.equal(readParent(text), undefined, String(text));
    const trace = beginTrace(all, newHex, { parent: text, state: 'a=1' });
    assert.notEqual(trace.traceId, traceId);
    assert.deepEqual([trace.parentId, trace.state], [undefined, undefined]);
  }
});

test('W3C no text makes the reader fail, and what it reads has the form', () => {
  check(
    property(oneof(string(), stringMatching(/^[0-9a-f-]{0,60}$/)), (text) => {
      const parent = readParent(text);
      assert.ok(parent === undefined || /^[0-9a-f]{32}$/.test(parent.traceId));
    }),
  );
});

test("W3C the client's sampled flag decides, or the share where it is not followed", () => {
  const headers = (flags: string): { parent: string; state: undefined } => ({
    parent: `00-${traceId}-${spanId}-${flags}`,
    state: undefined,
  });
  assert.equal(beginTrace({ ...all, ratio: 0 }, newHex, headers('01')).sampled, true);
  assert.equal(beginTrace(all, newHex, headers('00')).sampled, false);
  const stranger = beginTrace({ ratio: 0, followsParent: false }, newHex, headers('01'));
  assert.deepEqual([stranger.sampled, stranger.traceId === traceId], [false, false]);
});

test('W3C a tracestate that is none is left behind, the trace continues', () => {
  const parent = `00-${traceId}-${spanId}-01`;
  for (const state of ['a=\u0001', 'x'.repeat(513), Array(33).fill('a=1').join(','), '']) {
    const trace = beginTrace(all, newHex, { parent, state });
    assert.deepEqual([trace.traceId, trace.state], [traceId, undefined]);
    assert.equal(trace.headers('b'.repeat(16)).length, 2);
  }
});

test('issue 8.3 about as many traces are sampled as the share says, by the id alone', () => {
  const none = { parent: undefined, state: undefined };
  let sampled = 0;
  for (let i = 0; i < 4000; i++) {
    // Evenly spread in the last 56 bits, which decide.
    const id = Math.floor((i / 4000) * 2 ** 48)
      .toString(16)
      .padStart(12, '0');
    const trace = beginTrace(
      { ratio: 0.25, followsParent: true },
      (n) => `${'a'.repeat(n - 14)}${id}00`,
      none,
    );
    if (trace.sampled) sampled += 1;
  }
  assert.equal(sampled, 1000);
});

function span(): SpanData {
  const trace = beginTrace(all, newHex, { parent: undefined, state: undefined });
  return {
    name: 'chat m',
    kind: 'server',
    trace,
    spanId: trace.spanId,
    startedAt: 1,
    endedAt: 2,
    attributes: {},
    events: [],
  };
}

interface Blocked {
  readonly sender: SpanSender;
  readonly batches: (readonly SpanData[])[];
  free(problem?: string): void;
}

function blocked(): Blocked {
  const batches: (readonly SpanData[])[] = [];
  let waiting: ((problem: string | undefined) => void)[] = [];
  return {
    batches,
    free: (problem) => {
      const now = waiting;
      waiting = [];
      for (const answer of now) answer(problem);
    },
    sender: {
      send: (spans) => {
        batches.push(spans);
        return new Promise((resolve) => waiting.push(resolve));
      },
      close: () => undefined,
    },
  };
}

test('F95 behind a collector that takes nothing no more than 2048 spans wait; the others are counted and told', async () => {
  const { sender, batches, free } = blocked();
  const told: unknown[] = [];
  const log = { warn: (event: string, fields: unknown) => void told.push([event, fields]) };
  let now = 0;
  const queue = new SpanQueue({ sender, log, now: () => now, sendEveryMs: 1e6 });
  for (let i = 0; i < 128 + 2048 + 300; i++) queue.add(span());
  assert.equal(batches.length, 1);
  assert.equal(batches[0]?.length, 128);
  assert.equal(queue.length, 2048);
  assert.equal(queue.dropped, 300);
  assert.equal(told.length, 1, 'once, not 300 times');
  now = 60_001;
  queue.add(span());
  assert.deepEqual(told[1], [
    'spans_dropped',
    { count: 300, reason: 'the collector is too slow: too many spans wait' },
  ]);
  const closing = queue.close(10);
  await closing;
  assert.equal(queue.dropped, 301 + 2048 + 128);
  free();
  await Promise.resolve();
  assert.equal(batches.length, 1, 'nothing is sent behind the end');
});

test('F95 what does not arrive is counted, and the next batch is sent nevertheless', async () => {
  const { sender, batches, free } = blocked();
  const log = { warn: () => undefined };
  const queue = new SpanQueue({ sender, log, now: () => 0, sendEveryMs: 1e6 });
  for (let i = 0; i < 200; i++) queue.add(span());
  free('connect ECONNREFUSED');
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([batches.length, queue.failed], [2, 128]);
  free();
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([queue.sent, queue.failed, queue.dropped, queue.length], [72, 128, 0, 0]);
});

test('F95 a span that comes in the moment in which the last batch is done is sent, too', async () => {
  for (let turns = 0; turns < 8; turns++) {
    const { sender, batches, free } = blocked();
    const log = { warn: () => undefined };
    const queue = new SpanQueue({ sender, log, now: () => 0, sendEveryMs: 1 });
    for (let i = 0; i < 128; i++) queue.add(span());
    free();
    for (let i = 0; i < turns; i++) await Promise.resolve();
    queue.add(span());
    while (batches.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    free();
    await queue.close(1000);
    assert.deepEqual([queue.sent, queue.dropped], [129, 0]);
  }
});

test('issue 8.3 ids are random hex, and never all zeros', () => {
  const seen = new Set(Array.from({ length: 2000 }, () => newHex(16)));
  assert.equal(seen.size, 2000);
  for (const id of seen) assert.match(id, /^[0-9a-f]{16}$/);
});

test('F95 prompts and answers that wait are bounded by their length, and go a mebibyte at a time', async () => {
  const { sender, batches, free } = blocked();
  const log = { warn: () => undefined };
  const queue = new SpanQueue({ sender, log, now: () => 0, sendEveryMs: 1e6 });
  const mebi = 1024 * 1024;
  const long = (contentLength: number): void => queue.add({ ...span(), contentLength });
  long(mebi);
  assert.equal(batches.length, 1, 'it waits for no others');
  long(30 * mebi);
  for (let i = 0; i < 4; i++) long(mebi / 2);
  assert.deepEqual([queue.length, queue.dropped], [5, 0]);
  long(1);
  assert.deepEqual([queue.length, queue.dropped], [5, 1], 'no room');
  queue.add(span());
  assert.equal(queue.length, 6, 'spans without content have theirs');
  for (let i = 0; i < 3; i++) {
    free();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.deepEqual(
    batches.map(({ length }) => length),
    [1, 1, 2, 3],
  );
  long(20 * mebi);
  assert.equal(queue.dropped, 1, 'there is room again');
});

test('issue 8.3 content is told of sampled calls alone, and of none unless asked for', () => {
  const content = { ...all, content: true };
  const nothing = { parent: undefined, state: undefined };
  assert.equal(beginTrace(content, newHex, nothing).content, true);
  assert.equal(beginTrace(all, newHex, nothing).content, false);
  assert.equal(beginTrace({ ...content, ratio: 0 }, newHex, nothing).content, false);
  const unsampled = { parent: `00-${traceId}-${spanId}-00`, state: undefined };
  assert.equal(beginTrace(content, newHex, unsampled).content, false);
});
