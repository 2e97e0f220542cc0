/** One recorded answer in every shape that an upstream can give it and a client can ask for. */
import assert from 'node:assert/strict';
import { isObject, type JsonObject } from '../../src/json/value.ts';
import type { ClientDialect, UpstreamDialect } from '../support/dialects.ts';
import { listAt, numberAt, objectAt, type Seen, type SeenUsage } from '../support/reading.ts';
import { startRig, type Rig } from '../support/rig.ts';
import {
  expectedOfDocument,
  expectedOfStream,
  recordedDocuments,
  recordedStreams,
  type RecordedStream,
} from '../recordings/recorded.ts';
import { converseDocument } from '../upstream/converse.ts';
import type { Answer } from '../upstream/scripted.ts';

export interface Sample {
  readonly name: string;
  /** Whose recording it is: the provider of that name answers it. */
  readonly vendor: string;
  readonly upstream: UpstreamDialect;
  expected(client: ClientDialect): Seen;
  readonly stream: Answer | undefined;
  readonly document: Answer | undefined;
}

const vendors = ['anthropic', 'openai', 'deepseek', 'groq', 'mistral', 'xai'] as const;

/** A gateway whose vendors are all played by the scripted upstreams, with the vendors' own traits. */
export function startVendorRig(): Promise<Rig> {
  return startRig(({ chat, messages }) => ({
    providers: Object.fromEntries(
      vendors.map((vendor) => [
        vendor,
        vendor === 'anthropic'
          ? { base_url: `http://127.0.0.1:${messages.port}`, api_key: 'vendor-key' }
          : {
              base_url: `http://127.0.0.1:${chat.port}/v1`,
              api_key: 'vendor-key',
              dialect: 'openai-chat',
            },
      ]),
    ),
  }));
}

function vendorOf(upstream: UpstreamDialect, name: string): string {
  if (upstream !== 'chat' && upstream !== 'messages') return `up-${upstream}`;
  const vendor = vendors.find((each) => name.startsWith(each));
  return vendor ?? (/^(envoy-)?azure/.test(name) ? 'openai' : 'anthropic');
}

/** What only one dialect can say has no counterpart to be equal to. */
const oneSided =
  /^(spliced-message-start|anthropic-compaction|anthropic-web-search|openai-error|reasoning-model-)/;

export function samples(): readonly Sample[] {
  const documents = recordedDocuments()
    .filter(({ name, body }) => !isObject(body['error']) && !oneSided.test(name))
    .map((recorded): Sample => ({
      name: `${recorded.name}.json`,
      vendor: vendorOf(recorded.upstream, recorded.name),
      upstream: recorded.upstream,
      expected: (client) => expectedOfDocument(recorded, client),
      stream: undefined,
      document: { body: recorded.text },
    }));
  const streams = recordedStreams()
    .filter(({ name }) => !oneSided.test(name))
    .map((recorded): Sample => ({
      name: `${recorded.name}.chunks`,
      vendor: vendorOf(recorded.upstream, recorded.name),
      upstream: recorded.upstream,
      expected: (client) => expectedOfStream(recorded, client),
      stream: { body: recorded.whole, framing: 'chunked' },
      document: { body: JSON.stringify(documentOf[recorded.upstream](recorded)) },
    }));
  return [...documents, ...streams];
}

/** Later reports replace earlier ones, member by member. */
function usageOf({ events }: RecordedStream): JsonObject {
  const usages = events.map((event) =>
    objectAt('usage' in event ? event : objectAt(event, 'message'), 'usage'),
  );
  return Object.assign({}, ...usages) as JsonObject;
}

/** A stream's answer as the same server would give it whole. */
const documentOf: { readonly [D in UpstreamDialect]: (recorded: RecordedStream) => JsonObject } = {
  chat: (recorded) => chatDocument(expectedOfStream(recorded), usageOf(recorded)),
  messages: (recorded) => messagesDocument(expectedOfStream(recorded), usageOf(recorded)),
  responses: ({ events }) => {
    const response = objectAt(events.at(-1) ?? {}, 'response');
    const done = events.filter((event) => event['type'] === 'response.output_item.done');
    // One server leaves them out of its last event.
    const output = done.map((event) => objectAt(event, 'item'));
    return {
      ...response,
      output: listAt(response, 'output').length > 0 ? response['output'] : output,
    };
  },
  gemini: (recorded) => geminiWhole(expectedOfStream(recorded), recorded.events),
  converse: (recorded) => converseWhole(expectedOfStream(recorded), recorded.events),
};

/** The last of a stream's response objects, with all that the stream said. */
function geminiWhole(seen: Seen, events: readonly JsonObject[]): JsonObject {
  const parts = [
    ...(seen.reasoning === '' ? [] : [{ text: seen.reasoning, thought: true }]),
    ...(seen.text === '' ? [] : [{ text: seen.text }]),
    ...seen.calls.map(({ id, name, arguments: args }) => ({
      functionCall: { name, args, ...(id === '' ? {} : { id }) },
    })),
  ];
  const last = events.at(-1) ?? {};
  const [candidate] = listAt(last, 'candidates');
  return { ...last, candidates: [{ ...candidate, content: { role: 'model', parts } }] };
}

function converseWhole(seen: Seen, events: readonly JsonObject[]): JsonObject {
  const { messageStop, metadata } = Object.assign({}, ...events) as JsonObject;
  const { usage } = isObject(metadata) ? metadata : {};
  return converseDocument({
    content: [
      ...(seen.reasoning === ''
        ? []
        : [{ reasoningContent: { reasoningText: { text: seen.reasoning } } }]),
      ...(seen.text === '' ? [] : [{ text: seen.text }]),
      ...seen.calls.map(({ id, name, arguments: input }) => ({
        toolUse: { toolUseId: id, name, input },
      })),
    ],
    stopReason: isObject(messageStop) ? String(messageStop['stopReason']) : '',
    usage: isObject(usage) ? usage : null,
  });
}

const chatWords: { readonly [finish: string]: string } = {
  stop: 'stop',
  length: 'length',
  tools: 'tool_calls',
  filter: 'content_filter',
};

function chatDocument(seen: Seen, usage: JsonObject): JsonObject {
  const calls = seen.calls.map((call): JsonObject => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: JSON.stringify(call.arguments) },
  }));
  const message = {
    role: 'assistant',
    content: seen.text === '' ? null : seen.text,
    ...(seen.reasoning === '' ? {} : { reasoning_content: seen.reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
  };
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'recorded',
    choices: [
      { index: 0, message, logprobs: null, finish_reason: chatWords[seen.finish] ?? 'stop' },
    ],
    ...(Object.keys(usage).length === 0 ? {} : { usage }),
  };
}

const messagesWords: { readonly [finish: string]: string } = {
  stop: 'end_turn',
  length: 'max_tokens',
  tools: 'tool_use',
  filter: 'refusal',
};

function messagesDocument(seen: Seen, usage: JsonObject): JsonObject {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'recorded',
    content: [
      ...(seen.reasoning === ''
        ? []
        : [{ type: 'thinking', thinking: seen.reasoning, signature: 'sig' }]),
      ...(seen.text === '' ? [] : [{ type: 'text', text: seen.text }]),
      ...seen.calls.map((call) => ({
        type: 'tool_use',
        id: call.id,
        name: call.name,
        input: call.arguments,
      })),
    ],
    stop_reason: messagesWords[seen.finish] ?? 'end_turn',
    stop_sequence: null,
    usage,
  };
}

/** The four disjoint counters and reasoning of a ledger row (F2). */
export function bookedUsage(row: JsonObject): SeenUsage {
  const charged = objectAt(row, 'charged');
  return {
    fresh: numberAt(charged, 'fresh_input_tokens'),
    cacheRead: numberAt(charged, 'cache_read_tokens'),
    cacheWrite: numberAt(charged, 'cache_write_tokens'),
    output: numberAt(charged, 'output_tokens'),
    reasoning: numberAt(charged, 'reasoning_tokens'),
  };
}

/** Whatever the ledger says a call costs; nothing while there are no prices. */
export function bookedCost(row: JsonObject): unknown {
  assert.ok(isRow(row));
  return row['cost_nanos'] ?? row['cost'] ?? null;
}

function isRow(row: JsonObject): boolean {
  return typeof row['id'] === 'string';
}
