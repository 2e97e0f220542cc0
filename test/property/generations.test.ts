/** Answers: whole and streamed say the same, through every writer and reader, in any split of bytes. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../src/core/errors.ts';
import {
  Collector,
  collect,
  replay,
  type Generation,
  type GenerationEvent,
} from '../../src/core/generation.ts';
import type { Part } from '../../src/core/conversation.ts';
import { tryParse } from '../../src/json/parse.ts';
import { assertLegalStream } from '../support/legality.ts';
import { truncatedInput } from '../../src/dialects/shared/request/tools.ts';
import { eventFrame } from '../../src/dialects/openai-responses/answer/lifecycle.ts';
import { isObject, textOf } from '../../src/json/value.ts';
import { allDialects, endingOf, readStream, type AnyDialect } from '../support/reading.ts';
import { generation } from './arbitraries.ts';
import { check } from './checking.ts';
import { answerContext, halves, readEvents, writeStream } from './dialect-halves.ts';
import { framesIn } from './frames.ts';

const places = fc.array(fc.nat({ max: 100_000 }), { maxLength: 12 });

/** A part without what only its dialect knows; arguments by their meaning. */
function plainPart(part: Part): unknown {
  switch (part.type) {
    case 'text':
    case 'refusal':
      return [part.type, part.text];
    case 'reasoning':
      return [part.type, part.text, part.signature];
    case 'tool-call':
      return [part.type, part.id, part.name, argumentsOf(part.argumentsJson)];
    default:
      return part;
  }
}

/** A document whose end was cut does not show whether its last call is whole: its members are the same. */
function argumentsOf(json: string): unknown {
  return tryParse(json) ?? truncatedInput(json === '' ? '{' : json);
}

/** What both sides must agree on; ids and model names belong to the call. */
function plain(found: Generation | undefined): unknown {
  if (found === undefined) return undefined;
  const { usage } = found;
  return {
    parts: found.parts.map(plainPart),
    finish: found.finish.kind,
    fresh: usage?.freshInputTokens,
    cacheRead: usage?.cacheReadTokens,
    cacheWrite: usage?.cacheWriteTokens,
    output: usage?.outputTokens,
    reasoning: usage?.reasoningTokens,
  };
}

test('collect(replay(g)) = g', (context) => {
  check(context, generation, (whole) => assert.deepEqual(collect(replay(whole)), whole));
});

test('a generation whose parts come in fragments is the same generation', (context) => {
  check(context, fc.tuple(generation, fc.nat({ max: 7 })), ([whole, size]) => {
    const collector = new Collector();
    for (const event of fragments(whole, size + 1)) collector.add(event);
    assert.deepEqual(plain(collector.result()), plain(whole));
  });
});

/** The events of a stream that sends its parts in fragments of some characters. */
function fragments(whole: Generation, size: number): readonly GenerationEvent[] {
  return replay(whole).flatMap((event): readonly GenerationEvent[] => {
    if (event.type !== 'part-start') return [event];
    const { index, part } = event;
    const cut = (value: string): readonly string[] =>
      value.match(new RegExp(`[^]{1,${size}}`, 'gu')) ?? [];
    const deltas = (field: 'text' | 'arguments', value: string): readonly GenerationEvent[] =>
      cut(value).map((delta) => ({ type: 'part-delta', index, field, delta }));
    if (part.type === 'tool-call') {
      return [
        { ...event, part: { ...part, argumentsJson: '' } },
        ...deltas('arguments', part.argumentsJson),
      ];
    }
    if (part.type === 'reasoning') {
      const { signature = '', ...open } = part;
      return [
        { ...event, part: { ...open, text: '' } },
        ...deltas('text', part.text),
        { type: 'part-delta', index, field: 'signature', delta: signature },
      ];
    }
    if (part.type === 'text')
      return [{ ...event, part: { ...part, text: '' } }, ...deltas('text', part.text)];
    return [event];
  });
}

test('frames of responses that are put together from pieces have the bytes of those that are written whole', (context) => {
  check(context, fc.tuple(generation, fc.nat({ max: 7 })), ([whole, size]) => {
    const written = writeStream(halves.responses, fragments(whole, size + 1));
    for (const frame of written.split(/(?<=\n\n)/)) {
      const data = tryParse(/^data: ([^\n]*)$/m.exec(frame)?.[1] ?? '');
      assert.ok(isObject(data), frame);
      assert.equal(frame, eventFrame(textOf(data['type']), data));
    }
  });
});

for (const dialect of allDialects) {
  const both = halves[dialect];
  describe(dialect, () => {
    test('readResponse(writeResponse(g)) = g', (context) => {
      check(context, generation, (whole) => {
        const body = both.client.writeResponse(whole, answerContext());
        assert.deepEqual(plain(both.upstream.readResponse(body, both.traits)), plain(whole));
      });
    });

    test('collect(reader(writer(replay(g)))) = g in any split of bytes', (context) => {
      check(context, fc.tuple(generation, places), ([whole, cuts]) => {
        const bytes = Buffer.from(writeStream(both, replay(whole)));
        const events = readEvents(both, framesIn(bytes, cuts));
        assert.deepEqual(plain(collect(events)), plain(whole), bytes.toString());
      });
    });

    test('the same for a stream in fragments, and its form is legal', (context) => {
      check(context, fc.tuple(generation, fc.nat({ max: 7 })), ([whole, size]) => {
        const written = writeStream(both, fragments(whole, size + 1));
        assertLegalStream(dialect, written, true);
        const events = readEvents(both, framesIn(Buffer.from(written), []));
        assert.deepEqual(plain(collect(events)), plain(whole), written);
      });
    });

    test('the writer says what an independent reader reads', (context) => {
      check(context, generation, (whole) => {
        const seen = readStream(dialect, writeStream(both, replay(whole)));
        const text = whole.parts.find((part) => part.type === 'text')?.text ?? '';
        assert.equal(seen.text, text);
        assert.equal(seen.usage?.output, whole.usage?.outputTokens);
        assert.equal(seen.usage?.cacheRead, whole.usage?.cacheReadTokens);
      });
    });

    for (const client of allDialects) {
      test(`one ending after any cut, read from ${dialect} and written for ${client}`, (context) => {
        check(context, fc.tuple(generation, fc.nat()), ([whole, cut]) => {
          const frames = framesIn(Buffer.from(writeStream(both, replay(whole))), []);
          cutOnce(dialect, client, { frames, count: cut % (frames.length + 1) });
        });
      });
    }
  });
}

interface Cut {
  readonly frames: ReturnType<typeof framesIn>;
  readonly count: number;
}

/** Reads a stream's beginning and writes it on, as the gateway does; checks the ending. */
function cutOnce(from: AnyDialect, to: AnyDialect, { frames, count }: Cut): void {
  const events = readEvents(halves[from], frames.slice(0, count));
  const endings = events.filter((event) => event.type === 'finish' || event.type === 'error');
  assert.equal(endings.length, 1, JSON.stringify(events));
  const ending = endings[0];
  const behind = events.slice(events.findIndex((event) => event === ending) + 1);
  assert.ok(behind.every((event) => event.type === 'usage' && ending?.type === 'finish'));
  const failure = ending?.type === 'error' ? ending.error : undefined;
  const good = events.filter((event) => event.type !== 'error');
  const text = writeStream(halves[to], good, failure);
  assert.equal(endingOf(to, text), failure === undefined ? 'proper' : 'error');
  if (count === frames.length) assert.equal(failure, undefined);
  if (failure !== undefined) assert.ok(failure instanceof GatewayError);
}
