/** Real answers of real Responses servers, read whole and as streams (recordings/README.md). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { collect, totalInputTokens, type Generation } from '../../../src/core/generation.ts';
import { NoteList } from '../../../src/core/notes.ts';
import { openaiResponsesClient as client } from '../../../src/dialects/openai-responses/client.ts';
import { readResponse } from '../../../src/dialects/openai-responses/answer/response.ts';
import { tryParseObject } from '../../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../../src/json/value.ts';
import { listAt } from '../../support/reading.ts';
import {
  doneItems,
  lastResponse,
  leftOut,
  read,
  readText,
  recordedDocuments,
  recordedStreams,
  wire,
} from './recorded.ts';

interface Said {
  readonly text: string;
  readonly reasoning: string;
  readonly blobs: readonly string[];
  readonly calls: readonly JsonObject[];
  readonly hosted: readonly Json[];
}

/** What the items of an answer say, without the gateway's readers. */
function fold(items: readonly JsonObject[]): Said {
  const text = (list: Json | undefined, of = 'text'): string[] =>
    Array.isArray(list) ? list.map((part: Json) => String(isObject(part) ? part[of] : '')) : [];
  const reasoned = items.filter((item) => item['type'] === 'reasoning');
  const calls = items.filter((item) => item['type'] !== 'reasoning' && item['type'] !== 'message');
  const isRun = (item: JsonObject): boolean =>
    ['function_call', 'custom_tool_call', 'local_shell_call', 'apply_patch_call'].includes(
      String(item['type']),
    ) || item['execution'] === 'client';
  return {
    text: items
      .filter((item) => item['type'] === 'message')
      .flatMap((item) => text(item['content']))
      .join(''),
    reasoning: reasoned
      .map((item) => text(item['summary']).join('\n\n') || text(item['content']).join(''))
      .join(''),
    blobs: reasoned.flatMap((item) => item['encrypted_content'] ?? []).map(String),
    calls: calls.filter(isRun).map((item) => ({
      id: item['call_id'],
      name: item['name'] ?? String(item['type']).replace(/_call$/, ''),
    })),
    hosted: calls.filter((item) => !isRun(item)).map((item) => item['type'] ?? null),
  };
}

function said({ parts }: Generation): Said {
  const reasoned = parts.filter((part) => part.type === 'reasoning');
  return {
    text: parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
    reasoning: reasoned.map((part) => part.text).join(''),
    blobs: reasoned.flatMap((part) => part.signature ?? []),
    calls: parts.flatMap((part) =>
      part.type === 'tool-call' ? [{ id: part.id, name: part.name }] : [],
    ),
    hosted: parts.flatMap((part) => (part.type === 'opaque' ? [part.value['type'] ?? null] : [])),
  };
}

function argumentsOf({ parts }: Generation): readonly Json[] {
  return parts.flatMap((part) =>
    part.type === 'tool-call' ? [tryParseObject(part.argumentsJson) ?? part.argumentsJson] : [],
  );
}

function wantedArguments(items: readonly JsonObject[]): readonly Json[] {
  return items.flatMap((item): readonly Json[] => {
    switch (item['type']) {
      case 'function_call':
        return [tryParseObject(String(item['arguments'])) ?? ''];
      case 'custom_tool_call':
        return [{ input: item['input'] }];
      case 'local_shell_call': {
        const { type: _type, ...action } = isObject(item['action']) ? item['action'] : {};
        return [action];
      }
      case 'apply_patch_call':
        return [{ operation: item['operation'] }];
      case 'tool_search_call':
        return item['execution'] === 'client' ? [item['arguments'] ?? {}] : [];
      default:
        return [];
    }
  });
}

function assertUsage({ usage }: Generation, response: JsonObject): void {
  const raw = response['usage'];
  assert.ok(isObject(raw) && usage !== undefined);
  assert.equal(totalInputTokens(usage), raw['input_tokens']);
  assert.equal(usage.outputTokens, raw['output_tokens']);
  const details = (key: string): JsonObject => {
    const value = raw[key];
    return isObject(value) ? value : {};
  };
  assert.equal(usage.cacheReadTokens, details('input_tokens_details')['cached_tokens']);
  assert.equal(usage.reasoningTokens, details('output_tokens_details')['reasoning_tokens']);
}

describe('R-64 documents', { skip: leftOut }, () => {
  for (const { name, body, text } of recordedDocuments()) {
    if (isObject(body['error'])) {
      test(`R-68 F24 ${name}: an error`, () => {
        assert.throws(() => readResponse(body), GatewayError);
      });
      continue;
    }
    test(`F2 F3 ${name}: text, reasoning, calls, finish and usage`, () => {
      const generation = readResponse(tryParseObject(text) ?? {});
      const items = Array.isArray(body['output']) ? body['output'].filter(isObject) : [];
      assert.deepEqual(said(generation), fold(items));
      assert.deepEqual(argumentsOf(generation), wantedArguments(items));
      const calls = fold(items).calls.length > 0;
      assert.equal(generation.finish.kind, calls ? 'tool-calls' : 'stop');
      assertUsage(generation, body);
    });
  }
});

describe('R-64 streams', { skip: leftOut }, () => {
  for (const { name, events } of recordedStreams()) {
    if (name.startsWith('openai-error')) continue;
    const whole = read(events);

    test(`F2 F3 ${name}: one ending, text, reasoning, calls and usage`, () => {
      const generation = collect(whole);
      assert.ok(generation !== undefined);
      const endings = whole.filter(({ type }) => type === 'finish' || type === 'error');
      assert.equal(endings.length, 1);
      const items = doneItems(events);
      assert.deepEqual(said(generation), fold(items));
      assert.deepEqual(argumentsOf(generation), wantedArguments(items));
      const calls = fold(items).calls.length > 0;
      assert.equal(generation.finish.kind, calls ? 'tool-calls' : 'stop');
      assertUsage(generation, lastResponse(events));
    });

    test(`R-74 F47 ${name}: any split of the bytes, CR LF, keepalive and unknown events`, () => {
      const text = wire(events);
      const sizes = text.length < 20_000 ? [1, 7, 100] : [13, 1000];
      for (const size of sizes) assert.deepEqual(readText(text, size), whole);
      assert.deepEqual(readText(text.replaceAll('\n', '\r\n')), whole);
      const between = events.flatMap((event) => [
        event,
        { type: 'keepalive', sequence_number: 1 },
        { type: 'response.reasoning_part.added', output_index: 0 },
        { type: 'codex.rate_limits', limits: {} },
      ]);
      assert.deepEqual(read(between), whole);
      const obfuscated = events.map((event) =>
        event['delta'] === undefined ? event : { ...event, obfuscation: 'aB3' },
      );
      assert.deepEqual(read(obfuscated), whole);
    });

    test(`R-73 E4 F40 ${name}: cut after any event it is an error, never an end`, () => {
      for (let cut = 0; cut < events.length; cut += 1) {
        const seen = read(events.slice(0, cut));
        assert.equal(seen.at(-1)?.type, 'error', `after ${cut}`);
        assert.equal(collect(seen), undefined);
      }
      const text = wire(events);
      const half = text.slice(0, text.lastIndexOf('"usage"'));
      assert.throws(() => readText(half), GatewayError, 'inside of the last frame');
    });

    test(`R-76 ${name}: the same from its whole items, and from its last event alone`, () => {
      const generation = collect(whole);
      const first = events[0];
      const last = events.at(-1);
      assert.ok(generation !== undefined && first !== undefined && last !== undefined);
      const done = events.filter(({ type }) => type === 'response.output_item.done');
      const fromItems = collect(read([first, ...done, last]));
      assert.ok(fromItems !== undefined);
      assert.deepEqual(said(fromItems), said(generation));
      assert.deepEqual(argumentsOf(fromItems), argumentsOf(generation));
      const output = done.map(({ item }) => item ?? null);
      const complete = { ...last, response: { ...lastResponse(events), output } };
      const fromLast = collect(read([first, complete]));
      assert.ok(fromLast !== undefined);
      assert.deepEqual(said(fromLast), said(generation));
    });

    test(`R-76 ${name}: the same without the ends of its items`, () => {
      const unended = events.filter(({ type }) => !String(type).endsWith('.done'));
      const last = unended.at(-1);
      assert.ok(last !== undefined);
      const output = doneItems(events);
      const complete = { ...last, response: { ...lastResponse(events), output } };
      const generation = collect(whole);
      const again = collect(read([...unended.slice(0, -1), complete]));
      assert.ok(generation !== undefined && again !== undefined);
      assert.deepEqual(said(again), said(generation));
      assert.deepEqual(argumentsOf(again), argumentsOf(generation));
    });
  }
});

/** The request that went before an answer, as far as the answer repeats it, and that goes on from it. */
function furtherRequest(response: JsonObject): JsonObject {
  const output = listAt(response, 'output');
  const results = output.flatMap((item): readonly JsonObject[] => {
    const { type, call_id: id } = item;
    if (typeof id !== 'string' || item['execution'] === 'server') return [];
    if (type === 'tool_search_call') {
      return [
        {
          type: 'tool_search_output',
          execution: 'client',
          call_id: id,
          status: 'completed',
          tools: [],
        },
      ];
    }
    const isCall = /^(function|custom_tool|local_shell|apply_patch)_call$/.test(String(type));
    return isCall ? [{ type: `${String(type)}_output`, call_id: id, output: 'done' }] : [];
  });
  const repeated = askedMembers.filter((name) => (response[name] ?? null) !== null);
  return {
    ...Object.fromEntries(repeated.map((name) => [name, response[name]])),
    model: 'm',
    input: [{ role: 'user', content: 'Hi' }, ...output, ...results],
  };
}

const askedMembers = [
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'parallel_tool_calls',
  'prompt_cache_key',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'store',
  'temperature',
  'text',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
];

/** Requests of recordings that other models cannot be asked as they stand, by the beginning of the name. */
const noted: { readonly [name: string]: readonly string[] } = {
  'lmstudio-tool-call': ['truncation'],
  'openai-apply-patch': ['tools.0.type'],
  'openai-client-tool-search': ['tools'],
  'openai-tool-search': ['input.1', 'input.2', 'tools'],
  'xai-web-search': ['input.1'],
};
const refusedTools = /^(openai-mcp|programmatic)/;

describe('R-79 recorded requests', { skip: leftOut }, () => {
  const answers = [
    ...recordedDocuments().map(({ name, body }) => ({ name, response: body })),
    ...recordedStreams().map(({ name, events }) => ({
      name: `${name}, streamed`,
      response: lastResponse(events),
    })),
  ];
  for (const { name, response } of answers) {
    if (isObject(response['error']) || response['object'] !== 'response') continue;
    test(`${name}: is read, with notes of nothing but what is not supported`, () => {
      const body = furtherRequest(response);
      const notes = new NoteList();
      const reading = (): unknown => {
        client.readHead(body);
        return client.readRequest(body, notes);
      };
      if (refusedTools.test(name)) {
        assert.throws(
          reading,
          (error) => error instanceof GatewayError && error.path?.[0] === 'tools',
        );
        return;
      }
      reading();
      const [, wanted = []] = Object.entries(noted).find(([start]) => name.startsWith(start)) ?? [];
      assert.deepEqual(
        notes.all.map(({ path }) => path),
        wanted,
      );
    });
  }
});
