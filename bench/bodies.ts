/** What the bench's callers ask and what its mock upstream answers, in each dialect. */
import type { Body, Dialect } from './protocol.ts';

/** Reported by the mock for every call, and checked by the load generator. */
export const promptTokens = 321;
export const unaryTokens = 57;

/**
 * Is exactly once in the text of every content chunk and nowhere else in an answer, so that
 * chunks are counted by one byte, however a gateway frames or splits them.
 */
export const chunkMark = '~';

/** How often the mark of a chunk is in an answer: the last four events of a Responses stream repeat its text. */
export function marksPerChunk(dialect: Dialect): number {
  return dialect === 'openai-responses' ? 5 : 1;
}

const sentence =
  'The harbour lights came on one after another while the last ferry turned into the wind. ';

/** The path that a dialect's clients call. */
export function pathOf(dialect: Dialect): string {
  switch (dialect) {
    case 'openai-chat':
      return '/v1/chat/completions';
    case 'anthropic-messages':
      return '/v1/messages';
    case 'openai-responses':
      return '/v1/responses';
    default:
      return dialect satisfies never;
  }
}

/** JSON text of a request: a short history, or from 20 KB on 30 tools and a long history. */
export function requestBody(dialect: Dialect, model: string, body: Body): string {
  const size = body.kind === 'unary' ? body.bytes : 1400;
  const stream = body.kind === 'stream';
  const tools =
    size >= 20_000 ? { tools: Array.from({ length: 30 }, (_, i) => tool(dialect, i)) } : {};
  const system = sentence.repeat(3).trim();
  const common = { ...tools, temperature: 0.7, ...(stream ? { stream } : {}) };
  const build = (messages: readonly object[]): string => {
    switch (dialect) {
      case 'openai-chat':
        return JSON.stringify({
          model,
          messages: [{ role: 'system', content: system }, ...messages],
          ...common,
          max_completion_tokens: 1024,
          ...(stream ? { stream_options: { include_usage: true } } : {}),
        });
      case 'anthropic-messages':
        return JSON.stringify({ model, max_tokens: 1024, system, messages, ...common });
      case 'openai-responses':
        return JSON.stringify({
          model,
          instructions: system,
          input: messages,
          ...common,
          max_output_tokens: 1024,
          store: body.kind === 'unary' && body.stored === true,
        });
      default:
        return dialect satisfies never;
    }
  };
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
  switch (dialect) {
    case 'openai-chat':
      return { type: 'function', function: { name, description, parameters: schema } };
    case 'anthropic-messages':
      return { name, description, input_schema: schema };
    case 'openai-responses':
      return { type: 'function', name, description, parameters: schema };
    default:
      return dialect satisfies never;
  }
}

/** A whole answer of about 600 bytes. */
export function unaryAnswer(dialect: Dialect): string {
  const text = prose(240);
  switch (dialect) {
    case 'openai-chat':
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
    case 'anthropic-messages':
      return JSON.stringify({
        ...messageHead(),
        content: [{ type: 'text', text }],
        stop_reason: 'end_turn',
        usage: { ...messageUsage(), output_tokens: unaryTokens },
      });
    case 'openai-responses':
      return JSON.stringify(endedResponse(text, unaryTokens));
    default:
      return dialect satisfies never;
  }
}

/** The frames of a stream: what is before, between (used in turn, over and over) and after the chunks. */
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
  const texts = contentTexts(behindMark);
  switch (dialect) {
    case 'openai-chat':
      return chatFrames(texts, chunks);
    case 'anthropic-messages':
      return messageFrames(texts, chunks);
    case 'openai-responses':
      return responseFrames(texts, chunks);
    default:
      return dialect satisfies never;
  }
}

/** The texts of the chunks, used in turn. */
export function contentTexts(behindMark = ''): readonly string[] {
  return Array.from(
    { length: 16 },
    (_, i) => `${chunkMark}${behindMark}${sentence.slice(i, i + 38)} ${i}`,
  );
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

/** Numbers of the events repeat from chunk to chunk: the frames are made once. */
function responseFrames(texts: readonly string[], chunks: number): StreamFrames {
  const frame = (type: string, more: object, sequence_number: number): string =>
    `event: ${type}\n${data({ type, ...more, sequence_number })}`;
  const place = { item_id: outputItemId, output_index: 0 };
  const text = Array.from({ length: chunks }, (_, i) => texts[i % texts.length]).join('');
  const ended = endedResponse(text, chunks);
  const [item] = ended.output;
  const part = { type: 'output_text', annotations: [], logprobs: [], text };
  return {
    opening: [
      frame('response.created', { response: openResponse() }, 0),
      frame('response.in_progress', { response: openResponse() }, 1),
      frame(
        'response.output_item.added',
        { output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
        2,
      ),
      frame(
        'response.content_part.added',
        { ...place, content_index: 0, part: { ...part, text: '' } },
        3,
      ),
    ],
    contents: texts.map((delta, i) =>
      frame(
        'response.output_text.delta',
        { ...place, content_index: 0, delta, logprobs: [], obfuscation: 'x7Qm2Lk0' },
        4 + i,
      ),
    ),
    closing: [
      frame('response.output_text.done', { ...place, content_index: 0, text, logprobs: [] }, 900),
      frame('response.content_part.done', { ...place, content_index: 0, part }, 901),
      frame('response.output_item.done', { output_index: 0, item }, 902),
      frame('response.completed', { response: ended }, 903),
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

const outputItemId = 'msg_B3nchB3nchB3nchB3nch0123';

/** The response as the first two events of a stream carry it, with what the service echoes. */
function openResponse(): object {
  return {
    id: 'resp_B3nchB3nchB3nchB3nch0123',
    object: 'response',
    created_at: 1_767_225_600,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: 1024,
    model: 'm-2026-01-01',
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    service_tier: 'auto',
    store: false,
    temperature: 0.7,
    text: { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage: null,
    metadata: {},
  };
}

function endedResponse(
  text: string,
  output: number,
): { readonly output: readonly object[]; readonly [member: string]: unknown } {
  return {
    ...openResponse(),
    status: 'completed',
    service_tier: 'default',
    output: [
      {
        id: outputItemId,
        type: 'message',
        status: 'completed',
        content: [{ type: 'output_text', annotations: [], logprobs: [], text }],
        role: 'assistant',
      },
    ],
    usage: {
      input_tokens: promptTokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: promptTokens + output,
    },
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
