/** Answers of messages models, with every field of the beta types. */
import type {
  BetaContentBlock,
  BetaMessage,
  BetaStopReason,
} from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type { FirstSample } from './answer-sample.ts';

type Document = Partial<BetaMessage>;

const text: BetaContentBlock = { type: 'text', text: 'Yes.', citations: null };

function ended(reason: BetaStopReason, finish: string): FirstSample<Document> {
  return {
    name: reason,
    answer: { content: [text], stop_reason: reason },
    tells: { choices: [{ finish_reason: finish, message: { content: 'Yes.' } }] },
  };
}

const usage: BetaMessage['usage'] = {
  input_tokens: 10,
  cache_read_input_tokens: 20,
  cache_creation_input_tokens: 30,
  cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
  output_tokens: 40,
  output_tokens_details: { thinking_tokens: 5 },
  server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
  service_tier: 'priority',
  inference_geo: 'eu',
  speed: 'standard',
  fallback_credit: { status: { type: 'redeemed' } },
  iterations: [
    {
      type: 'message',
      model: 'claude-opus-4-8',
      input_tokens: 10,
      output_tokens: 40,
      cache_creation: null,
      cache_creation_input_tokens: 30,
      cache_read_input_tokens: 20,
    },
  ],
};

const place = { cited_text: 'c', document_index: 0, document_title: 'd', file_id: null };
const searched = {
  cited_text: 'c',
  search_result_index: 0,
  title: 't',
  start_block_index: 0,
  end_block_index: 1,
};

/** Blocks of tools that the provider ran: a chat client sees none of them. */
const hidden: readonly BetaContentBlock[] = [
  { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'q' } },
  { type: 'web_search_tool_result', tool_use_id: 's1', content: [] },
  {
    type: 'web_fetch_tool_result',
    tool_use_id: 's2',
    content: { type: 'web_fetch_tool_result_error', error_code: 'unavailable' },
  },
  {
    type: 'advisor_tool_result',
    tool_use_id: 's3',
    content: { type: 'advisor_redacted_result', encrypted_content: 'e', stop_reason: null },
  },
  {
    type: 'code_execution_tool_result',
    tool_use_id: 's4',
    content: { type: 'code_execution_tool_result_error', error_code: 'unavailable' },
  },
  {
    type: 'bash_code_execution_tool_result',
    tool_use_id: 's5',
    content: { type: 'bash_code_execution_tool_result_error', error_code: 'unavailable' },
  },
  {
    type: 'text_editor_code_execution_tool_result',
    tool_use_id: 's6',
    content: { type: 'text_editor_code_execution_create_result', is_file_update: true },
  },
  {
    type: 'tool_search_tool_result',
    tool_use_id: 's7',
    content: { type: 'tool_search_tool_search_result', tool_references: [] },
  },
  { type: 'mcp_tool_use', id: 'm1', name: 'find', server_name: 'm', input: {} },
  { type: 'mcp_tool_result', tool_use_id: 'm1', content: 'c', is_error: false },
  { type: 'mcp_tool_listing', mcp_server_name: 'm', tools: [] },
  { type: 'container_upload', file_id: 'f' },
  { type: 'compaction', content: 'c', encrypted_content: null },
  {
    type: 'fallback',
    from: { model: 'claude-opus-4-8' },
    to: { model: 'claude-sonnet-5' },
    trigger: { type: 'refusal', category: null },
  },
];

export const messagesAnswers: readonly FirstSample<Document>[] = [
  ended('end_turn', 'stop'),
  ended('max_tokens', 'length'),
  ended('model_context_window_exceeded', 'length'),
  ended('compaction', 'stop'),
  {
    name: 'stop_sequence',
    answer: { content: [text], stop_reason: 'stop_sequence', stop_sequence: 'END' },
    tells: { choices: [{ finish_reason: 'stop', stop_reason: 'END' }] },
  },
  {
    name: 'refusal',
    answer: {
      content: [],
      stop_reason: 'refusal',
      stop_details: {
        type: 'refusal',
        category: 'cyber',
        explanation: 'Not this.',
        fallback_credit_token: 't',
        fallback_has_prefill_claim: false,
        recommended_model: 'claude-sonnet-5',
      },
    },
    tells: { choices: [{ finish_reason: 'content_filter', message: { refusal: 'Not this.' } }] },
  },
  {
    name: 'thinking, text and a call',
    answer: {
      content: [
        { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
        { type: 'redacted_thinking', data: 'ZGF0YQ==' },
        text,
        {
          type: 'tool_use',
          id: 'toolu_1',
          name: 'weather',
          input: { city: 'Oslo' },
          caller: { type: 'direct' },
          toolset_name: 'x',
        },
      ],
      stop_reason: 'tool_use',
      usage,
      container: { id: 'c', expires_at: '2030-01-01T00:00:00Z', skills: null },
      context_management: { applied_edits: [] },
      diagnostics: { cache_miss_reason: null },
      input_transformations: [],
    },
    tells: {
      object: 'chat.completion',
      service_tier: 'priority',
      choices: [
        {
          finish_reason: 'tool_calls',
          message: {
            role: 'assistant',
            content: 'Yes.',
            reasoning_content: 'Hm.',
            reasoning_details: [
              { type: 'reasoning.text', text: 'Hm.', signature: 'c2ln' },
              { type: 'reasoning.encrypted', data: 'ZGF0YQ==' },
            ],
            tool_calls: [
              {
                id: 'toolu_1',
                type: 'function',
                function: { name: 'weather', arguments: '{"city":"Oslo"}' },
              },
            ],
          },
        },
      ],
      usage: {
        prompt_tokens: 60,
        completion_tokens: 40,
        total_tokens: 100,
        prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 30 },
        completion_tokens_details: { reasoning_tokens: 5 },
      },
    },
  },
  {
    name: 'what the provider ran itself',
    answer: { content: [...hidden, text], stop_reason: 'end_turn' },
    tells: { choices: [{ finish_reason: 'stop', message: { content: 'Yes.' } }] },
  },
  {
    name: 'citations with an address',
    answer: {
      content: [
        {
          type: 'text',
          text: 'Yes.',
          citations: [
            {
              type: 'web_search_result_location',
              cited_text: 'c',
              encrypted_index: 'e',
              title: 'T',
              url: 'https://example.com/a',
            },
            { type: 'search_result_location', source: 'https://example.com/b', ...searched },
          ],
        },
      ],
      stop_reason: 'end_turn',
    },
    tells: {
      choices: [
        {
          message: {
            annotations: [
              {
                type: 'url_citation',
                url_citation: {
                  url: 'https://example.com/a',
                  title: 'T',
                  start_index: 0,
                  end_index: 4,
                },
              },
              { type: 'url_citation', url_citation: { url: 'https://example.com/b' } },
            ],
          },
        },
      ],
    },
  },
  {
    name: 'citations of places in documents',
    answer: {
      content: [
        {
          type: 'text',
          text: 'Yes.',
          citations: [
            { type: 'char_location', start_char_index: 0, end_char_index: 1, ...place },
            { type: 'page_location', start_page_number: 1, end_page_number: 2, ...place },
            { type: 'content_block_location', start_block_index: 0, end_block_index: 1, ...place },
          ],
        },
      ],
      stop_reason: 'end_turn',
    },
    tells: { choices: [{ message: { content: 'Yes.' } }] },
    noted: ['citations'],
  },
];
