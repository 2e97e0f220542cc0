/** An answer of a messages upstream, on the way to a chat client (translation.md §5.2, §7, §9.1). */
import type * as Beta from '@anthropic-ai/sdk/resources/beta/messages/messages';
import type * as Stable from '@anthropic-ai/sdk/resources/messages/messages';
import {
  byCase,
  exact,
  holder,
  ignore,
  near,
  warn,
  whole,
  type Fields,
  type Variants,
} from './decision.ts';

const citations = {
  ...near('annotations', 'where the citation has an address'),
  one: {
    web_search_result_location: whole(near('annotations[].url_citation', 'for the whole block')),
    search_result_location: whole(
      near('annotations[].url_citation', 'where the source is an address; else dropped'),
    ),
    char_location: warn('positions in documents cannot be expressed there'),
    page_location: warn('positions in documents cannot be expressed there'),
    content_block_location: warn('positions in documents cannot be expressed there'),
  },
} as const satisfies { one: Variants<Beta.BetaTextCitation | Stable.TextCitation> } & object;

const hidden = ignore('the provider ran it; a client would try to run it again');

export const answerBlocks = {
  text: { ...exact('content'), in: { text: exact('content'), citations } },
  thinking: {
    ...exact('reasoning_content, reasoning_details'),
    in: {
      thinking: exact('reasoning_content, reasoning_details[].text'),
      signature: exact('reasoning_details[].signature'),
    },
  },
  redacted_thinking: {
    ...exact('reasoning_details'),
    in: { data: exact('reasoning_details[].data') },
  },
  tool_use: {
    ...exact('tool_calls'),
    in: {
      id: exact('tool_calls[].id'),
      name: exact('tool_calls[].function.name'),
      input: exact('tool_calls[].function.arguments'),
      caller: ignore('the caller does not change the call'),
      toolset_name: ignore('toolsets are refused in requests'),
    },
  },
  server_tool_use: hidden,
  web_search_tool_result: hidden,
  web_fetch_tool_result: hidden,
  advisor_tool_result: hidden,
  code_execution_tool_result: hidden,
  bash_code_execution_tool_result: hidden,
  text_editor_code_execution_tool_result: hidden,
  tool_search_tool_result: hidden,
  mcp_tool_use: hidden,
  mcp_tool_result: hidden,
  mcp_tool_listing: hidden,
  container_upload: hidden,
  compaction: hidden,
  fallback: hidden,
} as const satisfies Variants<Beta.BetaContentBlock | Stable.ContentBlock>;

export const messagesUsage = {
  input_tokens: exact('prompt_tokens', 'with what was read from and written to the cache'),
  cache_read_input_tokens: exact('prompt_tokens_details.cached_tokens'),
  cache_creation_input_tokens: exact('prompt_tokens_details.cache_write_tokens'),
  cache_creation: ignore('chat has one counter; the split is in the ledger'),
  output_tokens: exact('completion_tokens'),
  output_tokens_details: {
    ...exact('completion_tokens_details'),
    in: { thinking_tokens: exact('completion_tokens_details.reasoning_tokens') },
  },
  server_tool_use: ignore('no counter there'),
  service_tier: near('service_tier', 'standard and batch: default'),
  inference_geo: ignore(),
  iterations: ignore('compactions are added to the totals'),
  speed: ignore(),
  fallback_credit: ignore('only its own provider can use it'),
} as const satisfies Fields<Beta.BetaUsage | Stable.Usage | Beta.BetaMessageDeltaUsage>;

const stopReason = byCase({
  end_turn: exact('finish_reason', 'stop'),
  stop_sequence: exact('finish_reason, stop_reason', 'stop'),
  max_tokens: exact('finish_reason', 'length'),
  tool_use: exact('finish_reason', 'tool_calls, or function_call for requests with functions'),
  pause_turn: exact('', 'the gateway continues the turn; length after five rounds'),
  refusal: exact('finish_reason', 'content_filter'),
  model_context_window_exceeded: near('finish_reason', 'length'),
  compaction: near('finish_reason', 'stop; a chat client cannot ask for it'),
});

const stopDetails = {
  ...exact('message.refusal'),
  in: {
    type: exact(''),
    explanation: exact('message.refusal'),
    category: ignore('no field there'),
    fallback_credit_token: ignore('only its own provider can use it'),
    fallback_has_prefill_claim: ignore(),
    recommended_model: ignore('the route decides'),
  },
} as const;

const native = ignore('no field there');

export const messagesAnswer = {
  id: near('id', 'chatcmpl- and the id'),
  type: exact('object', 'chat.completion'),
  role: exact('message.role'),
  model: exact('model', 'the name that the client used'),
  content: { ...exact('message'), one: answerBlocks },
  stop_reason: stopReason,
  stop_sequence: exact('choices[].stop_reason'),
  stop_details: stopDetails,
  usage: { ...exact('usage'), in: messagesUsage },
  container: native,
  context_management: native,
  diagnostics: native,
  input_transformations: native,
} as const satisfies Fields<Beta.BetaMessage | Stable.Message>;

export const messagesEvents = {
  message_start: {
    ...exact('first chunk', 'role'),
    in: { message: whole(exact('id, usage', 'as in a document')) },
  },
  content_block_start: {
    ...exact(''),
    in: {
      index: exact('tool_calls[].index', 'counted over tool calls only'),
      content_block: { ...exact('delta', 'as in a document'), one: answerBlocks },
    },
  },
  content_block_delta: {
    ...exact('chunk'),
    in: {
      index: exact('tool_calls[].index'),
      delta: {
        ...exact('delta'),
        one: {
          text_delta: { ...exact('delta'), in: { text: exact('delta.content') } },
          thinking_delta: {
            ...exact('delta'),
            in: {
              thinking: exact('delta.reasoning_content, delta.reasoning_details[].text'),
              estimated_tokens: native,
            },
          },
          signature_delta: {
            ...exact('delta'),
            in: { signature: exact('delta.reasoning_details[].signature') },
          },
          input_json_delta: {
            ...exact('delta'),
            in: { partial_json: exact('delta.tool_calls[].function.arguments') },
          },
          citations_delta: {
            ...near('delta.annotations', 'at the end of the block'),
            in: { citation: citations },
          },
          compaction_delta: hidden,
        },
      },
    },
  },
  content_block_stop: { ...exact(''), in: { index: exact('') } },
  message_delta: {
    ...exact('finish chunk'),
    in: {
      delta: {
        ...holder,
        in: {
          stop_reason: stopReason,
          stop_sequence: exact('choices[].stop_reason'),
          stop_details: stopDetails,
          container: native,
        },
      },
      usage: {
        ...exact('usage chunk', 'replaces the count of message_start'),
        in: {
          input_tokens: messagesUsage.input_tokens,
          cache_read_input_tokens: messagesUsage.cache_read_input_tokens,
          cache_creation_input_tokens: messagesUsage.cache_creation_input_tokens,
          output_tokens: messagesUsage.output_tokens,
          output_tokens_details: messagesUsage.output_tokens_details,
          server_tool_use: messagesUsage.server_tool_use,
          iterations: messagesUsage.iterations,
          fallback_credit: messagesUsage.fallback_credit,
        },
      },
      context_management: native,
      input_transformations: native,
    },
  },
  message_stop: { ...exact('[DONE]', 'after the finish chunk and the usage chunk'), in: {} },
} as const satisfies Variants<Beta.BetaRawMessageStreamEvent | Stable.RawMessageStreamEvent>;
