/** What the bench's callers ask and what its mock upstream answers, in both dialects. */
import type { Body, Dialect } from './protocol.ts';

/** Reported by the mock for every call, and checked by the load generator. */
export const promptTokens = 321;
export const unaryTokens = 57;

/**
 * Stands exactly once in the text of every content chunk and nowhere else in an answer, so that
 * chunks are counted by one byte, however a gateway frames or splits them.
 */
export const chunkMark = '~';

const sentence =
  'The harbour lights came on one after another while the last ferry turned into the wind. ';

/** The path that a dialect's clients call. */
export function pathOf(dialect: Dialect): string {
  return dialect === 'openai-chat' ? '/v1/chat/completions' : '/v1/messages';
}

/** JSON text of a request: a short history, or from 20 KB on 30 tools and a long history. */
export function requestBody(dialect: Dialect, model: string, body: Body): string {
  const size = body.kind === 'unary' ? body.bytes : 1400;
  const stream = body.kind === 'stream';
  const tools =
    size >= 20_000 ? { tools: Array.from({ length: 30 }, (_, i) => tool(dialect, i)) } : {};
  const build = (messages: readonly object[]): string =>
    dialect === 'openai-chat'
      ? JSON.stringify({
          model,
          messages: [{ role: 'system', content: sentence.repeat(3).trim() }, ...messages],
          ...tools,
          temperature: 0.7,
          max_completion_tokens: 1024,
          ...(stream ? { stream, stream_options: { include_usage: true } } : {}),
        })
      : JSON.stringify({
          model,
          max_tokens: 1024,
          system: sentence.repeat(3).trim(),
          messages,
          ...tools,
          temperature: 0.7,
          ...(stream ? { stream } : {}),
        });
  const messages: object[] = [];
  // Odd number of turns: the history ends with the user.
  for (let missing = size - build([]).length; missing > 0 || messages.length % 2 === 0;) {
    const role = messages.length % 2 === 0 ? 'user' : 'assistant';
    const length = Math.max(20, Math.min(turnBytes(size), missing - 36));
    const message = { role, content: prose(length) };
    missing -= JSON.stringify(message).length + (messages.length === 0 ? 0 : 1);
    messages.push(message);
  }
  return build(messages);
}

/** Longer histories have longer turns: files that tools have read. */
function turnBytes(size: number): number {
  if (size >= 500_000) return 20_000;
  return size >= 20_000 ? 2000 : 300;
}

function prose(length: number): string {
  return sentence.repeat(Math.ceil(length / sentence.length)).slice(0, length);
}

function tool(dialect: Dialect, index: number): object {
  const schema = {
    type: 'object',
    properties: {
      path: { type: 'string', description: sentence },
      limit: { type: 'integer', minimum: 1, maximum: 2000 },
      mode: { type: 'string', enum: ['fast', 'exact', 'both'] },
    },
    required: ['path'],
    additionalProperties: false,
  };
  const name = `tool_${index}`;
  const description = prose(400);
  return dialect === 'openai-chat'
    ? { type: 'function', function: { name, description, parameters: schema } }
    : { name, description, input_schema: schema };
}

/** A whole answer of about 600 bytes. */
export function unaryAnswer(dialect: Dialect): string {
  const text = prose(240);
  if (dialect === 'openai-chat') {
    return JSON.stringify({
      ...chatHead('chat.completion'),
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: text },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: chatUsage(unaryTokens),
    });
  }
  return JSON.stringify({
    ...messageHead(),
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    usage: { ...messageUsage(), output_tokens: unaryTokens },
  });
}

/** The frames of a stream: what stands before, between (used in turn, over and over) and after the chunks. */
export interface StreamFrames {
  readonly opening: readonly string[];
  readonly contents: readonly string[];
  readonly closing: readonly string[];
}

/**
 * Frames of a stream that reports `chunks` output tokens. A chat chunk has about 250 bytes; `behindMark`
 * is put behind the mark of each.
 */
export function streamFrames(dialect: Dialect, chunks: number, behindMark = ''): StreamFrames {
  const texts = Array.from(
    { length: 16 },
    (_, i) => `${chunkMark}${behindMark}${sentence.slice(i, i + 38)} ${i}`,
  );
  return dialect === 'openai-chat' ? chatFrames(texts, chunks) : messageFrames(texts, chunks);
}

function chatFrames(texts: readonly string[], chunks: number): StreamFrames {
  const frame = (delta: object, finish: string | null): string =>
    data({
      ...chatHead('chat.completion.chunk'),
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    });
  return {
    opening: [frame({ role: 'assistant', content: '' }, null)],
    contents: texts.map((content) => frame({ content }, null)),
    closing: [
      frame({}, 'stop'),
      data({ ...chatHead('chat.completion.chunk'), choices: [], usage: chatUsage(chunks) }),
      'data: [DONE]\n\n',
    ],
  };
}

function messageFrames(texts: readonly string[], chunks: number): StreamFrames {
  const frame = (event: { readonly type: string; readonly [key: string]: unknown }): string =>
    `event: ${event.type}\n${data(event)}`;
  return {
    opening: [
      frame({
        type: 'message_start',
        message: {
          ...messageHead(),
          content: [],
          stop_reason: null,
          usage: { ...messageUsage(), output_tokens: 1 },
        },
      }),
      frame({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ],
    contents: texts.map((text) =>
      frame({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    ),
    closing: [
      frame({ type: 'content_block_stop', index: 0 }),
      frame({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { ...messageUsage(), output_tokens: chunks },
      }),
      frame({ type: 'message_stop' }),
    ],
  };
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function chatHead(object: string): object {
  return {
    id: 'chatcmpl-B3nchB3nchB3nchB3nch01',
    object,
    created: 1_767_225_600,
    model: 'm-2026-01-01',
  };
}

function chatUsage(completion: number): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completion,
    total_tokens: promptTokens + completion,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  };
}

function messageHead(): object {
  return {
    id: 'msg_01B3nchB3nchB3nchB3nch01',
    type: 'message',
    role: 'assistant',
    model: 'm-2026-01-01',
    stop_sequence: null,
  };
}

function messageUsage(): object {
  return { input_tokens: promptTokens, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
}
