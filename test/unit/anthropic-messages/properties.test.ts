/** Laws that hold for all answers and questions: what is written is read as the same (style.md). */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import type { Conversation, Part } from '../../../src/core/conversation.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { GatewayError } from '../../../src/core/errors.ts';
import { replay, type Generation } from '../../../src/core/generation.ts';
import { tryParse, tryParseObject } from '../../../src/json/parse.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { messagesTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesClient } from '../../../src/dialects/anthropic-messages/client.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import { SseSplitter } from '../../../src/wire/sse.ts';
import {
  answerContext,
  collected,
  readStreamText,
  translated,
  writeStreamText,
  writeWith,
} from './answer-context.ts';
import { conversation, generation, interleaved } from './arbitraries.ts';
import { assertLegal } from './legal-stream.ts';

const runs = { numRuns: 100, seed: 20_261_121, interruptAfterTimeLimit: 5000 } as const;
const picks = fc.array(fc.nat({ max: 7 }), { minLength: 1, maxLength: 12 });
const size = fc.integer({ min: 1, max: 6 });

/** The generation with citations as their own words, which is what they are compared by. */
function comparable(found: Generation | undefined): unknown {
  if (found === undefined) return undefined;
  return {
    ...found,
    parts: found.parts.map((part) =>
      part.type === 'text' && part.citations !== undefined
        ? { ...part, citations: part.citations.map(({ native }) => native) }
        : part,
    ),
  };
}

function check<T>(context: TestContext, values: fc.Arbitrary<T>, holds: (value: T) => void): void {
  context.diagnostic(`seed ${runs.seed}`);
  fc.assert(fc.property(values, holds), runs);
}

test('collect(reader(writer(replay(g)))) = g', (context) => {
  check(context, generation, (whole) => {
    const written = writeStreamText(replay(whole));
    assertLegal(written);
    assert.deepEqual(comparable(collected(readStreamText(written))), comparable(whole));
  });
});

test('the same when the parts come in fragments and mixed (B1, C1–C3)', (context) => {
  check(context, fc.tuple(generation, size, picks), ([whole, length, order]) => {
    const written = writeStreamText(interleaved(whole, length, order));
    assertLegal(written);
    assert.deepEqual(comparable(collected(readStreamText(written))), comparable(whole));
  });
});

test('a translated stream is legal as well, whatever is sealed in it', (context) => {
  check(context, fc.tuple(generation, size, picks), ([whole, length, order]) => {
    assertLegal(writeStreamText(interleaved(whole, length, order), translated()));
  });
});

test('readResponse(writeResponse(g)) = g', (context) => {
  check(context, generation, (whole) => {
    const body = anthropicMessagesClient.writeResponse(whole, answerContext());
    const text = tryParseObject(JSON.stringify(body)) ?? {};
    const found = anthropicMessagesUpstream.readResponse(text, messagesTraits);
    const { raw: _raw, ...usage } = found.usage ?? {};
    assert.deepEqual(comparable({ ...found, usage }), comparable(whole));
  });
});

/** What a final message says, in the words of the generation. */
function saidBy(message: Anthropic.Message): readonly unknown[] {
  return message.content.map((block) => {
    switch (block.type) {
      case 'text':
        return ['text', block.text];
      case 'thinking':
        return ['reasoning', block.thinking, block.signature];
      case 'redacted_thinking':
        return ['encrypted', block.data];
      case 'tool_use':
        return ['tool-call', block.id, block.name, JSON.stringify(block.input)];
      default:
        return ['opaque', block.type];
    }
  });
}

function saidIn(parts: readonly Part[]): readonly unknown[] {
  return parts.map((part) => {
    switch (part.type) {
      case 'text':
        return ['text', part.text];
      case 'reasoning':
        return part.encrypted === undefined
          ? ['reasoning', part.text, part.signature]
          : ['encrypted', part.encrypted];
      case 'tool-call':
        return ['tool-call', part.id, part.name, JSON.stringify(tryParse(part.argumentsJson))];
      case 'opaque':
        return ['opaque', part.value['type']];
      default:
        return part;
    }
  });
}

test('the official SDK builds the same message (C3)', async (context) => {
  context.diagnostic(`seed ${runs.seed}`);
  // Compaction belongs to the beta surface of the SDK, which has an accumulator of its own.
  const known = generation.filter((whole) =>
    whole.parts.every((part) => part.type !== 'opaque' || part.value['type'] !== 'compaction'),
  );
  const law = fc.asyncProperty(known, size, picks, async (whole, length, order) => {
    const text = writeStreamText(interleaved(whole, length, order));
    const client = new Anthropic({
      apiKey: 'key',
      maxRetries: 0,
      fetch: () =>
        Promise.resolve(new Response(text, { headers: { 'content-type': 'text/event-stream' } })),
    });
    const message = await client.messages
      .stream({ model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] })
      .finalMessage();
    assert.deepEqual(saidBy(message), saidIn(whole.parts));
    assert.equal(message.usage.output_tokens, whole.usage?.outputTokens);
    assert.equal(message.usage.input_tokens, whole.usage?.freshInputTokens);
    assert.equal(message.usage.cache_read_input_tokens, whole.usage?.cacheReadTokens);
  });
  await fc.assert(law, { ...runs, numRuns: 60 });
});

test('any cut of a stream has one ending, and no finish before its end (E4)', (context) => {
  check(context, fc.tuple(generation, fc.nat()), ([whole, at]) => {
    const written = writeStreamText(replay(whole));
    const frames = written.split('\n\n').slice(0, -1);
    const kept = at % frames.length;
    const events = readStreamText(`${frames.slice(0, kept).join('\n\n')}\n\n`);
    const endings = events.filter(({ type }) => type === 'finish' || type === 'error');
    assert.equal(endings.length, 1);
    const hasReason = kept >= frames.length - 1;
    assert.equal(endings[0]?.type, hasReason ? 'finish' : 'error');
  });
});

test('readers throw nothing but GatewayError on any bytes (S20)', (context) => {
  const line = fc.oneof(
    fc.json().map((json) => `data: ${json}`),
    fc
      .constantFrom('content_block_start', 'content_block_delta', 'message_start', 'message_delta')
      .chain((type) =>
        fc
          .dictionary(
            fc.constantFrom('index', 'delta', 'content_block', 'message', 'usage'),
            fc.jsonValue(),
          )
          .map((value) => `event: ${type}\ndata: ${JSON.stringify({ ...value, type })}`),
      ),
    fc.string(),
  );
  check(context, fc.array(line, { maxLength: 6 }), (lines) => {
    const splitter = new SseSplitter();
    const reader = anthropicMessagesUpstream.streamReader(messagesTraits);
    const relay = anthropicMessagesClient.answerRelay(answerContext());
    try {
      for (const frame of splitter.push(Buffer.from(`${lines.join('\n\n')}\n\n`))) {
        relay.frame(frame, reader.read(frame));
      }
      reader.end();
    } catch (error) {
      assert.ok(error instanceof GatewayError, String(error));
    }
  });
  check(context, fc.object(), (value) => {
    const body = tryParseObject(JSON.stringify(value)) ?? {};
    for (const run of [
      () => anthropicMessagesUpstream.readResponse(body, messagesTraits),
      () => anthropicMessagesClient.readHead({ model: 'm', max_tokens: 1, ...body }),
      () => anthropicMessagesClient.readRequest(body, new NoteList()),
    ]) {
      try {
        run();
      } catch (error) {
        assert.ok(error instanceof GatewayError, String(error));
      }
    }
  });
});

/** What the writer gives away by design: sampling while it thinks, thinking for a demanded call. */
function expected(whole: Conversation, notes: NoteList): Conversation {
  const lost = new Set(notes.all.map(({ path }) => path));
  const { temperature, ...sampling } = whole.sampling;
  const keepsTemperature =
    temperature !== undefined && !lost.has('temperature') && !isThinking(whole);
  return {
    ...whole,
    sampling: keepsTemperature ? { ...sampling, temperature } : sampling,
    ...(lost.has('reasoning_effort') ? { reasoning: { effort: 'none' } } : {}),
  };
}

function isThinking({ reasoning, toolChoice }: Conversation): boolean {
  return reasoning?.adaptive === true && toolChoice?.type !== 'required';
}

function dropMarks(value: Json): Json {
  if (Array.isArray(value)) return value.map(dropMarks);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([key]) => key !== 'cacheUntilHere');
  return Object.fromEntries(entries.map(([key, inner]) => [key, dropMarks(inner ?? null)]));
}

test('conservation: read(write(c)) = c except at noted paths', (context) => {
  check(context, conversation, (whole) => {
    const { body, notes } = writeWith(whole);
    const text: JsonObject = tryParseObject(JSON.stringify(body)) ?? {};
    anthropicMessagesClient.readHead(text);
    const found = anthropicMessagesClient.readRequest(text, new NoteList());
    const wanted = expected(whole, notes);
    const strip = (value: Conversation): Json => {
      const plain = tryParse(JSON.stringify(value)) ?? null;
      return notes.all.some(({ path }) => path === 'cache_control') ? dropMarks(plain) : plain;
    };
    assert.deepEqual(strip(found), strip(wanted));
  });
});
