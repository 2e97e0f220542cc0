/** The official SDKs, oldest major in wide use and newest, behind one small interface for tests. */
import Anthropic from '@anthropic-ai/sdk';
import AnthropicOld from '@anthropic-ai/sdk-0';
import OpenAI from 'openai';
import OpenAIOld from 'openai-4';
import type { JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { clientKey } from './keys.ts';
import { readDocument, type AnyDialect, type Dialect, type Seen } from './reading.ts';
import { StreamWatch } from './stream-watch.ts';

/** A tool round trip in no particular dialect. */
export interface Question {
  readonly model: string;
  readonly text: string;
  readonly tools?: readonly SdkTool[];
  /** The answer's calls and their results, for the second turn. */
  readonly results?: readonly SdkResult[];
  readonly maxTokens?: number;
}

export interface SdkTool {
  readonly name: string;
  readonly parameters: { readonly type: 'object'; readonly properties: Record<string, object> };
}

export interface SdkResult {
  readonly id: string;
  readonly name: string;
  readonly arguments: JsonObject;
  readonly result: string;
}

export interface SdkOptions {
  readonly signal?: AbortSignal;
}

/** What an SDK delivered. */
export interface SdkAnswer extends Seen {
  readonly requestId: string;
}

export interface SdkClient {
  /** `create` without streaming. */
  plain(question: Question, options?: SdkOptions): Promise<SdkAnswer>;
  /** `create` with streaming, iterated; gives the text that the chunks carried. */
  iterate(
    question: Question,
    onText?: (text: string) => void,
    options?: SdkOptions,
  ): Promise<string>;
  /** The stream helper and its final message. */
  final(question: Question, options?: SdkOptions): Promise<Seen>;
  models(): Promise<readonly string[]>;
  model(id: string): Promise<string>;
  countTokens?(question: Question): Promise<number>;
}

export interface SdkSettings {
  readonly url: string;
  readonly maxRetries?: number;
  readonly key?: string;
  /** Instead of the network; the SDK's own transport where it is left out. */
  readonly fetch?: typeof fetch;
  /** The relayed frames are odd in a way that the SDK does not mind. */
  readonly oddFrames?: true;
}

export interface Sdk<D = Dialect> {
  readonly name: string;
  readonly dialect: D;
  connect(settings: SdkSettings): SdkClient;
}

/** Messages requests must say how much at most. */
const defaultMaxTokens = 256;

function asJson(value: object): JsonObject {
  return tryParseObject(JSON.stringify(value)) ?? {};
}

type ChatMessages = OpenAI.ChatCompletionMessageParam[] & OpenAIOld.ChatCompletionMessageParam[];

function chatMessages(question: Question): ChatMessages {
  const messages: ChatMessages = [{ role: 'user', content: question.text }];
  const results = question.results ?? [];
  if (results.length === 0) return messages;
  messages.push({
    role: 'assistant',
    content: null,
    tool_calls: results.map((result) => ({
      id: result.id,
      type: 'function',
      function: { name: result.name, arguments: JSON.stringify(result.arguments) },
    })),
  });
  for (const result of results) {
    messages.push({ role: 'tool', tool_call_id: result.id, content: result.result });
  }
  return messages;
}

function chatBody(question: Question): {
  model: string;
  messages: ChatMessages;
  max_tokens?: number;
  tools?: { type: 'function'; function: { name: string; parameters: Record<string, unknown> } }[];
} {
  const { tools } = question;
  return {
    model: question.model,
    messages: chatMessages(question),
    ...(question.maxTokens === undefined ? {} : { max_tokens: question.maxTokens }),
    ...(tools === undefined
      ? {}
      : {
          tools: tools.map((tool) => ({
            type: 'function' as const,
            function: { name: tool.name, parameters: { ...tool.parameters } },
          })),
        }),
  };
}

function connectOpenAI({ url, maxRetries = 0, key = clientKey, ...more }: SdkSettings): SdkClient {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries, ...transport(more) });
  return {
    plain: async (question, options) => {
      const answer = await client.chat.completions.create(chatBody(question), { ...options });
      return { ...readDocument('chat', asJson(answer)), requestId: answer._request_id ?? '' };
    },
    iterate: async (question, onText, options) => {
      const stream = await client.chat.completions.create(
        { ...chatBody(question), stream: true },
        { ...options },
      );
      let all = '';
      for await (const chunk of stream) {
        const text = chunk.choices[0]?.delta.content ?? '';
        all += text;
        if (text !== '') onText?.(text);
      }
      return all;
    },
    final: async (question, options) => {
      const stream = client.chat.completions.stream(
        { ...chatBody(question), stream_options: { include_usage: true } },
        { ...options },
      );
      return readDocument('chat', asJson(await stream.finalChatCompletion()));
    },
    models: async () => {
      const ids: string[] = [];
      for await (const model of client.models.list()) ids.push(model.id);
      return ids;
    },
    model: async (id) => (await client.models.retrieve(id)).id,
  };
}

function connectOpenAIOld({ url, maxRetries = 0, key = clientKey, fetch }: SdkSettings): SdkClient {
  const client = new OpenAIOld({
    baseURL: `${url}/v1`,
    apiKey: key,
    maxRetries,
    // Typed by node-fetch, which has the same form.
    ...(fetch === undefined ? {} : { fetch: fetch as never }),
  });
  return {
    plain: async (question, options) => {
      const answer = await client.chat.completions.create(chatBody(question), { ...options });
      return { ...readDocument('chat', asJson(answer)), requestId: answer._request_id ?? '' };
    },
    iterate: async (question, onText, options) => {
      const stream = await client.chat.completions.create(
        { ...chatBody(question), stream: true },
        { ...options },
      );
      let all = '';
      for await (const chunk of stream) {
        const text = chunk.choices[0]?.delta.content ?? '';
        all += text;
        if (text !== '') onText?.(text);
      }
      return all;
    },
    final: async (question, options) => {
      const stream = client.beta.chat.completions.stream(
        { ...chatBody(question), stream_options: { include_usage: true } },
        { ...options },
      );
      return readDocument('chat', asJson(await stream.finalChatCompletion()));
    },
    models: async () => {
      const ids: string[] = [];
      for await (const model of client.models.list()) ids.push(model.id);
      return ids;
    },
    model: async (id) => (await client.models.retrieve(id)).id,
  };
}

function responsesBody(
  question: Question,
): Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'stream'> {
  const { model, text, results = [], tools, maxTokens } = question;
  return {
    model,
    store: false,
    input: [
      { role: 'user', content: text },
      ...results.map((result) => ({
        type: 'function_call' as const,
        call_id: result.id,
        name: result.name,
        arguments: JSON.stringify(result.arguments),
      })),
      ...results.map(({ id, result }) => ({
        type: 'function_call_output' as const,
        call_id: id,
        output: result,
      })),
    ],
    ...(maxTokens === undefined ? {} : { max_output_tokens: maxTokens }),
    ...(tools === undefined
      ? {}
      : {
          tools: tools.map(({ name, parameters }) => ({
            type: 'function' as const,
            name,
            parameters: { ...parameters },
            strict: false,
          })),
        }),
  };
}

function connectResponses({
  url,
  maxRetries = 0,
  key = clientKey,
  ...more
}: SdkSettings): SdkClient {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries, ...transport(more) });
  return {
    ...connectOpenAI({ url, maxRetries, key, ...more }),
    plain: async (question, options) => {
      const answer = await client.responses.create(responsesBody(question), { ...options });
      return { ...readDocument('responses', asJson(answer)), requestId: answer._request_id ?? '' };
    },
    iterate: async (question, onText, options) => {
      const stream = await client.responses.create(
        { ...responsesBody(question), stream: true },
        { ...options },
      );
      let all = '';
      for await (const event of stream) {
        if (event.type !== 'response.output_text.delta') continue;
        all += event.delta;
        onText?.(event.delta);
      }
      return all;
    },
    final: async (question, options) => {
      const stream = client.responses.stream(responsesBody(question), { ...options });
      return readDocument('responses', asJson(await stream.finalResponse()));
    },
  };
}

type MessagesMessages = Anthropic.MessageParam[] & AnthropicOld.MessageParam[];

function messagesMessages(question: Question): MessagesMessages {
  const messages: MessagesMessages = [{ role: 'user', content: question.text }];
  const results = question.results ?? [];
  if (results.length === 0) return messages;
  messages.push(
    {
      role: 'assistant',
      content: results.map((result) => ({
        type: 'tool_use',
        id: result.id,
        name: result.name,
        input: result.arguments,
      })),
    },
    {
      role: 'user',
      content: results.map((result) => ({
        type: 'tool_result',
        tool_use_id: result.id,
        content: result.result,
      })),
    },
  );
  return messages;
}

function messagesBody(question: Question): {
  model: string;
  messages: MessagesMessages;
  max_tokens: number;
  tools?: { name: string; input_schema: SdkTool['parameters'] }[];
} {
  const { tools } = question;
  return {
    model: question.model,
    max_tokens: question.maxTokens ?? defaultMaxTokens,
    messages: messagesMessages(question),
    ...(tools === undefined
      ? {}
      : { tools: tools.map((tool) => ({ name: tool.name, input_schema: tool.parameters })) }),
  };
}

function connectAnthropic({
  url,
  maxRetries = 0,
  key = clientKey,
  ...more
}: SdkSettings): SdkClient {
  const client = new Anthropic({ baseURL: url, apiKey: key, maxRetries, ...transport(more) });
  return {
    plain: async (question, options) => {
      const answer = await client.messages.create(messagesBody(question), { ...options });
      return { ...readDocument('messages', asJson(answer)), requestId: answer._request_id ?? '' };
    },
    iterate: async (question, onText, options) => {
      const stream = await client.messages.create(
        { ...messagesBody(question), stream: true },
        { ...options },
      );
      let all = '';
      for await (const event of stream) {
        if (event.type !== 'content_block_delta' || event.delta.type !== 'text_delta') continue;
        all += event.delta.text;
        onText?.(event.delta.text);
      }
      return all;
    },
    final: async (question, options) => {
      const stream = client.messages.stream(messagesBody(question), { ...options });
      return readDocument('messages', asJson(await stream.finalMessage()));
    },
    models: async () => {
      const ids: string[] = [];
      for await (const model of client.models.list()) ids.push(model.id);
      return ids;
    },
    model: async (id) => (await client.models.retrieve(id)).id,
    countTokens: async ({ model, text }) => {
      const messages = [{ role: 'user' as const, content: text }];
      return (await client.messages.countTokens({ model, messages })).input_tokens;
    },
  };
}

function connectAnthropicOld({
  url,
  maxRetries = 0,
  key = clientKey,
  ...more
}: SdkSettings): SdkClient {
  const client = new AnthropicOld({ baseURL: url, apiKey: key, maxRetries, ...transport(more) });
  return {
    plain: async (question, options) => {
      const answer = await client.messages.create(messagesBody(question), { ...options });
      return { ...readDocument('messages', asJson(answer)), requestId: answer._request_id ?? '' };
    },
    iterate: async (question, onText, options) => {
      const stream = await client.messages.create(
        { ...messagesBody(question), stream: true },
        { ...options },
      );
      let all = '';
      for await (const event of stream) {
        if (event.type !== 'content_block_delta' || event.delta.type !== 'text_delta') continue;
        all += event.delta.text;
        onText?.(event.delta.text);
      }
      return all;
    },
    final: async (question, options) => {
      const stream = client.messages.stream(messagesBody(question), { ...options });
      return readDocument('messages', asJson(await stream.finalMessage()));
    },
    models: async () => {
      const ids: string[] = [];
      for await (const model of client.models.list()) ids.push(model.id);
      return ids;
    },
    model: async (id) => (await client.models.retrieve(id)).id,
    countTokens: async ({ model, text }) => {
      const messages = [{ role: 'user' as const, content: text }];
      return (await client.messages.countTokens({ model, messages })).input_tokens;
    },
  };
}

function transport({ fetch }: Partial<SdkSettings>): { fetch?: typeof globalThis.fetch } {
  return fetch === undefined ? {} : { fetch };
}

type Connect = (settings: SdkSettings) => SdkClient;

/** The same client; each stream that it reads to the end is looked at as well (C3). */
function watching(dialect: AnyDialect, connect: Connect): Connect {
  return (settings) => {
    if (settings.oddFrames !== undefined) return connect(settings);
    const watch = new StreamWatch(dialect, settings.fetch ?? fetch);
    const client = connect({ ...settings, fetch: watch.fetch });
    const watched = async <T>(answer: Promise<T>): Promise<T> => {
      const value = await answer;
      await watch.settled();
      return value;
    };
    return {
      ...client,
      iterate: (...asked) => watched(client.iterate(...asked)),
      final: (...asked) => watched(client.final(...asked)),
    };
  };
}

export const sdks: readonly Sdk[] = [
  { name: 'openai', dialect: 'chat', connect: watching('chat', connectOpenAI) },
  // Its own transport is part of the test, so its requests are not recorded.
  { name: 'openai-4', dialect: 'chat', connect: connectOpenAIOld },
  {
    name: '@anthropic-ai/sdk',
    dialect: 'messages',
    connect: watching('messages', connectAnthropic),
  },
  {
    name: '@anthropic-ai/sdk-0',
    dialect: 'messages',
    connect: watching('messages', connectAnthropicOld),
  },
];

export const allSdks: readonly Sdk<AnyDialect>[] = [
  ...sdks,
  {
    name: 'openai responses',
    dialect: 'responses',
    connect: watching('responses', connectResponses),
  },
];
