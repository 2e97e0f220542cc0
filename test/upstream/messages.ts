/** Legal documents and streams of a messages server (wire/messages.md §6, §7). */
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { halves, type ChatToolCall } from './chat.ts';
import type { Answer } from './scripted.ts';

export interface MessagesReply {
  readonly text?: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly calls?: readonly ChatToolCall[];
  readonly stop?: string;
  readonly usage?: JsonObject;
}

export const messagesUsage = {
  input_tokens: 9,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 5,
} as const;

const identity = {
  id: 'msg_scripted',
  type: 'message',
  role: 'assistant',
  model: 'upstream-model',
} as const;

function stopOf(reply: MessagesReply): string {
  return reply.stop ?? ((reply.calls ?? []).length > 0 ? 'tool_use' : 'end_turn');
}

function blocksOf(reply: MessagesReply): readonly JsonObject[] {
  return [
    ...(reply.thinking === undefined
      ? []
      : [{ type: 'thinking', thinking: reply.thinking, signature: reply.signature ?? 'sig' }]),
    ...(reply.text === undefined ? [] : [{ type: 'text', text: reply.text, citations: null }]),
    ...(reply.calls ?? []).map((call) => ({
      type: 'tool_use',
      id: call.id,
      name: call.name,
      input: tryParseObject(call.arguments) ?? {},
    })),
  ];
}

/** A whole answer. */
export function messagesDocument(reply: MessagesReply): JsonObject {
  return {
    ...identity,
    content: blocksOf(reply),
    stop_reason: stopOf(reply),
    stop_sequence: null,
    usage: reply.usage ?? messagesUsage,
  };
}

export function messageStart(usage: JsonObject = messagesUsage): JsonObject {
  return {
    type: 'message_start',
    message: {
      ...identity,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...usage, output_tokens: 1 },
    },
  };
}

export function blockStart(index: number, block: JsonObject): JsonObject {
  return { type: 'content_block_start', index, content_block: block };
}

export function blockDelta(index: number, delta: JsonObject): JsonObject {
  return { type: 'content_block_delta', index, delta };
}

export function blockStop(index: number): JsonObject {
  return { type: 'content_block_stop', index };
}

export function textBlock(index: number, text: string): readonly JsonObject[] {
  return [
    blockStart(index, { type: 'text', text: '' }),
    ...halves(text).map((part) => blockDelta(index, { type: 'text_delta', text: part })),
    blockStop(index),
  ];
}

export function messageDelta(stop: string | null, usage: JsonObject = messagesUsage): JsonObject {
  return { type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage };
}

export const messageStop: JsonObject = { type: 'message_stop' };

/** The events of a stream. */
export function messagesEvents(reply: MessagesReply): readonly JsonObject[] {
  const usage = reply.usage ?? messagesUsage;
  const blocks: JsonObject[] = [];
  let index = 0;
  if (reply.thinking !== undefined) {
    blocks.push(
      blockStart(index, { type: 'thinking', thinking: '', signature: '' }),
      ...halves(reply.thinking).map((part) =>
        blockDelta(0, { type: 'thinking_delta', thinking: part }),
      ),
      blockDelta(index, { type: 'signature_delta', signature: reply.signature ?? 'sig' }),
      blockStop(index),
    );
    index += 1;
  }
  if (reply.text !== undefined) {
    blocks.push(...textBlock(index, reply.text));
    index += 1;
  }
  for (const call of reply.calls ?? []) {
    blocks.push(...toolBlock(index, call));
    index += 1;
  }
  return [
    messageStart(usage),
    { type: 'ping' },
    ...blocks,
    messageDelta(stopOf(reply), usage),
    messageStop,
  ];
}

function toolBlock(index: number, call: ChatToolCall): readonly JsonObject[] {
  return [
    blockStart(index, { type: 'tool_use', id: call.id, name: call.name, input: {} }),
    blockDelta(index, { type: 'input_json_delta', partial_json: '' }),
    ...halves(call.arguments).map((part) =>
      blockDelta(index, { type: 'input_json_delta', partial_json: part }),
    ),
    blockStop(index),
  ];
}

export function messagesFrame(event: JsonObject): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;
}

export function messagesFrames(reply: MessagesReply): readonly string[] {
  return messagesEvents(reply).map((event) => messagesFrame(event));
}

/** The answer to a request, streamed or whole as asked. */
export function messagesAnswer(reply: MessagesReply, stream: boolean): Answer {
  return stream
    ? { body: messagesFrames(reply).join(''), framing: 'chunked' }
    : { body: JSON.stringify(messagesDocument(reply)) };
}

export function messagesError(message: string, type: string): string {
  return JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_upstream' });
}
