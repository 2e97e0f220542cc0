/**
 * Reads answers of all dialects into one form that tests compare. Written against the wire
 * documents, not with the gateway's own readers: a shared mistake would stay hidden.
 */
import assert from 'node:assert/strict';
import { tryParse, tryParseObject } from '../../src/json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { clientDialects, type ClientDialect, type UpstreamDialect } from './dialects.ts';
import { listAt, numberAt, objectAt, textAt } from './members.ts';
import { messagesIn } from '../upstream/aws.ts';
import { foldConverse, readConverseDocument } from './reading-converse.ts';
import { foldGemini, readGeminiDocument } from './reading-gemini.ts';

export { listAt, numberAt, objectAt, textAt };

export type Dialect = 'chat' | 'messages';
export const dialects: readonly Dialect[] = ['chat', 'messages'];

/** Every dialect that clients speak, and upstreams as well: what upstreams alone speak is not one of them. */
export type AnyDialect = ClientDialect;
export const allDialects: readonly AnyDialect[] = clientDialects;

export interface SeenCall {
  readonly id: string;
  readonly name: string;
  /** Parsed; the text itself where it is no JSON. */
  readonly arguments: Json;
}

export interface SeenUsage {
  /** Neither read from nor written to a cache. */
  readonly fresh: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
}

/** What an answer says, whatever its dialect. */
export interface Seen {
  readonly model: string;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly SeenCall[];
  /** `stop`, `length`, `tools`, `filter`. */
  readonly finish: string;
  readonly usage: SeenUsage | undefined;
}

export interface SeenFrame {
  readonly event: string | undefined;
  readonly data: string;
}

/** The events of a stream; comments are left out. */
export function framesOf(text: string): readonly SeenFrame[] {
  return text
    .split(/\r\n\r\n|\n\n|\r\r/)
    .map((block) => {
      const lines = block.split(/\r\n|\n|\r/);
      const field = (name: string): readonly string[] =>
        lines
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ''));
      return { event: field('event')[0], data: field('data').join('\n') };
    })
    .filter((frame) => frame.data !== '');
}

const errorEnd = { messages: 'error', responses: 'response.failed' } as const;
const properEnds = {
  messages: ['message_stop'],
  responses: ['response.completed', 'response.incomplete'],
} as const;

/** How a stream ends: `proper`, `error`, or `none` when it has no end. */
export function endingOf(dialect: AnyDialect, text: string): 'proper' | 'error' | 'none' {
  const frames = framesOf(text);
  const isEnd = ({ event = '', data }: SeenFrame): boolean =>
    dialect === 'chat' ? data === '[DONE]' : properEnds[dialect].some((name) => name === event);
  const isError = ({ event, data }: SeenFrame): boolean =>
    dialect === 'chat' ? isObject(tryParseObject(data)?.['error']) : event === errorEnd[dialect];
  const endings = frames.filter((frame) => isEnd(frame) || isError(frame));
  assert.ok(endings.length <= 1, `more than one ending: ${JSON.stringify(endings)}`);
  const ending = endings[0];
  if (ending === undefined) return 'none';
  assert.equal(frames.at(-1), ending, `something follows the ending: ${text.slice(-300)}`);
  return isEnd(ending) ? 'proper' : 'error';
}

/** The error object of the stream's last frame; a Responses stream has it in the event before. */
export function streamError(text: string): JsonObject {
  const frames = framesOf(text);
  const last = frames.at(-1);
  const told = last?.event === 'response.failed' ? frames.at(-2) : last;
  return objectAt(tryParseObject(told?.data ?? '') ?? {}, 'error');
}

function parsed(text: string): Json {
  return tryParse(text === '' ? '{}' : text) ?? text;
}

const finishNames: { readonly [word: string]: string } = {
  stop: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  length: 'length',
  max_tokens: 'length',
  max_output_tokens: 'length',
  tool_calls: 'tools',
  tool_use: 'tools',
  content_filter: 'filter',
  refusal: 'filter',
};

function finishName(word: string): string {
  return finishNames[word] ?? word;
}

export function chatUsageOf(usage: JsonObject): SeenUsage {
  const prompt = objectAt(usage, 'prompt_tokens_details');
  const cacheRead = numberAt(prompt, 'cached_tokens');
  const cacheWrite = numberAt(prompt, 'cache_write_tokens');
  return {
    fresh: numberAt(usage, 'prompt_tokens') - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite,
    output: numberAt(usage, 'completion_tokens'),
    reasoning: numberAt(objectAt(usage, 'completion_tokens_details'), 'reasoning_tokens'),
  };
}

export function messagesUsageOf(usage: JsonObject): SeenUsage {
  return {
    fresh: numberAt(usage, 'input_tokens'),
    cacheRead: numberAt(usage, 'cache_read_input_tokens'),
    cacheWrite: numberAt(usage, 'cache_creation_input_tokens'),
    output: numberAt(usage, 'output_tokens'),
    reasoning: numberAt(objectAt(usage, 'output_tokens_details'), 'thinking_tokens'),
  };
}

export function responsesUsageOf(usage: JsonObject): SeenUsage {
  const input = objectAt(usage, 'input_tokens_details');
  const cacheRead = numberAt(input, 'cached_tokens');
  const cacheWrite = numberAt(input, 'cache_write_tokens');
  return {
    fresh: numberAt(usage, 'input_tokens') - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite,
    output: numberAt(usage, 'output_tokens'),
    reasoning: numberAt(objectAt(usage, 'output_tokens_details'), 'reasoning_tokens'),
  };
}

const documentReaders: { readonly [D in UpstreamDialect]: (body: JsonObject) => Seen } = {
  chat: readChatDocument,
  messages: readMessagesDocument,
  responses: readResponse,
  gemini: readGeminiDocument,
  converse: readConverseDocument,
};

/** Reads a whole answer. */
export function readDocument(dialect: UpstreamDialect, body: JsonObject): Seen {
  return documentReaders[dialect](body);
}

function readChatDocument(body: JsonObject): Seen {
  const choice = listAt(body, 'choices')[0] ?? {};
  const message = objectAt(choice, 'message');
  const content = message['content'];
  return {
    model: textAt(body, 'model'),
    text: typeof content === 'string' ? content : partTexts(content, 'text'),
    reasoning:
      textAt(message, 'reasoning_content') ||
      textAt(message, 'reasoning') ||
      partTexts(content, 'thinking'),
    calls: listAt(message, 'tool_calls').map((call) => ({
      id: textAt(call, 'id'),
      name: textAt(objectAt(call, 'function'), 'name'),
      arguments: parsed(textAt(objectAt(call, 'function'), 'arguments')),
    })),
    finish: finishName(textAt(choice, 'finish_reason')),
    usage: isObject(body['usage']) ? chatUsageOf(body['usage']) : undefined,
  };
}

/** Texts of content parts of one kind; Mistral nests the text parts of its thinking. */
function partTexts(content: Json | undefined, type: string): string {
  if (!Array.isArray(content)) return '';
  return content
    .filter(isObject)
    .filter((part) => part['type'] === type)
    .map((part) => {
      const value = part[type];
      return typeof value === 'string' ? value : partTexts(value, 'text');
    })
    .join('');
}

function readMessagesDocument(body: JsonObject): Seen {
  const blocks = listAt(body, 'content');
  const texts = (type: string, key: string): string =>
    blocks
      .filter((block) => block['type'] === type)
      .map((block) => textAt(block, key))
      .join('');
  return {
    model: textAt(body, 'model'),
    text: texts('text', 'text'),
    reasoning: texts('thinking', 'thinking'),
    calls: blocks
      .filter((block) => block['type'] === 'tool_use')
      .map((block) => ({
        id: textAt(block, 'id'),
        name: textAt(block, 'name'),
        arguments: block['input'] ?? {},
      })),
    finish: finishName(textAt(body, 'stop_reason')),
    usage: isObject(body['usage']) ? messagesUsageOf(body['usage']) : undefined,
  };
}

/** What the client is to run of an item, with its arguments; undefined for all else. */
function responsesCall(item: JsonObject): SeenCall | undefined {
  const called = (name: string, args: Json): SeenCall => ({
    id: textAt(item, 'call_id'),
    name,
    arguments: args,
  });
  switch (item['type']) {
    case 'function_call':
      return called(textAt(item, 'name'), parsed(textAt(item, 'arguments')));
    case 'custom_tool_call':
      return called(textAt(item, 'name'), { input: textAt(item, 'input') });
    case 'local_shell_call': {
      const { type: _type, ...action } = objectAt(item, 'action');
      return called('local_shell', action);
    }
    case 'apply_patch_call':
      return called('apply_patch', { operation: objectAt(item, 'operation') });
    case 'tool_search_call':
      return item['execution'] === 'client'
        ? called('tool_search', objectAt(item, 'arguments'))
        : undefined;
    default:
      return undefined;
  }
}

/** Text, reasoning and calls of a response's items; the reason of an incomplete one is its finish. */
function readResponse(body: JsonObject): Seen {
  const items = listAt(body, 'output');
  const of = (type: string): readonly JsonObject[] => items.filter((item) => item['type'] === type);
  const texts = (item: JsonObject, list: string, key = 'text'): readonly string[] =>
    listAt(item, list).map((part) => textAt(part, key));
  const calls = items.map(responsesCall).filter((call) => call !== undefined);
  const refused = of('message').some((item) => texts(item, 'content', 'refusal').join('') !== '');
  const status = textAt(body, 'status');
  const reason = textAt(objectAt(body, 'incomplete_details'), 'reason');
  const whole = refused ? 'content_filter' : calls.length > 0 ? 'tool_calls' : 'stop';
  return {
    model: textAt(body, 'model'),
    text: of('message')
      .flatMap((item) => texts(item, 'content'))
      .join(''),
    reasoning: of('reasoning')
      .map((item) => texts(item, 'summary').join('\n\n') || texts(item, 'content').join(''))
      .join(''),
    calls,
    finish: finishName(status === 'completed' ? whole : status === 'incomplete' ? reason : status),
    usage: isObject(body['usage']) ? responsesUsageOf(body['usage']) : undefined,
  };
}

const streamReaders: {
  readonly [D in UpstreamDialect]: (frames: readonly SeenFrame[]) => Seen;
} = {
  chat: foldChat,
  messages: foldMessages,
  responses: foldResponses,
  gemini: foldGemini,
  converse: foldConverse,
};

/** Folds a whole stream into what it says. */
export function readStream(dialect: UpstreamDialect, stream: string | Buffer): Seen {
  const frames = Buffer.isBuffer(stream)
    ? messagesIn(stream).map(({ type, payload }) => ({ event: type, data: payload }))
    : framesOf(stream);
  return streamReaders[dialect](frames);
}

/**
 * Items as their own events built them, and the rest of the last response: what the deltas say and what the last
 * event repeats is to be the same.
 */
function foldResponses(frames: readonly SeenFrame[]): Seen {
  let last: JsonObject = {};
  const items: JsonObject[] = [];
  const texts: string[] = [];
  let reasoning = '';
  for (const { data } of frames) {
    const event = tryParseObject(data) ?? {};
    if (isObject(event['response'])) last = event['response'];
    const delta = textAt(event, 'delta');
    const at = numberAt(event, 'output_index');
    switch (event['type']) {
      case 'response.output_item.done':
        items[at] = objectAt(event, 'item');
        break;
      case 'response.output_text.delta':
        texts[at] = (texts[at] ?? '') + delta;
        break;
      case 'response.reasoning_summary_part.added':
        if (numberAt(event, 'summary_index') > 0) reasoning += '\n\n';
        break;
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        reasoning += delta;
        break;
      default:
        break;
    }
  }
  const output = items.filter((item) => item !== undefined);
  const built = readResponse({ ...last, output });
  // Some servers leave the items out of their last event.
  const seen = listAt(last, 'output').length === 0 ? built : readResponse(last);
  if (built.calls.length > 0)
    assert.deepEqual(built.calls, seen.calls.slice(0, built.calls.length));
  texts.forEach((text, at) => {
    const whole = listAt(items[at] ?? {}, 'content').map((part) => textAt(part, 'text'));
    // Recordings may leave out deltas from the middle on.
    const told = items[at] === undefined ? seen.text : whole.join('');
    assert.ok(told.startsWith(text), `the end repeats the text: ${text} in ${told}`);
  });
  return { ...seen, reasoning: reasoning || seen.reasoning };
}

interface OpenCall {
  id: string;
  name: string;
  text: string;
}

function foldChat(frames: readonly SeenFrame[]): Seen {
  const calls: OpenCall[] = [];
  let [model, text, reasoning, finish] = ['', '', '', ''];
  let usage: SeenUsage | undefined;
  for (const frame of frames) {
    const chunk = tryParseObject(frame.data);
    if (chunk === undefined) continue;
    model ||= textAt(chunk, 'model');
    if (isObject(chunk['usage'])) usage = chatUsageOf(chunk['usage']);
    const choice = listAt(chunk, 'choices')[0];
    if (choice === undefined || numberAt(choice, 'index') !== 0) continue;
    const delta = objectAt(choice, 'delta');
    const content = delta['content'];
    text += typeof content === 'string' ? content : partTexts(content, 'text');
    reasoning +=
      textAt(delta, 'reasoning_content') ||
      textAt(delta, 'reasoning') ||
      partTexts(content, 'thinking');
    finish ||= textAt(choice, 'finish_reason');
    for (const part of listAt(delta, 'tool_calls')) foldChatCall(calls, part);
  }
  return {
    model,
    text,
    reasoning,
    calls: calls.map(({ id, name, text: json }) => ({ id, name, arguments: parsed(json) })),
    finish: finishName(finish),
    usage,
  };
}

function foldChatCall(calls: OpenCall[], part: JsonObject): void {
  const index = numberAt(part, 'index');
  const call = (calls[index] ??= { id: '', name: '', text: '' });
  const fn = objectAt(part, 'function');
  call.id ||= textAt(part, 'id');
  call.name ||= textAt(fn, 'name');
  call.text += textAt(fn, 'arguments');
}

function foldMessages(frames: readonly SeenFrame[]): Seen {
  const blocks: JsonObject[] = [];
  const inputs: string[] = [];
  let model = '';
  let stop: Json | undefined;
  let usage: JsonObject | undefined;
  for (const { data } of frames) {
    const event = tryParseObject(data) ?? {};
    const index = numberAt(event, 'index');
    switch (event['type']) {
      case 'message_start':
        model = textAt(objectAt(event, 'message'), 'model');
        usage = objectAt(objectAt(event, 'message'), 'usage');
        break;
      case 'content_block_start':
        blocks[index] = objectAt(event, 'content_block');
        break;
      case 'content_block_delta':
        foldBlockDelta(blocks, inputs, index, objectAt(event, 'delta'));
        break;
      case 'message_delta':
        stop = objectAt(event, 'delta')['stop_reason'] ?? stop;
        usage = { ...usage, ...withoutNulls(objectAt(event, 'usage')) };
        break;
      default:
        break;
    }
  }
  const content = blocks.map((block, index) => {
    const input = inputs[index];
    return input === undefined ? block : { ...block, input: parsed(input) };
  });
  return readMessagesDocument({
    model,
    content,
    stop_reason: stop ?? null,
    ...(usage === undefined ? {} : { usage }),
  });
}

function foldBlockDelta(
  blocks: JsonObject[],
  inputs: string[],
  index: number,
  delta: JsonObject,
): void {
  const block = blocks[index] ?? {};
  switch (delta['type']) {
    case 'text_delta':
      blocks[index] = { ...block, text: textAt(block, 'text') + textAt(delta, 'text') };
      return;
    case 'thinking_delta':
      blocks[index] = { ...block, thinking: textAt(block, 'thinking') + textAt(delta, 'thinking') };
      return;
    case 'signature_delta':
      blocks[index] = { ...block, signature: textAt(delta, 'signature') };
      return;
    case 'input_json_delta':
      inputs[index] = (inputs[index] ?? '') + textAt(delta, 'partial_json');
      return;
    default:
  }
}

function withoutNulls(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null));
}
