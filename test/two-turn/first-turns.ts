/** First answers that call tools and hold something which the upstream wants back. */
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import type { UpstreamDialect } from '../support/dialects.ts';
import {
  chatChunk,
  chatDone,
  chatFrame,
  chatUsage,
  chatUsageChunk,
  halves,
} from '../upstream/chat.ts';
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messagesDocument,
  messageStart,
  messageStop,
  messagesFrame,
} from '../upstream/messages.ts';
import { converseAnswer, streamOf as converseStreamOf } from '../upstream/converse.ts';
import { geminiAnswer, streamOf } from '../upstream/gemini.ts';
import { callItem, reasoningItem, responsesAnswer, textItem } from '../upstream/responses.ts';
import type { Answer } from '../upstream/scripted.ts';

export interface FirstTurn {
  readonly name: string;
  readonly upstream: UpstreamDialect;
  readonly provider: string;
  /** The beginning of the model's name; its traits follow from it. */
  readonly model: string;
  answer(stream: boolean): Answer;
  readonly callIds: readonly string[];
  /** The assistant message of the second request, as the upstream must get it; of a response its `items`. */
  readonly expected: JsonObject;
  /** The same where nothing is known any more. */
  readonly unknown: JsonObject;
}

const signature = 'ErUBCkYIBxgCIkD+/abc==';
const thought = 'First the time, 你好🦀, then the date.';
const timeId = 'toolu_01A7b9C2d4E6f8G0h1J3k5L7';
const dateId = 'toolu_01Z9y8X7w6V5u4T3s2R1q0P9';
const callTime = { type: 'tool_use', id: timeId, name: 'get_time', input: { zone: 'UTC' } };
const callDate = { type: 'tool_use', id: dateId, name: 'get_date', input: {} };
const spoken = { type: 'text', text: 'One moment.' };
const thinking = { type: 'thinking', thinking: thought, signature };
const again = { type: 'thinking', thinking: 'Now the date.', signature: 'c2Vjb25k+/==' };
const empty = { type: 'thinking', thinking: '', signature: 'b25seSBzaWduZWQ=' };
const emptyAgain = { type: 'thinking', thinking: '', signature: 'dHdpY2UgZW1wdHk=' };
const redacted = { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzix/LafPsn4a==' };

/** A turn of a messages server. */
function messagesTurn(name: string, blocks: readonly JsonObject[]): FirstTurn {
  const proof = new Set(['thinking', 'redacted_thinking']);
  const rest = blocks.filter((block) => !proof.has(String(block['type'])));
  return {
    name,
    upstream: 'messages',
    provider: 'anthropic',
    model: 'claude-sonnet-4-5',
    answer: (stream) => (stream ? messagesStream(blocks) : messagesWhole(blocks)),
    callIds: blocks.filter((block) => block['type'] === 'tool_use').map(({ id }) => String(id)),
    expected: { role: 'assistant', content: blocks },
    unknown: { role: 'assistant', content: rest },
  };
}

function messagesWhole(content: readonly JsonObject[]): Answer {
  const body = { ...messagesDocument({}), content, stop_reason: 'tool_use' };
  return { body: JSON.stringify(body) };
}

function messagesStream(blocks: readonly JsonObject[]): Answer {
  const events = [
    messageStart(),
    ...blocks.flatMap((block, i) => [...blockEvents(block, i), blockStop(i)]),
    messageDelta('tool_use'),
    messageStop,
  ];
  return { body: events.map((event) => messagesFrame(event)).join(''), framing: 'chunked' };
}

function blockEvents(block: JsonObject, i: number): readonly JsonObject[] {
  switch (block['type']) {
    case 'thinking':
      return [
        blockStart(i, { type: 'thinking', thinking: '', signature: '' }),
        ...halves(String(block['thinking'])).map((text) =>
          blockDelta(i, { type: 'thinking_delta', thinking: text }),
        ),
        blockDelta(i, { type: 'signature_delta', signature: block['signature'] }),
      ];
    case 'text':
      return [
        blockStart(i, { type: 'text', text: '' }),
        blockDelta(i, { type: 'text_delta', text: block['text'] }),
      ];
    case 'tool_use':
      return [
        blockStart(i, { ...block, input: {} }),
        ...halves(JSON.stringify(block['input'])).map((text) =>
          blockDelta(i, { type: 'input_json_delta', partial_json: text }),
        ),
      ];
    default:
      return [blockStart(i, block)];
  }
}

export const messagesTurns: readonly FirstTurn[] = [
  messagesTurn('signed thinking', [thinking, spoken, callTime]),
  messagesTurn('redacted thinking', [redacted, thinking, callTime]),
  messagesTurn('signed thinking without text', [empty, callTime]),
  messagesTurn('two signed blocks without text', [empty, emptyAgain, callTime, callDate]),
  messagesTurn('interleaved thinking', [thinking, spoken, callTime, again, callDate]),
];

interface ChatTurn {
  readonly provider: string;
  readonly model: string;
  /** Of the answered message, besides content and calls. */
  readonly reasoning?: JsonObject;
  /** The same in pieces. */
  readonly deltas?: readonly JsonObject[];
  readonly calls?: readonly JsonObject[];
  /** What comes back, and what is sent where nothing is known. */
  readonly back: JsonObject;
  readonly unknown?: JsonObject;
  readonly callsBack?: readonly JsonObject[];
  readonly callsUnknown?: readonly JsonObject[];
}

const chatTime = {
  id: 'call_Ab3De5Gh7Jk9Mn1Pq3St5Uv7',
  type: 'function',
  function: { name: 'get_time', arguments: '{"zone":"UTC"}' },
};
const chatDate = {
  id: 'call_Zy2Xw4Vu6Ts8Rq0Pn2Ml4Kj6',
  type: 'function',
  function: { name: 'get_date', arguments: '{}' },
};

function chatTurn(name: string, turn: ChatTurn): FirstTurn {
  const { provider, model, reasoning = {}, deltas, calls = [chatTime], back } = turn;
  const message = { role: 'assistant', content: null, ...reasoning, tool_calls: calls };
  const upstream = (members: JsonObject, tool_calls: readonly JsonObject[]): JsonObject => ({
    role: 'assistant',
    content: null,
    ...members,
    tool_calls,
  });
  return {
    name,
    upstream: 'chat',
    provider,
    model,
    answer: (stream) =>
      stream ? chatStream(deltas ?? [reasoning], calls) : { body: chatWhole(message) },
    callIds: calls.map(({ id }) => String(id)),
    expected: upstream(back, turn.callsBack ?? calls),
    unknown: upstream(turn.unknown ?? {}, turn.callsUnknown ?? calls.map(plainCall)),
  };
}

function plainCall(call: JsonObject): JsonObject {
  const { extra_content: _, ...plain } = call;
  return plain;
}

function chatWhole(message: JsonObject): string {
  return JSON.stringify({
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'upstream-model',
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }],
    usage: chatUsage,
  });
}

function chatStream(deltas: readonly JsonObject[], calls: readonly JsonObject[]): Answer {
  const chunks = [
    chatChunk({ role: 'assistant', content: '' }),
    ...deltas.filter((delta) => Object.keys(delta).length > 0).map((delta) => chatChunk(delta)),
    ...calls.flatMap((call, index) => callDeltas(call, index)),
    chatChunk({}, 'tool_calls'),
    chatUsageChunk(chatUsage),
  ];
  return { body: chunks.map(chatFrame).join('') + chatDone, framing: 'chunked' };
}

function callDeltas(call: JsonObject, index: number): readonly JsonObject[] {
  const called = call['function'];
  const { name, arguments: text }: { readonly [key: string]: Json | undefined } = isObject(called)
    ? called
    : {};
  return [
    chatChunk({ tool_calls: [{ index, ...call, function: { name, arguments: '' } }] }),
    ...halves(String(text)).map((part) =>
      chatChunk({ tool_calls: [{ index, function: { arguments: part } }] }),
    ),
  ];
}

const pieces = (field: string): readonly JsonObject[] =>
  halves(thought).map((text) => ({ [field]: text }));
const googleSigned = { extra_content: { google: { thought_signature: 'CpUBAVSoXO6+/x==' } } };
const googleUnsigned = {
  extra_content: { google: { thought_signature: 'skip_thought_signature_validator' } },
};
const detail = { type: 'reasoning.text', format: 'google-gemini-v1', index: 0 };
const encrypted = {
  type: 'reasoning.encrypted',
  data: 'CiQBcsjafB+/==',
  id: 'tool_get_time_1',
  format: 'google-gemini-v1',
};

export const chatTurns: readonly FirstTurn[] = [
  chatTurn('reasoning_content of DeepSeek', {
    provider: 'deepseek',
    model: 'deepseek-v4',
    reasoning: { reasoning_content: thought },
    deltas: pieces('reasoning_content'),
    back: { reasoning_content: thought },
    unknown: { reasoning_content: '' },
  }),
  chatTurn('reasoning_content of Kimi', {
    provider: 'moonshot',
    model: 'kimi-k3',
    reasoning: { reasoning_content: thought },
    deltas: pieces('reasoning_content'),
    // Ids of this vendor come again in each conversation.
    calls: [{ ...chatTime, id: 'get_time:0' }],
    callsBack: [{ ...chatTime, id: 'get_time:0' }],
    back: { reasoning_content: thought },
    unknown: { reasoning_content: ' ' },
  }),
  chatTurn('reasoning of Groq', {
    provider: 'groq',
    model: 'openai/gpt-oss-120b',
    reasoning: { reasoning: thought },
    deltas: pieces('reasoning'),
    back: { reasoning: thought },
  }),
  chatTurn('reasoning_details of OpenRouter', {
    provider: 'openrouter',
    model: 'google/gemini-3-pro',
    // The text stands in two spellings, and counts once (D7).
    reasoning: {
      reasoning: thought,
      reasoning_details: [
        { ...detail, text: thought, signature },
        { ...encrypted, index: 1 },
      ],
    },
    deltas: [
      ...halves(thought).map((text) => ({
        reasoning: text,
        reasoning_details: [{ ...detail, text }],
      })),
      { reasoning_details: [{ ...detail, text: '', signature }] },
      { reasoning_details: [{ ...encrypted, index: 1 }] },
    ],
    back: {
      reasoning_details: [
        { ...detail, text: thought, signature },
        { ...encrypted, index: 1 },
      ],
    },
  }),
  chatTurn('thought signatures of Gemini', {
    provider: 'gemini-compatible',
    model: 'gemini-3-flash',
    calls: [{ ...chatTime, ...googleSigned }, chatDate],
    back: {},
    callsUnknown: [{ ...chatTime, ...googleUnsigned }, chatDate],
  }),
  chatTurn('thought signatures of Gemini 2.5, which does not insist', {
    provider: 'gemini-compatible',
    model: 'gemini-2.5-pro',
    calls: [{ ...chatTime, ...googleSigned }],
    back: {},
  }),
];

const responsesTime = callItem('call_Ab3De5Gh7Jk9Mn1Pq3St5Uv8', 'get_time', '{"zone":"UTC"}');
const responsesDate = callItem('call_Zy2Xw4Vu6Ts8Rq0Pn2Ml4Kj7', 'get_date', '{}');

/** A turn of a Responses server. */
function responsesTurn(name: string, items: readonly JsonObject[]): FirstTurn {
  const calls = items.filter(({ type }) => type === 'function_call');
  const back = items.map(sentBack);
  return {
    name,
    upstream: 'responses',
    provider: 'openai',
    model: 'gpt-5.5',
    answer: (stream) => {
      const { body, ...answer } = responsesAnswer(items, { stream });
      return { ...answer, body: typeof body === 'string' ? body : [...body].join('') };
    },
    callIds: calls.map((call) => String(call['call_id'])),
    expected: { items: back },
    unknown: { items: back.filter(({ type }) => type !== 'reasoning') },
  };
}

/** An item of an answer as it is sent in the next request: only reasoning keeps its id. */
function sentBack(item: JsonObject): JsonObject {
  switch (item['type']) {
    case 'function_call': {
      const { call_id, name, arguments: text } = item;
      return { type: 'function_call', call_id, name, arguments: text };
    }
    case 'message':
      return { type: 'message', role: 'assistant', content: [spokenOf(item)] };
    default:
      return item;
  }
}

function spokenOf({ content }: JsonObject): JsonObject {
  const [part] = Array.isArray(content) ? content.filter(isObject) : [];
  return { type: 'output_text', text: part?.['text'] ?? '', annotations: [] };
}

export const responsesTurns: readonly FirstTurn[] = [
  responsesTurn('encrypted reasoning', [
    { ...reasoningItem(thought, 'gAAAAB+/1=='), id: 'rs_1' },
    textItem('One moment.'),
    responsesTime,
  ]),
  responsesTurn('encrypted reasoning without a summary', [
    { ...reasoningItem('', 'gAAAAB+/2=='), id: 'rs_2' },
    responsesTime,
    responsesDate,
  ]),
];

const geminiSignature = 'CiQBjz1rX25KieIB+/==';
const geminiTime = (id: string): JsonObject => ({
  functionCall: { name: 'get_time', args: { zone: 'UTC' }, id },
});
const geminiDate = { functionCall: { name: 'get_date', args: {}, id: 'call-of-gemini-2' } };

/** A turn of Gemini; of parallel calls the first one is signed. */
function geminiTurn(
  name: string,
  model: string,
  { parts, unknown }: { parts: readonly JsonObject[]; unknown: readonly JsonObject[] },
): FirstTurn {
  // Thoughts are not sent back.
  const back = parts.filter((part) => part['thought'] !== true);
  return {
    name,
    upstream: 'gemini',
    provider: 'gemini',
    model,
    answer: (stream) => (stream ? streamOf({ parts }) : geminiAnswer({ parts })),
    callIds: back.flatMap(({ functionCall }) =>
      isObject(functionCall) ? [String(functionCall['id'])] : [],
    ),
    expected: { role: 'model', parts: back },
    unknown: { role: 'model', parts: unknown },
  };
}

export const geminiTurns: readonly FirstTurn[] = [
  geminiTurn('a signed call of Gemini 3', 'gemini-3-flash', {
    parts: [
      { text: thought, thought: true },
      { ...geminiTime('call-of-gemini-1'), thoughtSignature: geminiSignature },
      geminiDate,
    ],
    unknown: [
      { ...geminiTime('call-of-gemini-1'), thoughtSignature: 'skip_thought_signature_validator' },
      geminiDate,
    ],
  }),
  geminiTurn('a signed call of Gemini 2.5, which does not insist', 'gemini-2.5-pro', {
    parts: [{ ...geminiTime('call-of-gemini-3'), thoughtSignature: geminiSignature }],
    unknown: [geminiTime('call-of-gemini-3')],
  }),
];

const converseCall = (toolUseId: string, name: string, input: JsonObject): JsonObject => ({
  toolUse: { toolUseId, name, input },
});

/** A turn of Converse; without its signature reasoning does not go back. */
function converseTurn(name: string, content: readonly JsonObject[]): FirstTurn {
  const isKept = ({ reasoningContent }: JsonObject): boolean => reasoningContent === undefined;
  return {
    name,
    upstream: 'converse',
    provider: 'bedrock',
    model: 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
    answer: (stream) => {
      const answer = { content, stopReason: 'tool_use' };
      return stream ? converseStreamOf(answer) : converseAnswer(answer);
    },
    callIds: content.flatMap(({ toolUse }) =>
      isObject(toolUse) ? [String(toolUse['toolUseId'])] : [],
    ),
    expected: { role: 'assistant', content },
    unknown: { role: 'assistant', content: content.filter(isKept) },
  };
}

export const converseTurns: readonly FirstTurn[] = [
  converseTurn('signed reasoning of Claude by Converse', [
    { reasoningContent: { reasoningText: { text: thought, signature: 'ErUBConverse+/1==' } } },
    { text: 'One moment.' },
    converseCall('tooluse_time_1', 'get_time', { zone: 'UTC' }),
    converseCall('tooluse_date_1', 'get_date', {}),
  ]),
  converseTurn('reasoning of Claude by Converse that is not shown', [
    { reasoningContent: { redactedContent: 'EroBQ29udmVyc2U=' } },
    converseCall('tooluse_time_2', 'get_time', { zone: 'UTC' }),
  ]),
];

export const firstTurns: readonly FirstTurn[] = [
  ...messagesTurns,
  ...chatTurns,
  ...responsesTurns,
  ...geminiTurns,
  ...converseTurns,
];
