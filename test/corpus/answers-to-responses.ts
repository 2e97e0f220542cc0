/** What a responses client reads in the samples of chat and messages answers, by their names. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Told } from './answer-sample.ts';

const summary = { reasoning: { summary: 'auto' } };

function says(text: string): JsonObject {
  return { type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] };
}
const yes = says('Yes.');
const refuses = {
  type: 'message',
  role: 'assistant',
  content: [{ type: 'refusal', refusal: 'Not this.' }],
};
const thinks = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] };

function calls(id: string): JsonObject {
  return {
    type: 'function_call',
    status: 'completed',
    ...(id === '' ? {} : { call_id: id }),
    name: 'weather',
    arguments: '{"city":"Oslo"}',
  };
}

function completed(...output: readonly JsonObject[]): Told {
  return { tells: { object: 'response', status: 'completed', output }, asked: summary };
}

function incomplete(reason: string, ...output: readonly JsonObject[]): Told {
  return { tells: { status: 'incomplete', incomplete_details: { reason }, output } };
}

const usage = {
  input_tokens: 60,
  input_tokens_details: { cached_tokens: 20, cache_write_tokens: 30 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 100,
};

function cites(...annotations: readonly JsonObject[]): JsonObject {
  return {
    type: 'message',
    content: [{ type: 'output_text', text: 'Yes.', annotations }],
  };
}

/** A source of the whole text. */
function source(page: string, title: string): JsonObject {
  const url = `https://example.com/${page}`;
  return { type: 'url_citation', url, title, start_index: 0, end_index: 4 };
}

export const chatOnResponsesClient: { readonly [name: string]: Told } = {
  'stop, with every field beside the message': {
    tells: {
      object: 'response',
      status: 'completed',
      service_tier: 'priority',
      output: [yes],
      usage,
    },
  },
  length: incomplete('max_output_tokens', yes),
  content_filter: completed(refuses),
  'a known stop sequence': completed(yes),
  tool_calls: completed(yes, calls('call_1')),
  'a custom call': {
    tells: {
      output: [{ type: 'custom_tool_call', call_id: 'call_1', name: 'shell', input: 'ls' }],
    },
    asked: { tools: [{ type: 'custom', name: 'shell' }] },
  },
  function_call: completed(calls('')),
  annotations: completed(
    cites({
      type: 'url_citation',
      url: 'https://example.com',
      title: 'T',
      start_index: 0,
      end_index: 3,
    }),
  ),
  'sources of Perplexity': completed(cites(source('a', 'A'), source('b', ''), source('c', 'C'))),
  'sources of xAI': completed(cites(source('a', ''))),
  'what Groq ran': {
    ...completed(
      {
        type: 'web_search_call',
        status: 'completed',
        action: {
          type: 'search',
          query: 'q',
          sources: [{ type: 'url', url: 'https://example.com/a' }],
        },
      },
      yes,
    ),
    noted: ['output'],
  },
  audio: completed(yes),
  reasoning_content: completed(thinks, yes),
  reasoning: completed(thinks, yes),
  reasoning_details: completed(thinks, { type: 'reasoning', summary: [] }, yes),
};

export const messagesOnResponsesClient: { readonly [name: string]: Told } = {
  end_turn: completed(yes),
  max_tokens: incomplete('max_output_tokens', yes),
  model_context_window_exceeded: incomplete('max_output_tokens', yes),
  compaction: completed(yes),
  stop_sequence: completed(yes),
  refusal: completed(refuses),
  'thinking, text and a call': {
    tells: {
      status: 'completed',
      service_tier: 'priority',
      output: [thinks, { type: 'reasoning', summary: [] }, yes, calls('toolu_1')],
      usage,
    },
    asked: summary,
  },
  'what the provider ran itself': {
    tells: {
      status: 'completed',
      output: [
        {
          type: 'web_search_call',
          status: 'completed',
          action: { type: 'search', query: 'q', queries: ['q'] },
        },
        yes,
      ],
    },
    noted: ['output'],
  },
  'citations with an address': completed(
    cites(
      {
        type: 'url_citation',
        url: 'https://example.com/a',
        title: 'T',
        start_index: 0,
        end_index: 4,
      },
      { type: 'url_citation', url: 'https://example.com/b' },
    ),
  ),
  'citations of places in documents': { ...completed(yes), noted: ['citations'] },
};
