/** How clients ask, and what they keep of the answer as the assistant message of their next request. */
import Anthropic from '@anthropic-ai/sdk';
import AnthropicOld from '@anthropic-ai/sdk-0';
import OpenAI from 'openai';
import OpenAIOld from 'openai-4';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import { tryParseObject } from '../../src/json/parse.ts';
import { send } from '../support/http.ts';
import { clientKey } from '../support/keys.ts';
import type { ClientDialect } from '../support/dialects.ts';
import { framesOf, listAt, objectAt, textAt } from '../support/reading.ts';
import { endpointOf } from '../support/requests.ts';

export interface History {
  readonly name: string;
  readonly dialect: ClientDialect;
  readonly stream: boolean;
  /**
   * `all` it got; all, with every string of a list `joined`, as the Python helper does; the `last`
   * piece of each member that it does not know; `standard` members only.
   */
  readonly keeps: 'all' | 'joined' | 'last' | 'standard';
  /** The second request names the first response, and has no more than what is new. */
  readonly refers?: true;
  /** Asks the first question; gives the assistant message for the second request, or `items` and `id` of a response. */
  ask(url: string, model: string): Promise<JsonObject>;
}

export const question = { role: 'user', content: 'What time and day is it?' } as const;
const names = ['get_time', 'get_date'] as const;
const properties = { zone: { type: 'string' } } as const;
const schema = { type: 'object' as const, properties };
const chatTools = names.map((name) => ({
  type: 'function' as const,
  function: { name, parameters: { ...schema } },
}));
const messagesTools = names.map((name) => ({ name, input_schema: schema }));
const cap = 8000;

/** A request that makes the model think. */
export function chatBody(model: string) {
  return {
    model,
    messages: [question],
    tools: chatTools,
    max_completion_tokens: cap,
    reasoning_effort: 'high' as const,
  };
}

export function messagesBody(model: string) {
  return {
    model,
    messages: [question],
    tools: messagesTools,
    max_tokens: cap,
    thinking: { type: 'enabled' as const, budget_tokens: 2000 },
  };
}

const responsesTools = names.map((name) => ({
  type: 'function' as const,
  name,
  parameters: { ...schema },
  strict: false,
}));

export function responsesBody(model: string) {
  return {
    model,
    input: [question],
    tools: responsesTools,
    max_output_tokens: cap,
    reasoning: { effort: 'high' as const, summary: 'auto' as const },
  };
}

function asJson(value: object | undefined): JsonObject {
  return tryParseObject(JSON.stringify(value)) ?? {};
}

/** Role, content and calls: what the published types know. */
function standardMessage(message: JsonObject): JsonObject {
  const calls = listAt(message, 'tool_calls').map(({ id, type, function: called }) => ({
    id,
    type,
    function: called,
  }));
  return { role: 'assistant', content: message['content'] ?? null, tool_calls: calls };
}

async function rawChat(url: string, model: string): Promise<JsonObject> {
  const reply = await send(url + endpointOf.chat, chatBody(model));
  return objectAt(listAt(reply.json, 'choices')[0] ?? {}, 'message');
}

/** Strings that come in pieces. */
const growing: ReadonlySet<string> = new Set(['text', 'summary', 'data', 'arguments']);
const growsInPython = { has: (key: string): boolean => key !== 'type' };

async function rawChatStream(
  url: string,
  model: string,
  grows: Growing = growing,
): Promise<JsonObject> {
  const reply = await send(url + endpointOf.chat, { ...chatBody(model), stream: true });
  const message: { [key: string]: JsonObject[string] } = { role: 'assistant', content: null };
  const calls: JsonObject[] = [];
  const details: JsonObject[] = [];
  for (const { data } of framesOf(reply.text)) {
    const delta = objectAt(listAt(tryParseObject(data) ?? {}, 'choices')[0] ?? {}, 'delta');
    for (const field of ['content', 'reasoning_content', 'reasoning'] as const) {
      const text = textAt(delta, field);
      if (text !== '') message[field] = String(message[field] ?? '') + text;
    }
    for (const call of listAt(delta, 'tool_calls')) joinAt(calls, call, grows);
    for (const detail of listAt(delta, 'reasoning_details')) joinAt(details, detail, grows);
  }
  message['tool_calls'] = calls.map(({ index: _index, ...call }) => call);
  if (details.length > 0) message['reasoning_details'] = details;
  return message;
}

type Growing = Pick<ReadonlySet<string>, 'has'>;

function joinAt(list: JsonObject[], piece: JsonObject, grows: Growing): void {
  const at = Number(piece['index']);
  list[at] = joined(list[at] ?? {}, piece, grows);
}

function joined(before: JsonObject, piece: JsonObject, grows: Growing): JsonObject {
  const whole: { [key: string]: JsonObject[string] } = { ...before };
  for (const [key, value] of Object.entries(piece)) {
    const known = whole[key];
    const both = typeof known === 'string' && typeof value === 'string';
    if (both && grows.has(key)) whole[key] = known + value;
    else whole[key] = isObject(known) && isObject(value) ? joined(known, value, grows) : value;
  }
  return whole;
}

async function rawMessages(url: string, model: string): Promise<JsonObject> {
  const reply = await send(url + endpointOf.messages, messagesBody(model));
  return { role: 'assistant', content: reply.json['content'] ?? [] };
}

async function rawResponse(url: string, model: string): Promise<JsonObject> {
  const { json } = await send(url + endpointOf.responses, responsesBody(model));
  return { items: json['output'] ?? [], id: json['id'] };
}

/** As Codex does: what an item is stands in the event that ends it. */
async function rawResponseStream(url: string, model: string): Promise<JsonObject> {
  const body = { ...responsesBody(model), stream: true };
  const reply = await send(url + endpointOf.responses, body);
  const events = framesOf(reply.text).map(({ data }) => tryParseObject(data) ?? {});
  const items = events
    .filter(({ type }) => type === 'response.output_item.done')
    .map((event) => objectAt(event, 'item'));
  return { items, id: objectAt(events.at(-1) ?? {}, 'response')['id'] };
}

function withoutReasoning(kept: JsonObject): JsonObject {
  return { ...kept, items: listAt(kept, 'items').filter(({ type }) => type !== 'reasoning') };
}

function standardBlocks({ role, content }: JsonObject): JsonObject {
  const blocks = listAt({ content }, 'content');
  const kept = blocks.filter(({ type }) => type === 'text' || type === 'tool_use');
  return { role, content: kept };
}

function answered({
  role,
  content,
}: {
  readonly role: string;
  readonly content: object;
}): JsonObject {
  return asJson({ role, content });
}

const chatClient = (url: string) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: clientKey, maxRetries: 0 });
const oldChatClient = (url: string) =>
  new OpenAIOld({ baseURL: `${url}/v1`, apiKey: clientKey, maxRetries: 0 });
const messagesClient = (url: string) =>
  new Anthropic({ baseURL: url, apiKey: clientKey, maxRetries: 0 });
const oldMessagesClient = (url: string) =>
  new AnthropicOld({ baseURL: url, apiKey: clientKey, maxRetries: 0 });

const chat = { dialect: 'chat', keeps: 'all', stream: false } as const;
const messages = { dialect: 'messages', keeps: 'all', stream: false } as const;
const responses = { dialect: 'responses', keeps: 'all', stream: false } as const;

const olderHistories: readonly History[] = [
  { ...chat, name: 'raw document', ask: rawChat },
  { ...chat, name: 'raw stream', stream: true, ask: (url, model) => rawChatStream(url, model) },
  {
    ...chat,
    name: 'stream, joined as the Python helper does',
    stream: true,
    keeps: 'joined',
    ask: (url, model) => rawChatStream(url, model, growsInPython),
  },
  {
    ...chat,
    name: 'document, standard fields only',
    keeps: 'standard',
    ask: async (url, model) => standardMessage(await rawChat(url, model)),
  },
  {
    ...chat,
    name: 'stream, standard fields only',
    stream: true,
    keeps: 'standard',
    ask: async (url, model) => standardMessage(await rawChatStream(url, model)),
  },
  {
    ...chat,
    name: 'openai 7 create',
    ask: async (url, model) => {
      const answer = await chatClient(url).chat.completions.create(chatBody(model));
      return asJson(answer.choices[0]?.message);
    },
  },
  {
    ...chat,
    name: 'openai 7 stream helper',
    stream: true,
    keeps: 'last',
    ask: async (url, model) => {
      const stream = chatClient(url).chat.completions.stream(chatBody(model));
      return asJson((await stream.finalChatCompletion()).choices[0]?.message);
    },
  },
  {
    ...chat,
    name: 'openai 4 create',
    ask: async (url, model) => {
      const answer = await oldChatClient(url).chat.completions.create(chatBody(model));
      return asJson(answer.choices[0]?.message);
    },
  },
  {
    ...chat,
    name: 'openai 4 stream helper',
    stream: true,
    keeps: 'last',
    ask: async (url, model) => {
      const stream = oldChatClient(url).beta.chat.completions.stream(chatBody(model));
      return asJson((await stream.finalChatCompletion()).choices[0]?.message);
    },
  },
  { ...messages, name: 'raw document', ask: rawMessages },
  {
    ...messages,
    name: 'document, no thinking kept',
    keeps: 'standard',
    ask: async (url, model) => standardBlocks(await rawMessages(url, model)),
  },
  {
    ...messages,
    name: '@anthropic-ai/sdk 1 create',
    ask: async (url, model) =>
      answered(await messagesClient(url).messages.create(messagesBody(model))),
  },
  {
    ...messages,
    name: '@anthropic-ai/sdk 1 stream helper',
    stream: true,
    ask: async (url, model) =>
      answered(await messagesClient(url).messages.stream(messagesBody(model)).finalMessage()),
  },
  {
    ...messages,
    name: '@anthropic-ai/sdk 1 stream helper, no thinking kept',
    stream: true,
    keeps: 'standard',
    ask: async (url, model) => {
      const stream = messagesClient(url).messages.stream(messagesBody(model));
      return standardBlocks(answered(await stream.finalMessage()));
    },
  },
  {
    ...messages,
    name: '@anthropic-ai/sdk 0 create',
    ask: async (url, model) =>
      answered(await oldMessagesClient(url).messages.create(messagesBody(model))),
  },
  {
    ...messages,
    name: '@anthropic-ai/sdk 0 stream helper',
    stream: true,
    ask: async (url, model) =>
      answered(await oldMessagesClient(url).messages.stream(messagesBody(model)).finalMessage()),
  },
];

const responsesHistories: readonly History[] = [
  { ...responses, name: 'raw document', ask: rawResponse },
  { ...responses, name: 'items of a stream', stream: true, ask: rawResponseStream },
  { ...responses, name: 'previous_response_id', refers: true, ask: rawResponse },
  {
    ...responses,
    name: 'previous_response_id of a stream',
    stream: true,
    refers: true,
    ask: rawResponseStream,
  },
  {
    ...responses,
    name: 'document, no reasoning kept',
    keeps: 'standard',
    ask: async (url, model) => withoutReasoning(await rawResponse(url, model)),
  },
  {
    ...responses,
    name: 'openai 7 create',
    ask: async (url, model) => {
      const { output, id } = await chatClient(url).responses.create(responsesBody(model));
      return asJson({ items: output, id });
    },
  },
  {
    ...responses,
    name: 'openai 7 stream helper',
    stream: true,
    ask: async (url, model) => {
      const stream = chatClient(url).responses.stream(responsesBody(model));
      const { output, id } = await stream.finalResponse();
      return asJson({ items: output, id });
    },
  },
];

export const histories: readonly History[] = [...olderHistories, ...responsesHistories];

/** The second request: the first question, what was kept of the answer, and the results of its calls. */
export function secondBody(history: History, model: string, kept: JsonObject): JsonObject {
  if (history.dialect === 'responses') {
    const results = outputs(kept);
    const said = [question, ...listAt(kept, 'items'), ...results];
    return history.refers === true
      ? { ...responsesBody(model), input: results, previous_response_id: kept['id'] }
      : { ...responsesBody(model), input: said };
  }
  return history.dialect === 'chat'
    ? { ...chatBody(model), messages: [question, kept, ...toolMessages(kept)] }
    : { ...messagesBody(model), messages: [question, kept, toolResults(kept)] };
}

function toolMessages(kept: JsonObject): readonly JsonObject[] {
  return listAt(kept, 'tool_calls').map(({ id }) => ({
    role: 'tool',
    tool_call_id: id,
    content: 'noon',
  }));
}

function outputs(kept: JsonObject): readonly JsonObject[] {
  return listAt(kept, 'items')
    .filter(({ type }) => type === 'function_call')
    .map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'noon' }));
}

function toolResults(kept: JsonObject): JsonObject {
  const calls = listAt(kept, 'content').filter(({ type }) => type === 'tool_use');
  const content = calls.map(({ id }) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: 'noon',
  }));
  return { role: 'user', content };
}
