/** The worst chat servers, for both clients: legal streams that say what the upstream said. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { collect, type GenerationEvent } from '../../src/core/generation.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { assertLegalStream } from '../support/legality.ts';
import {
  dialects,
  endingOf,
  readDocument,
  readStream,
  type Dialect,
  type Seen,
} from '../support/reading.ts';
import { check, checkAsync } from './checking.ts';
import { answerContext, halves, readEvents, writeStream } from './dialect-halves.ts';
import { framed, framing, type Framing } from './framing.ts';
import { framesIn } from './frames.ts';
import { judge } from './judges.ts';
import {
  assertIds,
  assertSame as assertSaid,
  oddChat,
  oddDocument,
  oddEvents,
  seenOf,
  type OddChat,
} from './odd-chat.ts';

function eventsOf(plan: OddChat, form: Framing): readonly GenerationEvent[] {
  const { bytes, places } = framed(oddEvents(plan), form);
  return readEvents(halves.chat, framesIn(bytes, places));
}

function assertSame(found: Seen, plan: OddChat, where: string): void {
  assertSaid(found, plan, where);
  assertIds(found, where);
}

for (const client of dialects) {
  describe(`odd chat servers for ${client} clients`, () => {
    test('B1 B6 B10 C1 C2 C3 E1 E3 E7 a legal stream that says the same', (context) => {
      check(context, fc.tuple(oddChat, framing), ([plan, form]) => {
        const written = writeStream(halves[client], eventsOf(plan, form));
        assertLegalStream(client, written, true);
        assertSame(readStream(client, written), plan, written);
      });
    });

    test('E11 collected, the stream is the document', (context) => {
      check(context, fc.tuple(oddChat, framing), ([plan, form]) => {
        const whole = collect(eventsOf(plan, form));
        assert.ok(whole !== undefined, 'a finish was read');
        const body = halves[client].client.writeResponse(whole, answerContext());
        assertSame(
          readDocument(client, tryParseObject(JSON.stringify(body)) ?? {}),
          plan,
          JSON.stringify(body),
        );
      });
    });

    test('F3 the same answer as a document says and counts the same', (context) => {
      check(context, oddChat, (plan) => {
        const generation = halves.chat.upstream.readResponse(oddDocument(plan), halves.chat.traits);
        const body = halves[client].client.writeResponse(generation, answerContext());
        assertSame(
          readDocument(client, tryParseObject(JSON.stringify(body)) ?? {}),
          plan,
          JSON.stringify(body),
        );
      });
    });

    test('C3 the official SDKs put the same message together', async (context) => {
      await checkAsync(context, fc.tuple(oddChat, framing), async ([plan, form]) => {
        const written = writeStream(halves[client], eventsOf(plan, form));
        for (const { name, seen } of await judge(client, written)) {
          const { reasoning: _reasoning, ...rest } = seen;
          assertSame({ ...rest, reasoning: seenOf(plan).reasoning }, plan, `${name}: ${written}`);
        }
      });
    });

    test('E4 cut before its finish: an error, whatever came', (context) => {
      check(context, fc.tuple(oddChat, framing, fc.nat()), ([plan, form, at]) => {
        const events = oddEvents(plan);
        const finishAt = events.findIndex(
          ({ data }) => typeof data !== 'string' && /"finish_reason":"/.test(JSON.stringify(data)),
        );
        const { bytes } = framed(events.slice(0, at % (finishAt + 1)), form);
        assertFails(client, readEvents(halves.chat, framesIn(bytes, [])));
      });
    });
  });
}

function assertFails(client: Dialect, events: readonly GenerationEvent[]): void {
  assert.equal(events.at(-1)?.type, 'error', JSON.stringify(events));
  assert.ok(!events.some((event) => event.type === 'finish'));
  const written = writeStream(halves[client], events.slice(0, -1));
  assert.equal(endingOf(client, written), 'none', written);
}
