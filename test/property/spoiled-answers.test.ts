/**
 * F-8: answers with one member of a wrong type. What comes out says the same, or is an error: never a success in which
 * something is missing, and never one thing in a document and another in a stream.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Part } from '../../src/core/conversation.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { GatewayError } from '../../src/core/errors.ts';
import { collect } from '../../src/core/generation.ts';
import { halves, readEvents } from './dialect-halves.ts';
import { framesOf } from '../unit/openai-chat/answer-context.ts';
import type { AnyDialect } from '../support/reading.ts';
import { responseEvents } from '../corpus/response-events.ts';

type Path = readonly (string | number)[];

/** Values of every type; those that mean nothing are what servers write for an absent member. */
const values: readonly Json[] = [5, true, 'word', [5], ['word'], { odd: 1 }];

function typeOf(value: Json | undefined): string {
  return Array.isArray(value) ? 'array' : typeof value;
}

/** All places of a value, and what stands there. */
function places(value: Json | undefined, at: Path = []): readonly { path: Path; value: Json }[] {
  if (typeof value !== 'object' || value === null) return [];
  const entries: readonly (readonly [string | number, Json | undefined])[] = Array.isArray(value)
    ? value.map((item: Json, index) => [index, item] as const)
    : Object.entries(value);
  return entries.flatMap(([key, member]) =>
    member === null || member === undefined
      ? []
      : [{ path: [...at, key], value: member }, ...places(member, [...at, key])],
  );
}

function put(value: Json | undefined, [key, ...rest]: Path, by: Json): Json {
  if (key === undefined) return by;
  if (Array.isArray(value)) {
    return value.map((item: Json, index) => (index === key ? put(item, rest, by) : item));
  }
  return isObject(value) ? { ...value, [key]: put(value[key], rest, by) } : by;
}

/** What the reader makes of it: its parts without what the gateway may make up, or `error`. */
function outcome(read: () => { readonly parts: readonly Part[] } | undefined): string {
  try {
    const parts = read()?.parts;
    if (parts === undefined) return 'error';
    return JSON.stringify(
      parts.map((part) => (part.type === 'tool-call' ? { ...part, id: '' } : part)),
    );
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return 'error';
  }
}

function readDocument(dialect: AnyDialect, body: Json): string {
  const { upstream, traits } = halves[dialect];
  return outcome(() => upstream.readResponse(isObject(body) ? body : {}, traits));
}

function readStream(dialect: AnyDialect, events: Json): string {
  const list = Array.isArray(events) ? events : [];
  const text = list.map((data: Json) => {
    const name = dialect !== 'chat' && isObject(data) ? data['type'] : undefined;
    return `${typeof name === 'string' ? `event: ${name}\n` : ''}data: ${JSON.stringify(data)}\n\n`;
  });
  return outcome(() => collect(readEvents(halves[dialect], framesOf(text.join('')))));
}

/** The outcome says all that the answer says, with the text of the value where its member is a text. */
function assertKept(
  found: string,
  whole: string,
  { old, by, where }: { readonly old: Json; readonly by: Json; readonly where: string },
): void {
  if (found === 'error' || found === whole) return;
  const inside = (text: string): string => JSON.stringify(text).slice(1, -1);
  const written = [JSON.stringify(by), wordsOf(by)].filter((text) => text !== undefined);
  const kept =
    typeof old === 'string'
      ? written.some((text) =>
          // A free text is a text in the arguments, which are one.
          [inside(text), inside(inside(text))].some(
            (by) => found === whole.replace(inside(old), by),
          ),
        )
      : written.some((text) => found.includes(inside(text)));
  assert.ok(kept, `something is missing: ${where}: ${found}`);
}

/** The text that the value is. */
function wordsOf(value: Json): string | undefined {
  if (Array.isArray(value)) return value.map((item: Json) => wordsOf(item) ?? '').join('');
  return typeof value === 'object' ? undefined : String(value);
}

const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"x":1}' } };
const second = { ...call, id: 'call_2', function: { name: 'listen', arguments: '{"y":2}' } };
const source = { type: 'url_citation', url_citation: { url: 'https://a.example', title: 'Alpha' } };
const messages: { readonly [name: string]: JsonObject } = {
  'a text': { role: 'assistant', content: 'Hello there', refusal: null },
  parts: {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Considering' }] },
      { type: 'text', text: 'Therefore' },
    ],
  },
  'a refusal': { role: 'assistant', content: null, refusal: 'Never ever' },
  reasoning: { role: 'assistant', reasoning_content: 'Considering', content: 'Therefore' },
  'reasoning in details': {
    role: 'assistant',
    reasoning_details: [{ type: 'reasoning.text', text: 'Considering', signature: 'Sealed' }],
    content: 'Therefore',
  },
  'thinking blocks': {
    role: 'assistant',
    thinking_blocks: [{ type: 'thinking', thinking: 'Considering', signature: 'Sealed' }],
    content: 'Therefore',
  },
  calls: { role: 'assistant', content: null, tool_calls: [call, second] },
  'a text and a call': { role: 'assistant', content: 'Looking', tool_calls: [call] },
  'a call of the deprecated form': { role: 'assistant', function_call: call.function },
  speech: { role: 'assistant', content: null, audio: { id: 'a', transcript: 'Spoken' } },
  sources: { role: 'assistant', content: 'Cited', annotations: [source] },
};

const head = { id: 'chatcmpl-1', created: 5, model: 'm' };

function chatDocument(message: JsonObject): JsonObject {
  const finish = message['tool_calls'] === undefined ? 'stop' : 'tool_calls';
  return { ...head, choices: [{ index: 0, message, finish_reason: finish }] };
}

function chatEvents(message: JsonObject): readonly JsonObject[] {
  const { choices } = chatDocument(message);
  const [choice] = Array.isArray(choices) ? choices : [];
  const finish = isObject(choice) ? choice['finish_reason'] : null;
  const calls = message['tool_calls'];
  const delta = {
    ...message,
    ...(Array.isArray(calls)
      ? {
          tool_calls: calls.map((each: Json, index) =>
            isObject(each) ? { index, ...each } : each,
          ),
        }
      : {}),
  };
  return [
    { ...head, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: finish ?? null }] },
  ];
}

/** Members of an answer that say nothing of what it means. */
const aside: ReadonlySet<string | number> = new Set(['usage']);

/** A citation is passed on as it came. */
function isOfSource(path: Path): boolean {
  const at = path.indexOf('annotations');
  return at !== -1 && path.length > at + 2;
}

function each(
  value: Json,
  use: (change: { path: Path; old: Json; by: Json; where: string }) => void,
): void {
  for (const { path, value: old } of places(value)) {
    // What is nothing cannot be missing.
    if (old === '' || path.some((key) => aside.has(key)) || isOfSource(path)) continue;
    for (const by of values) {
      if (typeOf(old) === typeOf(by)) continue;
      use({ path, old, by, where: `${path.join('.')} = ${JSON.stringify(by)}` });
    }
  }
}

describe('F-8 chat answers with a member of a wrong type', () => {
  for (const [name, message] of Object.entries(messages)) {
    test(`a document: ${name}`, () => {
      const body = chatDocument(message);
      const whole = readDocument('chat', body);
      assert.notEqual(whole, 'error');
      each(body, (change) => {
        assertKept(readDocument('chat', put(body, change.path, change.by)), whole, change);
      });
    });

    test(`a stream: ${name}`, () => {
      const events = chatEvents(message);
      const whole = readStream('chat', events);
      assert.notEqual(whole, 'error');
      each(events, (change) => {
        assertKept(readStream('chat', put(events, change.path, change.by)), whole, change);
      });
    });

    test(`document and stream alike: ${name}`, () => {
      each(message, ({ path, by, where }) => {
        const odd = put(message, path, by);
        if (!isObject(odd)) return;
        const document = readDocument('chat', chatDocument(odd));
        assert.equal(readStream('chat', chatEvents(odd)), document, where);
      });
    });
  }

  for (const nameless of [
    { ...call, function: { arguments: '{"x":1}' } },
    { ...call, function: { name: '', arguments: '{"x":1}' } },
    { ...call, function: { name: '', arguments: '' } },
    { id: 'call_1', type: 'function' },
  ]) {
    test(`a call without a name is an error, alone and beside others: ${JSON.stringify(nameless)}`, () => {
      for (const message of [
        { content: null, tool_calls: [nameless] },
        { content: 'Looking', tool_calls: [nameless] },
        { content: null, tool_calls: [call, nameless] },
        { content: null, tool_calls: [{ ...nameless, id: 'call_0' }, call] },
      ]) {
        assert.equal(readDocument('chat', chatDocument(message)), 'error');
        assert.equal(readStream('chat', chatEvents(message)), 'error');
      }
    });
  }

  for (const type of ['output_text', 'marvel']) {
    test(`F-8 a part with a text is that text, whatever it is called: ${type}`, () => {
      const content = [
        { type, text: 'Hel' },
        { type, text: 7 },
      ];
      const whole = JSON.stringify([{ type: 'text', text: 'Hel7' }]);
      const choice = { index: 0, finish_reason: 'stop' };
      const read = readDocument('chat', { choices: [{ ...choice, message: { content } }] });
      assert.equal(read, whole);
      assert.equal(readStream('chat', [{ choices: [{ ...choice, delta: { content } }] }]), whole);
    });
  }

  test('padding that says nothing is no call', () => {
    const padding = { id: '', type: 'function', function: { name: '', arguments: '' } };
    const message = { content: 'Hello', tool_calls: [padding] };
    assert.equal(
      readDocument('chat', chatDocument(message)),
      readDocument('chat', chatDocument({ content: 'Hello' })),
    );
    assert.equal(
      readStream('chat', chatEvents(message)),
      readStream('chat', chatEvents({ content: 'Hello' })),
    );
  });
});

const blocks: readonly JsonObject[] = [
  { type: 'thinking', thinking: 'Considering', signature: 'Sealed' },
  { type: 'redacted_thinking', data: 'Hidden' },
  {
    type: 'text',
    text: 'Therefore',
    citations: [{ type: 'char_location', cited_text: 'Quoted', document_index: 0 }],
  },
  { type: 'tool_use', id: 'toolu_1', name: 'look', input: { place: 'Here' } },
];
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content: blocks,
  stop_reason: 'tool_use',
  usage: { input_tokens: 9, output_tokens: 5 },
};

function deltaOf(block: JsonObject): readonly JsonObject[] {
  const { thinking, signature, text, input, citations } = block;
  if (thinking !== undefined) {
    return [
      { type: 'thinking_delta', thinking },
      { type: 'signature_delta', signature },
    ];
  }
  if (text !== undefined) {
    const [citation] = Array.isArray(citations) ? citations : [];
    return [
      { type: 'text_delta', text },
      { type: 'citations_delta', citation: citation ?? null },
    ];
  }
  return input === undefined
    ? []
    : [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }];
}

const starts: { readonly [type: string]: JsonObject } = {
  thinking: { type: 'thinking', thinking: '', signature: '' },
  text: { type: 'text', text: '' },
};

const events: readonly JsonObject[] = [
  { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
  ...blocks.flatMap((block, index) => [
    {
      type: 'content_block_start',
      index,
      content_block:
        starts[String(block['type'])] ??
        (block['input'] === undefined ? block : { ...block, input: {} }),
    },
    ...deltaOf(block).map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ]),
  { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } },
  { type: 'message_stop' },
];

describe('F-8 messages answers with a member of a wrong type', () => {
  test('a document', () => {
    const whole = readDocument('messages', message);
    assert.notEqual(whole, 'error');
    each(message, (change) => {
      // What a tool is given, and what a citation holds, is the model's own: any value is good.
      if (change.path.includes('input') || change.path.length > 4) return;
      assertKept(readDocument('messages', put(message, change.path, change.by)), whole, change);
    });
  });

  test('a stream', () => {
    const whole = readStream('messages', events);
    assert.notEqual(whole, 'error');
    each(events, (change) => {
      if (change.path.includes('input') || change.path.length > 4) return;
      if (change.path.includes('citation') && change.path.length > 3) return;
      assertKept(readStream('messages', put(events, change.path, change.by)), whole, change);
    });
  });
});

const items: { readonly [name: string]: JsonObject } = {
  'a text': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Therefore', annotations: [], logprobs: [] }],
  },
  'a refusal': {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'refusal', refusal: 'Never ever' }],
  },
  reasoning: {
    id: 'rs_1',
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'Considering' }],
    encrypted_content: 'Sealed',
  },
  'a call': {
    id: 'fc_1',
    type: 'function_call',
    status: 'completed',
    call_id: 'call_1',
    name: 'look',
    arguments: '{"place":"Here"}',
  },
  'a call with free text': {
    id: 'ctc_1',
    type: 'custom_tool_call',
    call_id: 'call_1',
    name: 'run',
    input: 'Hello there',
  },
};

/** Members that say nothing of what an item means, or that only its own API knows. */
const asideOfItems: ReadonlySet<string | number> = new Set(['id', 'status', 'role', 'logprobs']);

describe('F-8 responses answers with a member of a wrong type', () => {
  for (const [name, item] of Object.entries(items)) {
    const response = (output: Json): JsonObject => ({
      id: 'resp_1',
      object: 'response',
      status: 'completed',
      model: 'm',
      output,
    });

    test(`a document: ${name}`, () => {
      const whole = readDocument('responses', response([item]));
      assert.notEqual(whole, 'error');
      each(item, (change) => {
        if (change.path.some((key) => asideOfItems.has(key))) return;
        const odd = readDocument('responses', response([put(item, change.path, change.by)]));
        assertKept(odd, whole, change);
      });
    });

    test(`a stream: ${name}`, () => {
      const events = responseEvents(response([item]), []);
      const whole = readStream('responses', events);
      const document = readDocument('responses', response([item]));
      assert.deepEqual(JSON.parse(whole), JSON.parse(document));
      each(events, (change) => {
        // Ids, numbers and places tell events apart; the response of the last event repeats what was told.
        if (change.path.some((key) => asideOfItems.has(key) || /_index$|_id$/.test(String(key))))
          return;
        // An event that does not say what it is counts for nothing: the others tell the item.
        if (change.path.length === 2 && change.path[1] === 'type') return;
        if (change.path.includes('response') || change.path.includes('sequence_number')) return;
        assertKept(readStream('responses', put(events, change.path, change.by)), whole, change);
      });
    });
  }
});
