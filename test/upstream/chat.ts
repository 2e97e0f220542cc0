/** Legal documents and streams of a chat-completions server (wire/chat-completions.md §4, §5). */
import type { JsonObject } from '../../src/json/value.ts';
import type { Answer } from './scripted.ts';

export interface ChatToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface ChatReply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly refusal?: string;
  readonly calls?: readonly ChatToolCall[];
  readonly finish?: string;
  readonly usage?: JsonObject | null;
}

export const chatUsage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 } as const;

const identity = {
  id: 'chatcmpl-scripted',
  created: 1_700_000_000,
  model: 'upstream-model',
} as const;

function finishOf(reply: ChatReply): string {
  return reply.finish ?? ((reply.calls ?? []).length > 0 ? 'tool_calls' : 'stop');
}

function callOf(call: ChatToolCall): JsonObject {
  return {
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  };
}

/** A whole answer. */
export function chatDocument(reply: ChatReply): JsonObject {
  const usage = reply.usage === undefined ? chatUsage : reply.usage;
  return {
    ...identity,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: reply.text ?? null,
          refusal: reply.refusal ?? null,
          ...(reply.reasoning === undefined ? {} : { reasoning_content: reply.reasoning }),
          ...(reply.calls === undefined ? {} : { tool_calls: reply.calls.map(callOf) }),
        },
        logprobs: null,
        finish_reason: finishOf(reply),
      },
    ],
    ...(usage === null ? {} : { usage }),
  };
}

/** One chunk with the given delta. */
export function chatChunk(
  delta: JsonObject,
  finish: string | null = null,
  more: JsonObject = {},
): JsonObject {
  return {
    ...identity,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    usage: null,
    ...more,
  };
}

export function chatUsageChunk(usage: JsonObject): JsonObject {
  return { ...identity, object: 'chat.completion.chunk', choices: [], usage };
}

/** The chunks of a stream, as OpenAI sends them: role first, one call after the other, usage last. */
export function chatChunks(reply: ChatReply): readonly JsonObject[] {
  const usage = reply.usage === undefined ? chatUsage : reply.usage;
  return [
    chatChunk({ role: 'assistant', content: '', refusal: null }),
    ...halves(reply.reasoning).map((part) => chatChunk({ reasoning_content: part })),
    ...halves(reply.text).map((part) => chatChunk({ content: part })),
    ...halves(reply.refusal).map((part) => chatChunk({ refusal: part })),
    ...(reply.calls ?? []).flatMap((call, index) => [
      chatChunk({
        tool_calls: [
          { index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } },
        ],
      }),
      ...halves(call.arguments).map((part) =>
        chatChunk({ tool_calls: [{ index, function: { arguments: part } }] }),
      ),
    ]),
    chatChunk({}, finishOf(reply)),
    ...(usage === null ? [] : [chatUsageChunk(usage)]),
  ];
}

/** A text in two parts, so that every stream has deltas; none for no text. */
export function halves(text: string | undefined): readonly string[] {
  if (text === undefined || text === '') return [];
  // A text of a megabyte is not taken apart by characters.
  const characters = /[\ud800-\udfff]/.test(text) ? [...text] : undefined;
  if (characters === undefined) {
    const half = Math.ceil(text.length / 2);
    return [text.slice(0, half), text.slice(half)].filter((part) => part !== '');
  }
  const middle = Math.ceil(characters.length / 2);
  return [characters.slice(0, middle).join(''), characters.slice(middle).join('')].filter(
    (part) => part !== '',
  );
}

export function chatFrame(chunk: JsonObject | string): string {
  return `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`;
}

export const chatDone = 'data: [DONE]\n\n';

export function chatFrames(reply: ChatReply): readonly string[] {
  return [...chatChunks(reply).map((chunk) => chatFrame(chunk)), chatDone];
}

/** The answer to a request, streamed or whole as asked. */
export function chatAnswer(reply: ChatReply, stream: boolean): Answer {
  return stream
    ? { body: chatFrames(reply).join(''), framing: 'chunked' }
    : { body: JSON.stringify(chatDocument(reply)) };
}

export function chatError(message: string, type: string, code: string | null): string {
  return JSON.stringify({ error: { message, type, param: null, code } });
}
