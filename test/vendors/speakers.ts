/** How each vendor answers with thinking and a call: every spelling of reasoning that there is. */
import type { JsonObject } from '../../src/json/value.ts';
import {
  chatChunk,
  chatDone,
  chatFrame,
  chatUsage,
  chatUsageChunk,
  halves,
} from '../upstream/chat.ts';
import { messagesAnswer } from '../upstream/messages.ts';
import type { Answer, Received } from '../upstream/scripted.ts';
import type { VendorRules } from './rules.ts';
import { anthropicSignature, geminiSignature, openrouterSignature } from './tables.ts';

/** One turn of one vendor: no other turn says or signs the same. */
export interface SpokenTurn {
  readonly thought: string;
  readonly signature: string;
  readonly callId: string;
}

/** What the vendor's own servers put into a message beside its call. */
type Spelling = (turn: SpokenTurn) => JsonObject;

const plain: Spelling = () => ({ content: null });
const reasoning: Spelling = ({ thought }) => ({ content: null, reasoning: thought });
const reasoningContent: Spelling = ({ thought }) => ({ content: '', reasoning_content: thought });

const spellings: { readonly [provider: string]: Spelling } = {
  openai: plain,
  'gemini-compatible': plain,
  groq: reasoning,
  cerebras: reasoning,
  ollama: reasoning,
  vllm: reasoning,
  deepseek: reasoningContent,
  xai: reasoningContent,
  'llama-cpp': reasoningContent,
  unknown: reasoningContent,
  mistral: ({ thought }) => ({
    content: [
      { type: 'thinking', thinking: [{ type: 'text', text: thought }] },
      { type: 'text', text: 'One moment.' },
    ],
  }),
  openrouter: ({ thought, signature }) => ({
    content: null,
    reasoning: thought,
    reasoning_details: [
      {
        type: 'reasoning.text',
        text: thought,
        signature,
        format: 'anthropic-claude-v1',
        index: 0,
      },
    ],
  }),
};

const marks: { readonly [provider: string]: string } = {
  openrouter: openrouterSignature,
  'gemini-compatible': geminiSignature,
  anthropic: anthropicSignature,
};

let turns = 0;

/** A turn that is like no other. */
export function newTurn({ provider, callIds }: VendorRules): SpokenTurn {
  turns += 1;
  const number = String(turns).padStart(5, '0');
  return {
    thought: `Thought ${number} of ${provider}: first the time, then the date.`,
    signature: `${marks[provider] ?? 'c2lnbmVk'}${number}+/==`,
    callId: callIds?.test('call_') === false ? `aB3d${number}` : `call_Ab3De5Gh7Jk9Mn1Pq${number}`,
  };
}

/** The call of a turn with its thinking, in the vendor's own words. */
export function callAnswer(rules: VendorRules, turn: SpokenTurn, request: Received): Answer {
  const { thought, signature, callId } = turn;
  const stream = request.json['stream'] === true;
  const call = { id: callId, name: 'get_time', arguments: '{"zone":"UTC"}' };
  if (rules.provider === 'anthropic') {
    return messagesAnswer({ thinking: thought, signature, calls: [call] }, stream);
  }
  const said = (spellings[rules.provider] ?? plain)(turn);
  const google = { extra_content: { google: { thought_signature: signature } } };
  const tool_calls = [
    {
      id: callId,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
      ...(rules.provider === 'gemini-compatible' ? google : {}),
    },
  ];
  return stream ? streamed(said, tool_calls) : { body: whole({ ...said, tool_calls }) };
}

function whole(message: JsonObject): string {
  const choice = {
    index: 0,
    message: { role: 'assistant', ...message },
    logprobs: null,
    finish_reason: 'tool_calls',
  };
  return JSON.stringify({
    id: 'chatcmpl-strict',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'upstream-model',
    choices: [choice],
    usage: chatUsage,
  });
}

function streamed(said: JsonObject, calls: readonly JsonObject[]): Answer {
  const { content, reasoning_details: details, ...texts } = said;
  const deltas: JsonObject[] = [{ role: 'assistant', content: '' }];
  for (const [field, text] of Object.entries(texts)) {
    for (const half of halves(String(text))) deltas.push({ [field]: half });
  }
  if (details !== undefined) deltas.push({ reasoning_details: details });
  if (Array.isArray(content)) for (const part of content) deltas.push({ content: [part] });
  deltas.push({ tool_calls: calls.map((call, index) => ({ index, ...call })) });
  const chunks = [
    ...deltas.map((delta) => chatChunk(delta)),
    chatChunk({}, 'tool_calls'),
    chatUsageChunk(chatUsage),
  ];
  return { body: chunks.map(chatFrame).join('') + chatDone, framing: 'chunked' };
}
