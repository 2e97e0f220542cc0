/** Answers of responses models, with every field of the types. */
import type {
  Response,
  ResponseOutputItem,
  ResponseOutputText,
} from 'openai/resources/responses/responses';
import type { JsonObject } from '../../src/json/value.ts';
import type { AnswerSample } from './answer-sample.ts';

type Document = Partial<Response>;
type Item = ResponseOutputItem;

function text(words: string, more: Partial<ResponseOutputText> = {}): Item {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: words, annotations: [], logprobs: [], ...more }],
  };
}

const yes = text('Yes.');
const sealed = [{ type: 'redacted_thinking' }];

/** What both clients read in a call. @param kept the block that keeps what it is at its provider. */
function called(
  name: string,
  input: JsonObject,
  kept: readonly JsonObject[] = [],
): AnswerSample<Document>['to'] {
  const args = JSON.stringify(input);
  return {
    chat: {
      tells: {
        choices: [
          {
            finish_reason: 'tool_calls',
            message: { tool_calls: [{ id: 'call_1', function: { name, arguments: args } }] },
          },
        ],
      },
    },
    messages: {
      tells: {
        stop_reason: 'tool_use',
        content: [...kept, { type: 'tool_use', id: 'call_1', name, input }],
      },
    },
  };
}

function cut(
  reason: NonNullable<NonNullable<Response['incomplete_details']>['reason']>,
  [chat, messages]: readonly [chat: string, messages: string],
): AnswerSample<Document> {
  const isKnown = reason === 'max_output_tokens' || reason === 'content_filter';
  const noted = isKnown ? {} : { noted: ['incomplete_details.reason'] };
  const content = [{ type: 'text', text: 'Yes.' }];
  return {
    name: `incomplete, ${reason}`,
    answer: { status: 'incomplete', incomplete_details: { reason }, output: [yes] },
    to: {
      chat: {
        tells: { choices: [{ finish_reason: chat, message: { content: 'Yes.' } }] },
        ...noted,
      },
      messages: { tells: { stop_reason: messages, content }, ...noted },
    },
  };
}

/** Items of tools that the provider ran, and of turns that it keeps: no client of another API sees them. */
const hidden: readonly Item[] = [
  {
    id: 'ws_1',
    type: 'web_search_call',
    status: 'completed',
    action: { type: 'search', query: 'q', queries: ['q'] },
  },
  { id: 'fs_1', type: 'file_search_call', status: 'completed', queries: ['q'] },
  {
    id: 'ci_1',
    type: 'code_interpreter_call',
    status: 'completed',
    code: '1',
    container_id: 'c',
    outputs: null,
  },
  { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: 'AAAA' },
  {
    id: 'cu_1',
    type: 'computer_call',
    call_id: 'c1',
    status: 'completed',
    pending_safety_checks: [],
    action: { type: 'screenshot' },
  },
  {
    id: 'cuo_1',
    type: 'computer_call_output',
    call_id: 'c1',
    status: 'completed',
    output: { type: 'computer_screenshot', image_url: 'https://example.com/a.png' },
  },
  { id: 'fco_1', type: 'function_call_output', call_id: 'c2', status: 'completed', output: 'o' },
  {
    id: 'ctco_1',
    type: 'custom_tool_call_output',
    call_id: 'c3',
    status: 'completed',
    output: 'o',
  },
  { id: 'lsho_1', type: 'local_shell_call_output', output: 'o' },
  {
    id: 'sho_1',
    type: 'shell_call_output',
    call_id: 'c4',
    max_output_length: null,
    output: [],
    status: 'completed',
  },
  { id: 'apco_1', type: 'apply_patch_call_output', call_id: 'c5', status: 'completed' },
  {
    id: 'tsc_2',
    type: 'tool_search_call',
    call_id: null,
    execution: 'server',
    status: 'completed',
    arguments: {},
  },
  {
    id: 'tso_1',
    type: 'tool_search_output',
    call_id: null,
    execution: 'server',
    status: 'completed',
    tools: [],
  },
  { id: 'at_1', type: 'additional_tools', role: 'developer', tools: [] },
  { id: 'pr_1', type: 'program', call_id: 'c6', code: '1', fingerprint: 'f' },
  { id: 'pro_1', type: 'program_output', call_id: 'c6', result: '1', status: 'completed' },
  { id: 'mcp_1', type: 'mcp_call', name: 'find', server_label: 'm', arguments: '{}' },
  { id: 'mcpl_1', type: 'mcp_list_tools', server_label: 'm', tools: [] },
  { id: 'mcpr_1', type: 'mcp_approval_request', name: 'find', server_label: 'm', arguments: '{}' },
  { id: 'mcpa_1', type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
  { id: 'cmp_1', type: 'compaction', encrypted_content: 'e' },
];

const scored = {
  type: 'moderation_result',
  model: 'm',
  flagged: false,
  categories: {},
  category_applied_input_types: {},
  category_scores: {},
} as const;

/** Events that tell of nothing a client of another API can use, by the members of each. */
const progress: readonly JsonObject[] = [
  ...['web_search_call', 'file_search_call'].flatMap((tool) => steps(tool, ['searching'])),
  ...steps('code_interpreter_call', ['interpreting']),
  ...steps('image_generation_call', ['generating']),
  ...steps('mcp_call', ['failed']),
  ...steps('mcp_list_tools', ['failed']),
  { type: 'response.code_interpreter_call_code.delta', item_id: 'ci_1', delta: '1' },
  { type: 'response.code_interpreter_call_code.done', item_id: 'ci_1', code: '1' },
  {
    type: 'response.image_generation_call.partial_image',
    item_id: 'ig_1',
    partial_image_index: 0,
    partial_image_b64: 'AAAA',
  },
  { type: 'response.mcp_call_arguments.delta', item_id: 'mcp_1', delta: '{}' },
  { type: 'response.mcp_call_arguments.done', item_id: 'mcp_1', arguments: '{}' },
  { type: 'response.shell_call_output_content.delta', item_id: 'sho_1', delta: { stdout: 'o' } },
  { type: 'response.shell_call_output_content.done', item_id: 'sho_1', output: [] },
  { type: 'response.compaction.compacting', item_id: 'cmp_1' },
  { type: 'response.audio.delta', delta: 'AAAA' },
  { type: 'response.audio.done' },
  { type: 'response.audio.transcript.delta', delta: 'Yes.' },
  { type: 'response.audio.transcript.done' },
  { type: 'response.queued' },
].map((event) => ({ output_index: 0, ...event }));

function steps(tool: string, more: readonly string[]): readonly JsonObject[] {
  return ['in_progress', ...more, 'completed'].map((step) => ({
    type: `response.${tool}.${step}`,
    item_id: 'x_1',
  }));
}

export const responsesAnswers: readonly AnswerSample<Document>[] = [
  {
    name: 'completed, with every field of the response',
    answer: {
      output: [
        text('Yes.', {
          logprobs: [{ token: 'Yes.', bytes: [], logprob: -1, top_logprobs: [] }],
        }),
      ],
      output_text: 'Yes.',
      access_programs: { cyber: 'standard' },
      background: false,
      completed_at: 2,
      conversation: { id: 'conv_1' },
      image: { context_compression: 'enabled' },
      instructions: 'Be short.',
      max_output_tokens: 10,
      max_tool_calls: 1,
      metadata: { a: 'b' },
      moderation: { input: scored, output: scored },
      parallel_tool_calls: true,
      previous_response_id: 'resp_0',
      prompt: { id: 'pmpt_1' },
      prompt_cache_diagnostics: { type: 'cache_hit' },
      prompt_cache_key: 'k',
      prompt_cache_options: { mode: 'implicit', ttl: '30m' },
      prompt_cache_retention: '24h',
      reasoning: { effort: 'low' },
      safety_identifier: 's',
      service_tier: 'priority',
      temperature: 1,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      tool_usage: {
        image_gen: {
          input_tokens: 0,
          input_tokens_details: { image_tokens: 0, text_tokens: 0 },
          output_tokens: 0,
          total_tokens: 0,
        },
        web_search: { num_requests: 0 },
      },
      top_logprobs: 0,
      top_p: 1,
      truncation: 'disabled',
      usage: {
        input_tokens: 60,
        input_tokens_details: {
          cached_tokens: 20,
          cache_write_tokens: 30,
          cache_write_tokens_details: { ttl_12h_tokens: 10, ttl_30m_tokens: 20 },
        },
        output_tokens: 40,
        output_tokens_details: { reasoning_tokens: 5 },
        total_tokens: 100,
      },
      user: 'u',
    },
    to: {
      chat: {
        tells: {
          id: 'chatcmpl-resp_1',
          object: 'chat.completion',
          service_tier: 'priority',
          choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: 'Yes.' } }],
          usage: {
            prompt_tokens: 60,
            completion_tokens: 40,
            total_tokens: 100,
            prompt_tokens_details: { cached_tokens: 20, cache_write_tokens: 30 },
            completion_tokens_details: { reasoning_tokens: 5 },
          },
        },
      },
      messages: {
        tells: {
          id: 'msg_resp_1',
          type: 'message',
          role: 'assistant',
          content: [{ type: 'text', text: 'Yes.' }],
          stop_reason: 'end_turn',
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
    },
  },
  cut('max_output_tokens', ['length', 'max_tokens']),
  cut('content_filter', ['content_filter', 'refusal']),
  cut('max_messages', ['length', 'max_tokens']),
  cut('steered', ['length', 'max_tokens']),
  {
    name: 'a refusal',
    answer: {
      output: [
        {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'refusal', refusal: 'Not this.' }],
        },
      ],
    },
    to: {
      chat: { tells: { choices: [{ message: { content: null, refusal: 'Not this.' } }] } },
      messages: {
        tells: {
          content: [{ type: 'text', text: 'Not this.' }],
          stop_reason: 'refusal',
          stop_details: { type: 'refusal', explanation: 'Not this.' },
        },
      },
    },
  },
  {
    name: 'messages of two phases',
    answer: {
      output: [
        { ...text('First.'), id: 'msg_1', phase: 'commentary' } as Item,
        { ...text('Then.'), id: 'msg_2', phase: 'final_answer' } as Item,
      ],
    },
    to: {
      chat: { tells: { choices: [{ message: { content: 'First.\n\nThen.' } }] } },
      messages: {
        tells: {
          content: [
            { type: 'text', text: 'First.' },
            { type: 'text', text: 'Then.' },
          ],
        },
      },
    },
  },
  {
    name: 'reasoning with a summary and a blob',
    answer: {
      output: [
        {
          id: 'rs_1',
          type: 'reasoning',
          status: 'completed',
          summary: [
            { type: 'summary_text', text: 'Hm.' },
            { type: 'summary_text', text: 'So.' },
          ],
          encrypted_content: 'blob',
        },
        yes,
      ],
    },
    to: {
      chat: {
        tells: {
          choices: [
            {
              message: {
                content: 'Yes.',
                reasoning_content: 'Hm.\n\nSo.',
                reasoning_details: [{}],
              },
            },
          ],
        },
      },
      messages: {
        tells: {
          content: [
            { type: 'thinking', thinking: 'Hm.\n\nSo.' },
            { type: 'text', text: 'Yes.' },
          ],
        },
      },
    },
  },
  {
    name: 'reasoning as it was thought',
    answer: {
      output: [
        {
          id: 'rs_1',
          type: 'reasoning',
          summary: [],
          content: [{ type: 'reasoning_text', text: 'Hm.' }],
        },
        yes,
      ],
    },
    to: {
      chat: { tells: { choices: [{ message: { content: 'Yes.', reasoning_content: 'Hm.' } }] } },
      messages: {
        tells: {
          content: [
            { type: 'thinking', thinking: 'Hm.' },
            { type: 'text', text: 'Yes.' },
          ],
        },
      },
    },
  },
  {
    name: 'annotations',
    answer: {
      output: [
        text('Yes. No.', {
          annotations: [
            {
              type: 'url_citation',
              url: 'https://example.com',
              title: 'T',
              start_index: 5,
              end_index: 8,
            },
            { type: 'file_citation', file_id: 'f', filename: 'a.txt', index: 0 },
            {
              type: 'container_file_citation',
              container_id: 'c',
              file_id: 'f',
              filename: 'a.txt',
              start_index: 0,
              end_index: 3,
            },
            { type: 'file_path', file_id: 'f', index: 0 },
          ],
        }),
      ],
    },
    to: {
      chat: {
        tells: {
          choices: [
            {
              message: {
                annotations: [
                  {
                    type: 'url_citation',
                    url_citation: {
                      url: 'https://example.com',
                      title: 'T',
                      start_index: 5,
                      end_index: 8,
                    },
                  },
                ],
              },
            },
          ],
        },
        noted: ['citations'],
      },
      messages: {
        tells: { content: [{ type: 'text', text: 'Yes. No.' }] },
        noted: ['citations'],
      },
    },
  },
  {
    name: 'a call of a function',
    answer: {
      output: [
        {
          id: 'fc_1',
          type: 'function_call',
          status: 'completed',
          call_id: 'call_1',
          name: 'weather',
          namespace: 'n',
          async: false,
          caller: { type: 'direct' },
          arguments: '{"city":"Oslo"}',
        },
      ],
    },
    to: called('weather', { city: 'Oslo' }, sealed),
  },
  {
    name: 'a call with free text',
    answer: {
      output: [
        {
          id: 'ctc_1',
          type: 'custom_tool_call',
          call_id: 'call_1',
          name: 'run',
          namespace: 'n',
          async: false,
          caller: { type: 'direct' },
          input: 'ls',
        },
      ],
    },
    to: called('run', { input: 'ls' }, sealed),
  },
  {
    name: 'a search of tools',
    answer: {
      output: [
        {
          id: 'tsc_1',
          type: 'tool_search_call',
          status: 'completed',
          call_id: 'call_1',
          execution: 'client',
          created_by: 'c',
          arguments: { query: 'q' },
        },
      ],
    },
    to: called('tool_search', { query: 'q' }, sealed),
  },
  {
    name: 'a local shell',
    answer: {
      output: [
        {
          id: 'lsh_1',
          type: 'local_shell_call',
          status: 'completed',
          call_id: 'call_1',
          action: { type: 'exec', command: ['ls'], env: {} },
        },
      ],
    },
    to: called('local_shell', { command: ['ls'], env: {} }, sealed),
  },
  {
    name: 'a shell',
    answer: {
      output: [
        {
          id: 'sh_1',
          type: 'shell_call',
          status: 'completed',
          call_id: 'call_1',
          caller: { type: 'direct' },
          created_by: 'c',
          environment: { type: 'local' },
          action: { commands: ['ls'], timeout_ms: null, max_output_length: null },
        },
      ],
    },
    to: called('shell', { commands: ['ls'], timeout_ms: null, max_output_length: null }, sealed),
  },
  {
    name: 'a patch',
    answer: {
      output: [
        {
          id: 'apc_1',
          type: 'apply_patch_call',
          status: 'completed',
          call_id: 'call_1',
          caller: { type: 'direct' },
          created_by: 'c',
          operation: { type: 'delete_file', path: 'a' },
        },
      ],
    },
    to: called('apply_patch', { operation: { type: 'delete_file', path: 'a' } }, sealed),
  },
  {
    name: 'what the provider ran itself',
    answer: { output: [...hidden, yes] },
    events: progress,
    to: {
      chat: { tells: { choices: [{ finish_reason: 'stop', message: { content: 'Yes.' } }] } },
      messages: {
        tells: { stop_reason: 'end_turn', content: [{ type: 'text', text: 'Yes.' }] },
        noted: ['content'],
      },
    },
  },
];
