/** Chat requests, one for each top-level field and case. */
import type { ChatCompletionCreateParamsBase } from 'openai/resources/chat/completions/completions';
import { legacyFunctions, objectSchema, type Samples } from './sample.ts';

const long = 'u'.repeat(300);
const adaptive = 'anthropic/claude-opus-4-8';
const budget = 'anthropic/claude-sonnet-4-5';
const thoughtless = 'anthropic/claude-3-5-haiku-20241022';
const tools = [
  { type: 'function', function: { name: 'weather', parameters: objectSchema } },
] as const;
const twoTools = [
  ...tools,
  { type: 'function', function: { name: 'time', parameters: objectSchema } },
] as const;
type Sent = Partial<ChatCompletionCreateParamsBase>;

const plain: Samples<Sent> = {
  model: { sends: {}, arrives: { messages: [{ role: 'user' }] } },
  'max_completion_tokens (from 16)': {
    sends: { max_completion_tokens: 77 },
    arrives: { max_tokens: 77 },
  },
  'max_completion_tokens (below 16)': {
    sends: { max_completion_tokens: 5 },
    arrives: { max_tokens: 5 },
  },
  max_tokens: { sends: { max_tokens: 78 }, arrives: { max_tokens: 78 } },
  'temperature (0 to 1)': { sends: { temperature: 0.3 }, arrives: { temperature: 0.3 } },
  'temperature (above 1)': { sends: { temperature: 1.5 }, arrives: { temperature: 1 } },
  'temperature (untunable model)': {
    sends: { temperature: 0.3 },
    behind: adaptive,
    absent: ['temperature'],
  },
  'top_p (tunable model)': { sends: { top_p: 0.4 }, arrives: { top_p: 0.4 } },
  'top_p (untunable model)': { sends: { top_p: 0.4 }, behind: adaptive, absent: ['top_p'] },
  'n (1)': { sends: { n: 1 }, absent: ['n'] },
  'n (above 1)': { sends: { n: 2 } },
  'stop (text)': { sends: { stop: 'END' }, arrives: { stop_sequences: ['END'] } },
  'stop (list)': { sends: { stop: ['A', 'B'] }, arrives: { stop_sequences: ['A', 'B'] } },
  'stop (white space only)': { sends: { stop: '\n\n' }, absent: ['stop_sequences'] },
  'stop (an empty text)': { sends: { stop: '' }, refusedByAll: true },
  stream: { sends: { stream: true }, arrives: { stream: true } },
  'stream_options.include_usage': {
    sends: { stream: true, stream_options: { include_usage: true } },
    absent: ['stream_options'],
  },
  'stream_options.include_obfuscation': {
    sends: { stream: true, stream_options: { include_obfuscation: true } },
    absent: ['stream_options'],
  },
  'parallel_tool_calls (true)': {
    sends: { tools: [...tools], parallel_tool_calls: true },
    absent: ['tool_choice', 'parallel_tool_calls'],
  },
  'parallel_tool_calls (false)': {
    sends: { tools: [...tools], parallel_tool_calls: false },
    arrives: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
  },
  'tool_choice (auto)': {
    sends: { tools: [...tools], tool_choice: 'auto' },
    arrives: { tool_choice: { type: 'auto' } },
  },
  'tool_choice (none)': {
    sends: { tools: [...tools], tool_choice: 'none' },
    arrives: { tool_choice: { type: 'none' }, tools: [{ name: 'weather' }] },
  },
  'tool_choice (required)': {
    sends: { tools: [...tools], tool_choice: 'required' },
    arrives: { tool_choice: { type: 'any' } },
  },
  'tool_choice[function].function.name': {
    sends: {
      tools: [...tools],
      tool_choice: { type: 'function', function: { name: 'weather' } },
    },
    arrives: { tool_choice: { type: 'tool', name: 'weather' } },
  },
  'tool_choice[custom].custom.name': {
    sends: {
      tools: [{ type: 'custom', custom: { name: 'shell' } }],
      tool_choice: { type: 'custom', custom: { name: 'shell' } },
    },
    arrives: { tool_choice: { type: 'tool', name: 'shell' } },
  },
  'tool_choice[allowed_tools].allowed_tools.mode (auto)': {
    sends: {
      tools: [...twoTools],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: {
          mode: 'auto',
          tools: [{ type: 'function', function: { name: 'time' } }],
        },
      },
    },
    arrives: { tools: [{ name: 'time' }], tool_choice: { type: 'auto' } },
    also: ['tool_choice[allowed_tools].allowed_tools.tools', 'tool_choice[allowed_tools]'],
    noted: ['tool_choice'],
  },
  'tool_choice[allowed_tools].allowed_tools.mode (required)': {
    sends: {
      tools: [...twoTools],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: {
          mode: 'required',
          tools: [{ type: 'function', function: { name: 'time' } }],
        },
      },
    },
    arrives: { tools: [{ name: 'time' }], tool_choice: { type: 'any' } },
    noted: ['tool_choice'],
  },
  'functions.name': {
    relayedTo: legacyFunctions,
    sends: { functions: [{ name: 'weather', description: 'Tells.', parameters: objectSchema }] },
    arrives: { tools: [{ name: 'weather', description: 'Tells.', input_schema: objectSchema }] },
    also: ['functions.description', 'functions.parameters'],
  },
  'function_call (auto)': {
    relayedTo: legacyFunctions,
    sends: { functions: [{ name: 'weather' }], function_call: 'auto' },
    arrives: { tool_choice: { type: 'auto' } },
  },
  'function_call (none)': {
    relayedTo: legacyFunctions,
    sends: { functions: [{ name: 'weather' }], function_call: 'none' },
    arrives: { tool_choice: { type: 'none' } },
  },
  'function_call.name': {
    relayedTo: legacyFunctions,
    sends: { functions: [{ name: 'weather' }], function_call: { name: 'weather' } },
    arrives: { tool_choice: { type: 'tool', name: 'weather' } },
  },
  'reasoning_effort (none)': {
    sends: { reasoning_effort: 'none' },
    arrives: { thinking: { type: 'disabled' } },
  },
  'reasoning_effort (minimal)': {
    sends: { reasoning_effort: 'minimal' },
    arrives: { thinking: { type: 'adaptive' }, output_config: { effort: 'low' } },
  },
  'reasoning_effort (low)': {
    sends: { reasoning_effort: 'low', max_completion_tokens: 20_000 },
    behind: budget,
    arrives: { thinking: { type: 'enabled', budget_tokens: 2000 } },
  },
  'reasoning_effort (medium)': {
    sends: { reasoning_effort: 'medium' },
    arrives: { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } },
  },
  'reasoning_effort (high)': {
    sends: { reasoning_effort: 'high', max_completion_tokens: 20_000 },
    behind: budget,
    arrives: { thinking: { type: 'enabled', budget_tokens: 12_000 } },
  },
  'reasoning_effort (xhigh)': {
    sends: { reasoning_effort: 'xhigh' },
    arrives: { thinking: { type: 'adaptive' }, output_config: { effort: 'xhigh' } },
  },
  'reasoning_effort (max)': {
    sends: { reasoning_effort: 'max' },
    arrives: { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } },
  },
  'reasoning_effort (model that does not think)': {
    sends: { reasoning_effort: 'high' },
    behind: thoughtless,
    absent: ['thinking'],
  },
  'verbosity (medium)': { sends: { verbosity: 'medium' } },
  'verbosity (low, high)': { sends: { verbosity: 'low' } },
  'logprobs (false)': { sends: { logprobs: false } },
  'logprobs (true)': { sends: { logprobs: true } },
  'top_logprobs (0)': { sends: { top_logprobs: 0 } },
  'top_logprobs (above 0)': {
    sends: { logprobs: true, top_logprobs: 2 },
    named: 'logprobs',
  },
  'logit_bias (empty)': { sends: { logit_bias: {} } },
  'logit_bias (some bias)': { sends: { logit_bias: { '50256': -100 } } },
  'frequency_penalty (0)': { sends: { frequency_penalty: 0 } },
  'frequency_penalty (other values)': { sends: { frequency_penalty: 0.5 } },
  'presence_penalty (0)': { sends: { presence_penalty: 0 } },
  'presence_penalty (other values)': { sends: { presence_penalty: -0.5 } },
  seed: { sends: { seed: 42 } },
  prediction: { sends: { prediction: { type: 'content', content: 'As before.' } } },
  'modalities (text only)': { sends: { modalities: ['text'] } },
  'modalities (with audio)': {
    sends: { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
  },
  'audio (without the audio modality)': { sends: { audio: { voice: 'alloy', format: 'wav' } } },
  'audio (with it)': {
    sends: { modalities: ['audio'], audio: { voice: { id: 'v' }, format: 'mp3' } },
    named: 'modalities',
  },
  'user (up to 256 characters)': {
    sends: { user: 'user-1' },
    arrives: { metadata: { user_id: 'user-1' } },
  },
  'user (longer)': {
    sends: { user: long },
    arrives: {
      metadata: { user_id: '8b5089b44d9fefeafc563a34f6cb19fbdbe3814023622cb463bb4a74caba1c19' },
    },
  },
  'safety_identifier (up to 256 characters)': {
    sends: { safety_identifier: 'safe-1', user: 'user-1' },
    arrives: { metadata: { user_id: 'safe-1' } },
  },
  'safety_identifier (longer)': {
    sends: { safety_identifier: long },
    beyondSchema: true,
    arrives: {
      metadata: { user_id: '8b5089b44d9fefeafc563a34f6cb19fbdbe3814023622cb463bb4a74caba1c19' },
    },
  },
  metadata: { sends: { metadata: { team: 'a' } }, absent: ['metadata'] },
  'store (false)': { sends: { store: false } },
  'store (true)': { sends: { store: true } },
  prompt_cache_key: { sends: { prompt_cache_key: 'k' } },
  prompt_cache_options: { sends: { prompt_cache_options: { mode: 'explicit', ttl: '30m' } } },
  'prompt_cache_retention (24h)': {
    sends: {
      prompt_cache_retention: '24h',
      messages: [
        {
          role: 'user',
          content: [{ type: 'text', text: 'Hi', prompt_cache_breakpoint: { mode: 'explicit' } }],
        },
      ],
    },
    arrives: {
      messages: [
        {
          role: 'user',
          content: [{ text: 'Hi', cache_control: { type: 'ephemeral', ttl: '1h' } }],
        },
      ],
    },
  },
  'prompt_cache_retention (in_memory)': { sends: { prompt_cache_retention: 'in_memory' } },
  'service_tier (auto)': { sends: { service_tier: 'auto' } },
  'service_tier (default)': {
    sends: { service_tier: 'default' },
    arrives: { service_tier: 'standard_only' },
  },
  'service_tier (priority)': {
    sends: { service_tier: 'priority' },
    arrives: { service_tier: 'auto' },
  },
  'service_tier (fast)': { sends: { service_tier: 'fast' }, arrives: { service_tier: 'auto' } },
  'service_tier (fast, provider with a fast-mode beta)': {
    sends: { service_tier: 'fast' },
    behind: 'generous-messages/claude-opus-4-8',
    arrives: { speed: 'fast' },
    absent: ['service_tier'],
  },
  'service_tier (flex, scale)': { sends: { service_tier: 'flex' }, absent: ['service_tier'] },
  'web_search_options (others)': { sends: { web_search_options: {} } },
  'web_search_options (provider or route with server_tools)': {
    sends: {
      web_search_options: {
        search_context_size: 'medium',
        user_location: { type: 'approximate', approximate: { city: 'Oslo' } },
      },
    },
    behind: 'generous-messages/claude-opus-4-8',
    arrives: {
      tools: [{ name: 'web_search', user_location: { type: 'approximate', city: 'Oslo' } }],
    },
    also: ['web_search_options.user_location', 'web_search_options.search_context_size (medium)'],
  },
  'web_search_options.search_context_size (low, high)': {
    sends: { web_search_options: { search_context_size: 'low' } },
    behind: 'generous-messages/claude-opus-4-8',
    arrives: { tools: [{ name: 'web_search' }] },
  },
  'moderation (with the mode block)': {
    sends: { moderation: { model: 'm', policy: { input: { mode: 'block' } } } },
  },
  'moderation (without it)': {
    sends: { moderation: { model: 'm', policy: { output: { mode: 'score' } } } },
  },
};

const extended: Samples<Sent & { readonly [field: string]: unknown }> = {
  'top_k (tunable model)': { sends: { top_k: 20 }, arrives: { top_k: 20 } },
  'top_k (untunable model)': { sends: { top_k: 20 }, behind: adaptive, absent: ['top_k'] },
  'thinking[enabled].budget_tokens': {
    sends: {
      thinking: { type: 'enabled', budget_tokens: 3000 },
      reasoning_effort: 'low',
      max_completion_tokens: 9000,
    },
    behind: budget,
    arrives: { thinking: { type: 'enabled', budget_tokens: 3000 } },
  },
  'thinking[adaptive]': {
    sends: { thinking: { type: 'adaptive' } },
    arrives: { thinking: { type: 'adaptive' } },
  },
  'thinking[disabled]': {
    sends: { thinking: { type: 'disabled' } },
    arrives: { thinking: { type: 'disabled' } },
  },
  'reasoning.effort': {
    sends: { reasoning: { effort: 'high' } },
    arrives: { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
  },
  'reasoning.max_tokens': {
    sends: { reasoning: { max_tokens: 3000 }, max_completion_tokens: 9000 },
    behind: budget,
    arrives: { thinking: { type: 'enabled', budget_tokens: 3000 } },
  },
  'reasoning.enabled': {
    sends: { reasoning: { enabled: true } },
    arrives: { thinking: { type: 'adaptive' } },
  },
  'reasoning.exclude': {
    sends: { reasoning: { effort: 'low', exclude: true } },
    arrives: { thinking: { type: 'adaptive' } },
  },
  cache_control: {
    sends: { cache_control: { type: 'ephemeral', ttl: '1h' } },
    arrives: { cache_control: { type: 'ephemeral', ttl: '1h' } },
  },
  'any other field': {
    sends: { made_up: 1 },
    named: 'made_up',
    beyondSchema: true,
    absent: ['made_up'],
  },
};

export const chatRequestSamples: Samples<object> = { ...plain, ...extended };
