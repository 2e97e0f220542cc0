/** Answers of chat models, with every field of the types. */
import type {
  ChatCompletion,
  ChatCompletionMessage,
} from 'openai/resources/chat/completions/completions';
import type { JsonObject } from '../../src/json/value.ts';
import type { FirstSample } from './answer-sample.ts';

type Choice = Partial<ChatCompletion.Choice> & { readonly stop_reason?: string };
type Message = Partial<ChatCompletionMessage> & {
  readonly reasoning_content?: string;
  readonly reasoning?: string;
  readonly reasoning_details?: readonly JsonObject[];
  readonly executed_tools?: readonly JsonObject[];
};
type Document = Partial<ChatCompletion> & {
  readonly citations?: readonly string[];
  readonly search_results?: readonly JsonObject[];
};

function said(message: Message, choice: Choice = {}): Document {
  return {
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        logprobs: null,
        ...choice,
        message: { role: 'assistant', content: null, refusal: null, ...message },
      },
    ],
  };
}

const yes = { type: 'text', text: 'Yes.' } as const;
const call = {
  id: 'call_1',
  type: 'function',
  function: { name: 'weather', arguments: '{"city":"Oslo"}' },
} as const;
const weather = { type: 'tool_use', name: 'weather', input: { city: 'Oslo' } };
const scored = {
  type: 'moderation_results',
  model: 'm',
  results: [] as ChatCompletion.Moderation.ModerationResults.Result[],
} as const;

export const chatAnswers: readonly FirstSample<Document>[] = [
  {
    name: 'stop, with every field beside the message',
    answer: {
      ...said(
        { content: 'Yes.' },
        {
          logprobs: {
            content: [{ token: 'Yes.', bytes: null, logprob: -1, top_logprobs: [] }],
            refusal: null,
          },
        },
      ),
      created: 1_700_000_000,
      metadata: { a: 'b' },
      moderation: { input: scored, output: scored },
      service_tier: 'priority',
      system_fingerprint: 'fp',
      usage: {
        prompt_tokens: 60,
        completion_tokens: 40,
        total_tokens: 100,
        prompt_tokens_details: {
          cached_tokens: 20,
          cache_write_tokens: 30,
          audio_tokens: 0,
          image_tokens: 0,
          text_tokens: 60,
        },
        completion_tokens_details: {
          reasoning_tokens: 5,
          accepted_prediction_tokens: 0,
          rejected_prediction_tokens: 0,
          audio_tokens: 0,
          text_tokens: 35,
        },
      },
    },
    tells: {
      type: 'message',
      role: 'assistant',
      content: [yes],
      stop_reason: 'end_turn',
      stop_sequence: null,
      stop_details: null,
      usage: {
        input_tokens: 10,
        cache_read_input_tokens: 20,
        cache_creation_input_tokens: 30,
        output_tokens: 40,
        output_tokens_details: { thinking_tokens: 5 },
        service_tier: 'priority',
      },
    },
  },
  {
    name: 'length',
    answer: said({ content: 'Yes.' }, { finish_reason: 'length' }),
    tells: { stop_reason: 'max_tokens', content: [yes] },
  },
  {
    name: 'content_filter',
    answer: said({ refusal: 'Not this.' }, { finish_reason: 'content_filter' }),
    tells: {
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', explanation: 'Not this.' },
      content: [{ type: 'text', text: 'Not this.' }],
    },
  },
  {
    name: 'a known stop sequence',
    answer: said({ content: 'Yes.' }, { stop_reason: 'END' }),
    asked: { stop_sequences: ['END'] },
    tells: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
  },
  {
    name: 'tool_calls',
    answer: said({ content: 'Yes.', tool_calls: [call] }, { finish_reason: 'tool_calls' }),
    tells: {
      stop_reason: 'tool_use',
      content: [yes, { ...weather, id: 'call_1', caller: { type: 'direct' } }],
    },
  },
  {
    name: 'a custom call',
    answer: said(
      { tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'shell', input: 'ls' } }] },
      { finish_reason: 'tool_calls' },
    ),
    tells: { content: [{ type: 'tool_use', name: 'shell', input: { input: 'ls' } }] },
  },
  {
    name: 'function_call',
    answer: said(
      { function_call: { name: 'weather', arguments: '{"city":"Oslo"}' } },
      { finish_reason: 'function_call' },
    ),
    tells: { stop_reason: 'tool_use', content: [weather] },
  },
  {
    name: 'annotations',
    answer: said({
      content: 'Yes.',
      annotations: [
        {
          type: 'url_citation',
          url_citation: { url: 'https://example.com', title: 'T', start_index: 0, end_index: 3 },
        },
      ],
    }),
    tells: { content: [yes] },
    noted: ['citations'],
  },
  {
    name: 'sources of Perplexity',
    answer: {
      ...said({ content: 'Yes.' }),
      citations: ['https://example.com/a', 'https://example.com/b'],
      search_results: [
        { url: 'https://example.com/a', title: 'A', date: '2026-01-01', snippet: 's' },
        { url: 'https://example.com/c', title: 'C' },
      ],
    },
    tells: { content: [yes] },
    noted: ['citations'],
  },
  {
    name: 'sources of xAI',
    answer: { ...said({ content: 'Yes.' }), citations: ['https://example.com/a'] },
    tells: { content: [yes] },
    noted: ['citations'],
  },
  {
    name: 'what Groq ran',
    answer: said({
      content: 'Yes.',
      executed_tools: [
        {
          index: 0,
          type: 'search',
          arguments: '{"query":"q"}',
          output: 'Title: A',
          search_results: { results: [{ title: 'A', url: 'https://example.com/a', score: 0.9 }] },
        },
        { index: 1, type: 'python', arguments: '{"code":"1"}', output: '1' },
      ],
    }),
    tells: { content: [yes] },
    noted: ['content'],
  },
  {
    name: 'audio',
    answer: said({ audio: { id: 'a', data: 'AAAA', expires_at: 1, transcript: 'Yes.' } }),
    tells: { content: [yes] },
  },
  {
    name: 'reasoning_content',
    answer: said({ content: 'Yes.', reasoning_content: 'Hm.' }),
    tells: { content: [{ type: 'thinking', thinking: 'Hm.' }, yes] },
  },
  {
    name: 'reasoning',
    answer: said({ content: 'Yes.', reasoning: 'Hm.' }),
    tells: { content: [{ type: 'thinking', thinking: 'Hm.' }, yes] },
  },
  {
    name: 'reasoning_details',
    answer: said({
      content: 'Yes.',
      reasoning_details: [
        { type: 'reasoning.text', text: 'Hm.', signature: 's', index: 0 },
        { type: 'reasoning.encrypted', data: 'e', index: 1 },
      ],
    }),
    tells: { content: [{ type: 'thinking', thinking: 'Hm.' }, { type: 'redacted_thinking' }, yes] },
  },
];
