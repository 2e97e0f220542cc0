/** An answer of a chat upstream, on the way to a messages client (translation.md §5.4, §7, §9.2). */
import type { CompletionUsage } from 'openai/resources/completions';
import type {
  ChatCompletion,
  ChatCompletionChunk,
} from 'openai/resources/chat/completions/completions';
import {
  byCase,
  exact,
  ignore,
  near,
  warn,
  whole,
  type AnyFields,
  type Fields,
} from './decision.ts';

const finishReason = byCase({
  stop: exact(
    'stop_reason',
    'end_turn; stop_sequence where the sequence is known; tool_use with calls',
  ),
  length: exact('stop_reason', 'max_tokens'),
  tool_calls: exact('stop_reason', 'tool_use'),
  function_call: exact('stop_reason', 'tool_use'),
  content_filter: exact('stop_reason', 'refusal'),
});
const notAsked = ignore('refused in requests');
const moderation = ignore('the request had none');
const noSlot = ignore('no counter there; kept in the ledger');

export const chatUsage = {
  prompt_tokens: exact('input_tokens', 'without what was read from and written to the cache'),
  completion_tokens: exact('output_tokens'),
  total_tokens: exact('', 'the sum of the others'),
  prompt_tokens_details: {
    ...exact('usage'),
    in: {
      cached_tokens: exact('cache_read_input_tokens'),
      cache_write_tokens: exact('cache_creation_input_tokens'),
      audio_tokens: noSlot,
      image_tokens: noSlot,
      text_tokens: noSlot,
    },
  },
  completion_tokens_details: {
    ...exact('output_tokens_details'),
    in: {
      reasoning_tokens: exact('output_tokens_details.thinking_tokens'),
      accepted_prediction_tokens: noSlot,
      rejected_prediction_tokens: noSlot,
      audio_tokens: noSlot,
      text_tokens: noSlot,
    },
  },
} as const satisfies Fields<CompletionUsage>;

const shared = {
  id: near('id', 'msg_ and the id'),
  created: ignore('no field there'),
  model: exact('model', 'the name that the client used'),
  moderation,
  service_tier: near('usage.service_tier', 'default: standard, priority: priority'),
  system_fingerprint: ignore('no field there'),
  usage: { ...exact('usage'), in: chatUsage },
} as const;

export const chatAnswer = {
  ...shared,
  object: exact('type', 'message'),
  metadata: ignore('not sent in requests'),
  choices: {
    ...exact('', 'the first one'),
    in: {
      index: exact(''),
      finish_reason: finishReason,
      logprobs: notAsked,
      message: {
        ...exact('content'),
        in: {
          role: exact('role'),
          content: exact('text block', 'none when it is empty'),
          refusal: exact('text block, stop_details.explanation'),
          annotations: warn('citations there carry a key that only Anthropic can make'),
          audio: whole(near('text block', 'what was said; a messages client cannot ask for it')),
          function_call: {
            ...exact('tool_use block'),
            in: { name: exact('name'), arguments: exact('input') },
          },
          tool_calls: {
            ...exact('tool_use blocks'),
            one: {
              function: {
                ...exact('tool_use block'),
                in: {
                  id: exact('id'),
                  function: {
                    ...exact('name, input'),
                    in: {
                      name: exact('name'),
                      arguments: exact(
                        'input',
                        'wrapped as {"_raw": …} when it begins like no object; a broken object is an error',
                      ),
                    },
                  },
                },
              },
              custom: {
                ...exact('tool_use block'),
                in: {
                  id: exact('id'),
                  custom: {
                    ...exact('name, input'),
                    in: { name: exact('name'), input: exact('input.input') },
                  },
                },
              },
            },
          },
        },
      },
    },
  },
} as const satisfies Fields<ChatCompletion>;

const callDelta = {
  ...exact('tool_use block'),
  in: {
    index: exact('', 'distinguishes the calls'),
    id: exact('content_block.id'),
    function: {
      ...exact('tool_use block'),
      in: { name: exact('content_block.name'), arguments: exact('input_json_delta') },
    },
    custom: {
      ...exact('tool_use block'),
      in: { name: exact('content_block.name'), input: exact('input_json_delta') },
    },
  },
} as const;

export const chatChunk = {
  ...shared,
  object: exact(''),
  obfuscation: ignore('padding'),
  choices: {
    ...exact(''),
    in: {
      index: exact('', 'the first choice only'),
      finish_reason: finishReason,
      logprobs: notAsked,
      delta: {
        ...exact('content_block_delta'),
        in: {
          role: exact('message_start'),
          content: exact('text_delta'),
          refusal: exact('text_delta, stop_details.explanation'),
          audio: whole(near('text_delta', 'text only; a messages client cannot request audio')),
          function_call: {
            ...exact('tool_use block'),
            in: { name: exact('content_block.name'), arguments: exact('input_json_delta') },
          },
          tool_calls: {
            ...exact('tool_use blocks, one after the other'),
            one: { function: callDelta, custom: callDelta },
          },
        },
      },
    },
  },
} as const satisfies Fields<ChatCompletionChunk>;

/** What chat upstreams answer beside the fields of the official SDK. */
export const chatAnswerExtensions: AnyFields = {
  'choices[].message.reasoning_content': exact('thinking block', 'sealed by the gateway'),
  'choices[].message.reasoning': exact('thinking block', 'sealed by the gateway'),
  'choices[].message.reasoning_details': exact('thinking and redacted_thinking blocks'),
  citations: warn('citations there carry a key that only Anthropic can make'),
  search_results: warn('citations there carry a key that only Anthropic can make'),
  'choices[].message.executed_tools': warn('a block that only its provider knows'),
  'choices[].stop_reason': exact('stop_sequence', 'where it names the sequence'),
};
