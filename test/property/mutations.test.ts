/**
 * Recorded answers with one thing wrong: what comes out is a legal stream with all that the upstream
 * said, or a proper error. Never a crash, never a half answer that looks whole.
 */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { GatewayError } from '../../src/core/errors.ts';
import type { GenerationEvent } from '../../src/core/generation.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import {
  recordedDocuments,
  recordedStreams,
  whyOmitted,
  type RecordedStream,
} from '../recordings/recorded.ts';
import {
  assertErrorBody,
  assertFailedStream,
  assertLegalRelay,
  assertLegalStream,
} from '../support/legality.ts';
import {
  dialects,
  listAt,
  objectAt,
  readDocument,
  readStream,
  textAt,
  type Dialect,
  type Seen,
} from '../support/reading.ts';
import { check } from './checking.ts';
import { answerContext, halves, readEvents, writeStream } from './dialect-halves.ts';
import { framesIn } from './frames.ts';
import { odd, spoil, way } from './spoil.ts';

/** Long recordings add time and no cases: their deltas are all alike. */
const longest = 400;
const streams = recordedStreams(dialects).filter(
  ({ name, events }) => events.length < longest && name !== 'spliced-message-start',
);
const documents = recordedDocuments(dialects).filter(({ body }) => body['error'] === undefined);

type Mutation =
  | { readonly kind: 'drop' | 'duplicate' | 'truncate'; readonly at: number }
  | { readonly kind: 'swap'; readonly at: number; readonly with: number };

/** So many cases meet more than twenty of each ending: a quarter are failures. */
const enough = 150;
const place = fc.nat({ max: 10_000 });
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constantFrom('drop', 'duplicate', 'truncate'), at: place }),
  fc.record({ kind: fc.constant('swap'), at: place, with: place }),
);

function mutated(events: readonly JsonObject[], change: Mutation): readonly JsonObject[] {
  const at = change.at % events.length;
  const event = events[at] ?? {};
  switch (change.kind) {
    case 'drop':
      return events.toSpliced(at, 1);
    case 'duplicate':
      return events.toSpliced(at, 0, event);
    case 'truncate':
      return events.slice(0, at);
    case 'swap': {
      const other = change.with % events.length;
      return events.with(at, events[other] ?? {}).with(other, event);
    }
    default:
      return change satisfies never;
  }
}

function textOf(upstream: Dialect, events: readonly JsonObject[]): string {
  return events
    .map((event) => {
      const data = JSON.stringify(event);
      return upstream === 'chat'
        ? `data: ${data}\n\n`
        : `event: ${textAt(event, 'type')}\ndata: ${data}\n\n`;
    })
    .join('');
}

/** Whether the upstream sent a finish reason, found without the gateway's reader. */
function tellsFinish(upstream: Dialect, events: readonly JsonObject[]): boolean {
  return events.some((event) =>
    upstream === 'chat'
      ? listAt(event, 'choices').some((choice) => typeof choice['finish_reason'] === 'string')
      : typeof objectAt(event, 'delta')['stop_reason'] === 'string',
  );
}

interface Answered {
  readonly text: string;
  readonly failed: boolean;
}

/** What the gateway answers, as it would on a socket. */
function answer(upstream: Dialect, client: Dialect, text: string): Answered {
  let events: readonly GenerationEvent[] = [];
  let failure: GatewayError | undefined;
  let written = '';
  try {
    events = readEvents(halves[upstream], framesIn(Buffer.from(text), []));
    const last = events.at(-1);
    if (last?.type === 'error') failure = last.error;
    else written = writeStream(halves[client], events);
  } catch (error) {
    assert.ok(error instanceof GatewayError, error instanceof Error ? error.stack : String(error));
    assert.notEqual(error.code, 'internal');
    failure = error;
  }
  if (failure === undefined) return { text: written, failed: false };
  const begun = writeBegun(client, events);
  const frame = halves[client].client.writeStreamError(failure, 'req_1');
  return { text: begun + frame, failed: true };
}

/** What was written before the failure. */
function writeBegun(client: Dialect, events: readonly GenerationEvent[]): string {
  const writer = halves[client].client.streamWriter(answerContext());
  let text = '';
  for (const event of events) {
    if (event.type === 'error' || event.type === 'finish') break;
    text += writer.write(event);
  }
  return text;
}

function assertProper(client: Dialect, { text, failed }: Answered): void {
  if (failed) assertFailedStream(client, text);
  else assertLegalStream(client, text, true);
}

/** The upstream's stream is one that a client could read as it is, and could act on. */
function isLegal(upstream: Dialect, text: string): boolean {
  try {
    assertLegalRelay(upstream, upstream === 'chat' ? `${text}data: [DONE]\n\n` : text, true);
    return readStream(upstream, text).calls.every((call) => isObject(call.arguments));
  } catch {
    return false;
  }
}

function content({ text, reasoning, calls, finish }: Seen): unknown {
  return { text, reasoning: reasoning.replaceAll('\n\n', ''), calls, finish };
}

function pick(at: number): RecordedStream<Dialect> {
  const recorded = streams[at % streams.length];
  assert.ok(recorded !== undefined);
  return recorded;
}

for (const client of dialects) {
  describe(`recordings with a fault, ${client} client`, { skip: whyOmitted ?? false }, () => {
    test('C3 E4 events dropped, doubled, swapped, cut off', (context) => {
      let equal = 0;
      let failures = 0;
      const holds = ([at, change]: [number, Mutation]): void => {
        const { upstream, events } = pick(at);
        const changed = mutated(events, change);
        const text = textOf(upstream, changed);
        const answered = answer(upstream, client, text);
        assertProper(client, answered);
        if (answered.failed) failures += 1;
        if (!tellsFinish(upstream, changed))
          assert.ok(answered.failed, 'E4: no finish, no success');
        if (!isLegal(upstream, text)) return;
        assert.ok(!answered.failed, `a legal stream is served: ${answered.text.slice(-300)}`);
        assert.deepEqual(
          content(readStream(client, answered.text)),
          content(readStream(upstream, text)),
        );
        equal += 1;
      };
      check(context, fc.tuple(place, mutation), holds, enough);
      assert.ok(equal > 20 && failures > 20, `${equal} legal, ${failures} failures`);
    });

    test('fields of other types, null fields', (context) => {
      check(context, fc.tuple(place, place, way, odd), ([at, which, steps, value]) => {
        const { upstream, events } = pick(at);
        const spoiled = spoil(events[which % events.length], steps, value);
        if (!isObject(spoiled)) return;
        const changed = events.with(which % events.length, spoiled);
        const answered = answer(upstream, client, textOf(upstream, changed));
        assertProper(client, answered);
        if (!tellsFinish(upstream, changed))
          assert.ok(answered.failed, 'E4: no finish, no success');
      });
    });

    test('documents with fields of other types', (context) => {
      check(context, fc.tuple(place, way, odd), ([at, steps, value]) => {
        const { upstream, body } = documents[at % documents.length] ?? {
          upstream: 'chat',
          body: {},
        };
        const spoiled = spoil(body, steps, value);
        if (isObject(spoiled)) assertDocument(client, upstream, spoiled);
      });
    });
  });
}

/** A whole answer in the client's form, or an error with its own body. */
function assertDocument(client: Dialect, upstream: Dialect, body: JsonObject): void {
  try {
    const whole = halves[upstream].upstream.readResponse(body, halves[upstream].traits);
    const written = halves[client].client.writeResponse(whole, answerContext());
    const seen = readDocument(client, tryParseObject(JSON.stringify(written)) ?? {});
    assert.match(
      seen.finish,
      /^(stop|length|tools|filter|pause_turn|model_context_window_exceeded|compaction)$/,
    );
    assert.ok(
      seen.calls.every((call) => call.name !== '' && call.id !== ''),
      'B6',
    );
    if (seen.finish === 'tools') assert.ok(seen.calls.length > 0, 'B11');
    if (seen.finish === 'stop') assert.equal(seen.calls.length, 0, 'B11');
  } catch (error) {
    assert.ok(error instanceof GatewayError, error instanceof Error ? error.stack : String(error));
    assert.notEqual(error.code, 'internal');
    const { status, body: told } = halves[client].client.writeError(error, 'req_1');
    assert.ok(status >= 400);
    assertErrorBody(client, told);
  }
}
