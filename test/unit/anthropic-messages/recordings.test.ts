/** What the native service really sent (../shared/recordings), read, split, cut and written again. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Part } from '../../../src/core/conversation.ts';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import { lastRequest, replay, type Generation } from '../../../src/core/generation.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { messagesTraits } from '../../../src/core/traits.ts';
import { anthropicMessagesUpstream } from '../../../src/dialects/anthropic-messages/upstream.ts';
import {
  collected,
  frameText,
  readEvents,
  readStreamText,
  writeStreamText,
} from './answer-context.ts';
import { assertLegal, eventsOf } from './legal-stream.ts';

const folder = join(import.meta.dirname, '../../../../shared/recordings/anthropic-messages');
const skip = existsSync(folder)
  ? false
  : 'left out: there are no recordings at ../shared/recordings';

function recorded(name: string): readonly JsonObject[] {
  const lines = readFileSync(join(folder, `${name}.chunks.txt`), 'utf8').split('\n');
  return lines.filter((line) => line.trim() !== '').map((line) => tryParseObject(line) ?? {});
}

function document(name: string): JsonObject {
  return tryParseObject(readFileSync(join(folder, `${name}.json`), 'utf8')) ?? {};
}

function said(generation: Generation | undefined, type: Part['type']): string {
  return (generation?.parts ?? [])
    .map((part) => (part.type === type && 'text' in part ? part.text : ''))
    .join('');
}

interface Expectation {
  readonly text: RegExp;
  readonly parts: string;
  readonly finish: string;
  readonly usage: { readonly fresh: number; readonly output: number };
}

/** Checked by hand against the recordings. */
const streams: { readonly [name: string]: Expectation } = {
  'anthropic-text': {
    text: /^Hello! I'm doing well, thank you for asking.*help you with\?$/,
    parts: 'text',
    finish: 'stop',
    usage: { fresh: 12, output: 30 },
  },
  'anthropic-message-delta-input-tokens': {
    text: /^pong$/,
    parts: 'text',
    finish: 'stop',
    usage: { fresh: 61, output: 2 },
  },
  'anthropic-tool-no-args': {
    text: /^I'll update the issue list for you\.$/,
    parts: 'text tool-call',
    finish: 'tool-calls',
    usage: { fresh: 565, output: 48 },
  },
  'anthropic-clear-thinking.1': {
    text: /^925 ÷ 5 = 185$/,
    parts: 'reasoning text',
    finish: 'stop',
    usage: { fresh: 69, output: 53 },
  },
  'anthropic-refusal': {
    text: /^$/,
    parts: '',
    finish: 'content-filter',
    usage: { fresh: 18, output: 5 },
  },
  'anthropic-compaction.1': {
    text: /another section\?$/,
    parts: 'opaque text',
    finish: 'stop',
    // That of the compaction is beside the totals.
    usage: { fresh: 612 + 60_385, output: 2819 + 522 },
  },
  'anthropic-json-output-format.1': {
    text: /^\{[^]*\}$/,
    parts: 'text',
    finish: 'stop',
    usage: { fresh: 313, output: 305 },
  },
  'anthropic-web-search-tool.1': {
    text: /Apple today announced the grand reopening of Apple Ginza/,
    parts: `opaque opaque${' text'.repeat(19)}`,
    finish: 'stop',
    usage: { fresh: 15_665, output: 795 },
  },
};

describe('streams', { skip }, () => {
  for (const [name, expected] of Object.entries(streams)) {
    test(`${name}: text, parts, finish, usage`, () => {
      const generation = collected(readEvents(recorded(name)));
      assert.match(said(generation, 'text'), expected.text);
      assert.equal(generation?.parts.map(({ type }) => type).join(' '), expected.parts);
      assert.equal(generation?.finish.kind, expected.finish);
      assert.equal(generation?.usage?.freshInputTokens, expected.usage.fresh);
      assert.equal(generation?.usage?.outputTokens, expected.usage.output);
    });

    test(`${name}: every cut has one ending, only a told reason is an end (E4)`, () => {
      const events = recorded(name);
      for (let cut = 0; cut < events.length; cut++) {
        const kept = events.slice(0, cut);
        const isTold = kept.some(
          ({ delta }) => isObject(delta) && typeof delta['stop_reason'] === 'string',
        );
        const endings = readEvents(kept).filter(
          ({ type }) => type === 'finish' || type === 'error',
        );
        assert.deepEqual(
          endings.map(({ type }) => type),
          [isTold ? 'finish' : 'error'],
        );
      }
    });

    test(`${name}: written again it is legal and says the same`, () => {
      const events = readEvents(recorded(name));
      const generation = collected(events);
      assert.ok(generation !== undefined);
      for (const source of [events, replay(generation)]) {
        const written = writeStreamText(source);
        assertLegal(written);
        const again = collected(readStreamText(written));
        assert.deepEqual(again?.parts, generation.parts);
        assert.equal(again?.finish.kind, generation.finish.kind);
        assert.equal(again?.usage?.outputTokens, generation.usage?.outputTokens);
      }
    });
  }

  test('F1 every event has the members that the native ones have', () => {
    const events = recorded('anthropic-text');
    const written = eventsOf(writeStreamText(readEvents(events)));
    for (const native of events) {
      const same = written.find(({ name }) => name === native['type']);
      assert.ok(same !== undefined, String(native['type']));
      assertHasMembers(same.data, native);
    }
  });

  test('D1 the signature comes through byte for byte', () => {
    const events = recorded('anthropic-clear-thinking.1');
    const signature = events
      .map(({ delta }) => (isObject(delta) ? delta['signature'] : undefined))
      .find((value) => typeof value === 'string');
    const written = writeStreamText(readEvents(events));
    assert.ok(signature !== undefined && written.includes(JSON.stringify(signature)));
  });

  test('F61 a stream that was spliced from two is an error, not a call that was cut in half', () => {
    const events = readEvents(recorded('spliced-message-start'));
    const ending = events.at(-1);
    assert.ok(ending?.type === 'error');
    assert.equal(ending.error.code, 'upstream_invalid');
    assert.equal(events.filter(({ type }) => type === 'start').length, 1);
  });

  test('comments, CR LF and unnamed events change nothing', () => {
    const events = recorded('anthropic-tool-no-args');
    const expected = collected(readEvents(events));
    const spellings = [
      events.map((event) => `: ping\n\n${frameText(event)}`).join(''),
      events.map(frameText).join('').replaceAll('\n', '\r\n'),
      events.map((event) => `data:${JSON.stringify(event)}\n\n`).join(''),
    ];
    for (const text of spellings) assert.deepEqual(collected(readStreamText(text)), expected);
  });
});

/** Every member of the expected value is there, at any depth. */
function assertHasMembers(actual: JsonObject, expected: JsonObject): void {
  for (const [key, value] of Object.entries(expected)) {
    assert.ok(key in actual, `${key} is there`);
    const found = actual[key];
    if (isObject(value) && isObject(found)) assertHasMembers(found, value);
  }
}

describe('documents', { skip }, () => {
  const documents = [
    'anthropic-text',
    'anthropic-tool-no-args',
    'anthropic-clear-thinking.1',
    'anthropic-refusal',
    'anthropic-compaction.1',
    'anthropic-json-output-format.1',
    'anthropic-web-search-tool.1',
    'anthropic-claude-opus-5-reasoning-high.1',
  ];
  for (const name of documents) {
    test(`${name}: one part a block, usage as recorded`, () => {
      const body = document(name);
      const generation = anthropicMessagesUpstream.readResponse(body, messagesTraits);
      const { content, usage } = body;
      assert.ok(Array.isArray(content) && isObject(usage));
      assert.equal(generation.parts.length, content.length);
      assert.equal(
        said(generation, 'text'),
        content.map((block) => (isObject(block) ? (block['text'] ?? '') : '')).join(''),
      );
      assert.equal(generation.finish.raw, body['stop_reason']);
      // What a compaction used is beside the totals.
      const own = generation.usage && lastRequest(generation.usage);
      assert.equal(own?.freshInputTokens, usage['input_tokens']);
      assert.equal(own?.outputTokens, usage['output_tokens']);
    });
  }

  test('thinking tokens are a part of the output', () => {
    const body = document('anthropic-claude-opus-5-reasoning-high.1');
    const generation = anthropicMessagesUpstream.readResponse(body, messagesTraits);
    assert.equal(generation.usage?.reasoningTokens, 139);
  });
});
