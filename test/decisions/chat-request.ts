/** A chat request on the way to a messages upstream (translation.md §1, §4.1, §8). */
import type { ChatCompletionCreateParamsBase } from 'openai/resources/chat/completions/completions';
import { chatMessages } from './chat-message.ts';
import {
  chatFunctions,
  chatToolChoice,
  chatTools,
  noSuchField,
  responseFormats,
} from './chat-tools.ts';
import {
  approx,
  byCase,
  exact,
  ignore,
  near,
  reject,
  warn,
  whole,
  type AnyFields,
  type Fields,
} from './decision.ts';

const untunable = warn('the model refuses sampling parameters');
const endUser = byCase({
  'up to 256 characters': exact('metadata.user_id'),
  longer: near('metadata.user_id', 'its SHA-256'),
});

export const chatRequest = {
  model: exact('model', "the route's model; the answer shows the name that the client used"),
  messages: { ...exact('system, messages'), one: chatMessages },
  max_completion_tokens: byCase({
    'from 16': exact('max_tokens', "absent: the model's own limit, else 8192"),
    'below 16': exact('max_tokens'),
  }),
  max_tokens: exact('max_tokens', 'the old spelling'),
  temperature: byCase({
    '0 to 1': exact('temperature'),
    'above 1': approx('temperature', 'at most 1 there'),
    'untunable model': untunable,
  }),
  top_p: byCase({ 'tunable model': exact('top_p'), 'untunable model': untunable }),
  n: byCase({ '1': ignore('the default'), 'above 1': reject('one answer only') }),
  stop: byCase({
    text: exact('stop_sequences'),
    list: exact('stop_sequences'),
    'white space only': exact('', 'enforced by the gateway'),
    'an empty text': reject(),
  }),
  stream: exact('stream'),
  stream_options: {
    ...exact(''),
    in: {
      include_usage: exact('', 'the gateway sends the usage chunk'),
      include_obfuscation: ignore('the gateway pads nothing'),
    },
  },
  tools: { ...exact('tools'), one: chatTools },
  tool_choice: {
    ...byCase({
      auto: exact('{type: "auto"}'),
      none: exact('{type: "none"}', 'the tools stay, to keep the cached prefix'),
      required: exact('{type: "any"}', 'thinking is switched off and noted if it was asked for'),
    }),
    one: chatToolChoice,
  },
  parallel_tool_calls: byCase({
    true: ignore('the default'),
    false: exact('tool_choice.disable_parallel_tool_use'),
  }),
  functions: { ...exact('tools'), in: chatFunctions },
  function_call: {
    ...byCase({ auto: exact('{type: "auto"}'), none: exact('{type: "none"}') }),
    in: { name: exact('{type: "tool"}') },
  },
  response_format: { ...exact('output_config.format'), one: responseFormats },
  reasoning_effort: byCase({
    none: exact('thinking', 'disabled'),
    minimal: near('output_config.effort', 'low'),
    low: exact('output_config.effort', 'with adaptive thinking, or 10 % of the cap as budget'),
    medium: exact('output_config.effort', 'or 30 % of the cap as budget'),
    high: exact('output_config.effort', 'or 60 % of the cap as budget'),
    xhigh: exact('output_config.effort', 'or 80 % of the cap as budget'),
    max: exact('output_config.effort', 'or 90 % of the cap as budget'),
    'model that does not think': warn(),
  }),
  verbosity: byCase({ medium: ignore('the default'), 'low, high': noSuchField }),
  logprobs: byCase({ false: ignore('the default'), true: reject('not reported by the gateway') }),
  top_logprobs: byCase({
    '0': ignore('the default'),
    'above 0': reject('not reported by the gateway'),
  }),
  logit_bias: byCase({ empty: ignore(), 'some bias': noSuchField }),
  frequency_penalty: byCase({ '0': ignore('the default'), 'other values': noSuchField }),
  presence_penalty: byCase({ '0': ignore('the default'), 'other values': noSuchField }),
  seed: warn('the model takes no seed'),
  prediction: ignore('a hint about speed'),
  modalities: byCase({
    'text only': ignore('the default'),
    'with audio': reject('no audio there'),
  }),
  audio: byCase({
    'without the audio modality': ignore(),
    'with it': reject('no audio there'),
  }),
  user: endUser,
  safety_identifier: endUser,
  metadata: noSuchField,
  store: byCase({ false: ignore('the default'), true: noSuchField }),
  prompt_cache_key: ignore('a hint about caching'),
  prompt_cache_options: ignore('marks are kept; nothing is marked that the client did not mark'),
  prompt_cache_retention: byCase({
    '24h': approx('cache_control.ttl', '1h on existing marks'),
    in_memory: ignore('the default'),
  }),
  service_tier: byCase({
    auto: exact('', 'the default there as well'),
    default: exact('service_tier', 'standard_only'),
    priority: approx('service_tier', 'auto: priority where the account has it'),
    fast: warn('auto is used'),
    'fast, provider with a fast-mode beta': exact('speed'),
    'flex, scale': warn(),
  }),
  web_search_options: {
    ...byCase({
      'provider or route with server_tools': near('tools', 'the web search of the provider'),
      others: reject('the search there needs server_tools'),
    }),
    in: {
      search_context_size: byCase({
        medium: ignore('the default'),
        'low, high': warn('that search has no such option'),
      }),
      user_location: whole(exact('tools[].user_location')),
    },
  },
  moderation: byCase({
    'with the mode block': reject('the upstream could not keep this promise'),
    'without it': noSuchField,
  }),
} as const satisfies Fields<ChatCompletionCreateParamsBase>;

/** What clients send beside the fields of the official SDK; extensions of other gateways and engines. */
export const chatRequestExtensions: AnyFields = {
  top_k: byCase({ 'tunable model': exact('top_k'), 'untunable model': untunable }),
  thinking: {
    ...exact('thinking', 'wins over reasoning_effort'),
    one: {
      enabled: { ...exact('thinking'), in: { budget_tokens: exact('thinking.budget_tokens') } },
      adaptive: exact('thinking'),
      disabled: exact('thinking'),
    },
  },
  reasoning: {
    ...exact('thinking'),
    in: {
      effort: exact('output_config.effort', 'as reasoning_effort'),
      max_tokens: exact('thinking.budget_tokens'),
      enabled: exact('thinking'),
      exclude: exact('', 'the reasoning is left out of the answer'),
    },
  },
  cache_control: exact('cache_control'),
  'any other field': warn('passed on to chat upstreams only'),
};

/** The same, on messages. */
export const chatMessageExtensions: AnyFields = {
  'messages[user].content[text].cache_control': exact('cache_control of the block'),
  'messages[user].cache_control': exact('cache_control of the last block'),
  'messages[tool].cache_control': exact('cache_control of the tool_result'),
  'tools[function].cache_control': exact('cache_control of the tool'),
  'messages[tool].content[image_url]': exact('image block in the tool_result'),
  'messages[assistant].reasoning_content': ignore('unsigned reasoning is refused there'),
  'messages[assistant].reasoning_details': exact('thinking blocks', 'those that carry a signature'),
  'messages[assistant].thinking_blocks': exact('thinking blocks'),
};
