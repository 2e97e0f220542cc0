/** Responses requests, one for each top-level field and case. */
import type { ResponseCreateParamsBase } from 'openai/resources/responses/responses';
import { objectSchema, type Sample, type Samples } from './sample.ts';

type Sent = Partial<ResponseCreateParamsBase>;

const openai = 'openai/gpt-4.1';
const thinking = 'openai/gpt-5.2';
const long = 'u'.repeat(100);
const hash = 'aae37f9f7de396414419d9ed8d2321d450519b2d16797aab63c6ea51229c05a2';
const weather = {
  type: 'function',
  name: 'weather',
  parameters: objectSchema,
  strict: false,
} as const;

/** An answer's format by a schema. */
function schema(more: object): Sent {
  return {
    text: { format: { type: 'json_schema', name: 'place', schema: objectSchema, ...more } },
  };
}

/** A member that reaches OpenAI's own chat address, and no other one. */
function openaiOnly(key: keyof Sent & string, value: string | object): Samples<Sent> {
  const sends: Sent = { [key]: value };
  return {
    [`${key} (OpenAI)`]: {
      sends,
      behind: openai,
      arrives: { [key]: JSON.parse(JSON.stringify(value)) },
    },
    [`${key} (other upstreams)`]: { sends, absent: [key] },
  };
}

const plain: Samples<Sent> = {
  model: { sends: {}, arrives: { messages: [{ role: 'user' }] } },
  'input (a text)': {
    sends: { input: 'Hi there.' },
    arrives: { messages: [{ role: 'user', content: 'Hi there.' }] },
    on: {
      messages: { arrives: { messages: [{ role: 'user', content: [{ text: 'Hi there.' }] }] } },
    },
  },
  instructions: {
    sends: { instructions: 'Be brief.' },
    arrives: { messages: [{ role: 'system', content: 'Be brief.' }, { role: 'user' }] },
    on: { messages: { arrives: { system: [{ type: 'text', text: 'Be brief.' }] } } },
  },
  max_output_tokens: {
    sends: { max_output_tokens: 77 },
    arrives: { max_tokens: 77 },
    on: { messages: { arrives: { max_tokens: 77 } } },
  },
  'temperature (tunable model)': { sends: { temperature: 0.3 }, arrives: { temperature: 0.3 } },
  'temperature (untunable model)': {
    sends: { temperature: 0.3 },
    behind: thinking,
    absent: ['temperature'],
    on: { messages: { behind: 'anthropic/claude-opus-4-8', absent: ['temperature'] } },
  },
  'top_p (tunable model)': { sends: { top_p: 0.4 }, arrives: { top_p: 0.4 } },
  'top_p (untunable model)': {
    sends: { top_p: 0.4 },
    behind: thinking,
    absent: ['top_p'],
    on: { messages: { behind: 'anthropic/claude-opus-4-8', absent: ['top_p'] } },
  },
  'top_logprobs (0)': { sends: { top_logprobs: 0 }, absent: ['top_logprobs', 'logprobs'] },
  'top_logprobs (above 0)': { sends: { top_logprobs: 2 } },
  stream: { sends: { stream: true }, arrives: { stream: true } },
  'stream_options.include_obfuscation': {
    sends: { stream: true, stream_options: { include_obfuscation: true } },
    arrives: { stream: true, stream_options: { include_usage: true } },
    on: { messages: { absent: ['stream_options'] } },
  },
  'parallel_tool_calls (true)': {
    sends: { tools: [weather], parallel_tool_calls: true },
    absent: ['parallel_tool_calls'],
  },
  'parallel_tool_calls (false)': {
    sends: { tools: [weather], parallel_tool_calls: false },
    arrives: { parallel_tool_calls: false },
    on: {
      messages: { arrives: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } } },
    },
  },
  'max_tool_calls (no hosted tool)': {
    sends: { tools: [weather], max_tool_calls: 3 },
    absent: ['max_tool_calls'],
  },
  'max_tool_calls (with a hosted tool)': {
    sends: { tools: [weather, { type: 'web_search' }], max_tool_calls: 3 },
    noted: ['tools[web_search]'],
    on: { messages: { noted: ['tools[web_search]'] } },
  },
  'reasoning.effort': {
    sends: { reasoning: { effort: 'high' } },
    arrives: { reasoning_effort: 'high' },
    on: { messages: { arrives: { output_config: { effort: 'high' } } } },
  },
  'reasoning.summary': {
    sends: { reasoning: { effort: 'low', summary: 'auto' } },
    arrives: { reasoning_effort: 'low' },
    on: { messages: { arrives: { thinking: { type: 'adaptive' } } } },
  },
  'reasoning.generate_summary': {
    sends: { reasoning: { effort: 'low', generate_summary: 'auto' } },
    arrives: { reasoning_effort: 'low' },
  },
  'reasoning.context': {
    sends: { reasoning: { effort: 'low', context: 'all_turns', mode: 'standard' } },
    arrives: { reasoning_effort: 'low' },
    also: ['reasoning.mode (standard)'],
  },
  'reasoning.mode (pro)': { sends: { reasoning: { effort: 'low', mode: 'pro' } } },
  'text.format[text]': {
    sends: { text: { format: { type: 'text' }, verbosity: 'medium' } },
    absent: ['response_format', 'verbosity', 'output_config'],
    also: ['text.verbosity (medium)'],
  },
  'text.format[json_object]': {
    sends: { text: { format: { type: 'json_object' } } },
    arrives: { response_format: { type: 'json_object' }, messages: [{ role: 'user' }] },
    on: { messages: { absent: ['output_config'] } },
  },
  'text.format[json_schema].schema (keywords that the model enforces)': {
    sends: schema({ description: 'A place.', strict: true }),
    arrives: {
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'place',
          description: 'A place.',
          schema: objectSchema,
          strict: true,
        },
      },
    },
    on: { messages: { arrives: { output_config: { format: { schema: objectSchema } } } } },
    also: [
      'text.format[json_schema].name',
      'text.format[json_schema].description',
      'text.format[json_schema].strict',
    ],
  },
  'text.format[json_schema].schema (model that enforces none)': {
    sends: schema({}),
    behind: 'deepseek/deepseek-chat',
    arrives: { response_format: { type: 'json_object' } },
    named: 'text.format',
    on: {
      messages: {
        behind: 'anthropic/claude-3-5-haiku-20241022',
        arrives: { tools: [{ input_schema: objectSchema }], tool_choice: { type: 'tool' } },
      },
    },
  },
  'text.verbosity (low, high; OpenAI)': {
    sends: { text: { verbosity: 'low' } },
    behind: thinking,
    arrives: { verbosity: 'low' },
  },
  'text.verbosity (low, high; other upstreams)': {
    sends: { text: { verbosity: 'high' } },
    absent: ['verbosity'],
  },
  store: { sends: { store: true }, absent: ['store'] },
  conversation: { sends: { conversation: 'conv_1' }, refusedByAll: true },
  'background (false)': { sends: { background: false }, absent: ['background'] },
  'background (true)': { sends: { background: true }, refusedByAll: true },
  prompt: { sends: { prompt: { id: 'pmpt_1' } } },
  'include (reasoning.encrypted_content)': {
    sends: { include: ['reasoning.encrypted_content'] },
    absent: ['include'],
  },
  'include (message.output_text.logprobs)': {
    sends: { include: ['message.output_text.logprobs'] },
  },
  'include (of hosted tools)': {
    sends: { include: ['web_search_call.action.sources', 'file_search_call.results'] },
    absent: ['include'],
  },
  'truncation (disabled)': { sends: { truncation: 'disabled' }, absent: ['truncation'] },
  'truncation (auto)': { sends: { truncation: 'auto' }, absent: ['truncation'] },
  context_management: {
    sends: { context_management: [{ type: 'compaction', compact_threshold: 5000 }] },
    absent: ['context_management'],
  },
  metadata: { sends: { metadata: { team: 'a' } }, absent: ['metadata'] },
  ...endUser('safety_identifier'),
  ...endUser('user'),
  ...openaiOnly('prompt_cache_key', 'k'),
  ...openaiOnly('prompt_cache_options', { mode: 'explicit', ttl: '30m' }),
  ...openaiOnly('prompt_cache_retention', '24h'),
  'service_tier (auto)': { sends: { service_tier: 'auto' }, absent: ['service_tier'] },
  'service_tier (default; other upstreams)': {
    sends: { service_tier: 'default' },
    absent: ['service_tier'],
    on: { messages: { arrives: { service_tier: 'standard_only' } } },
  },
  'service_tier (others, OpenAI)': {
    sends: { service_tier: 'priority' },
    behind: openai,
    arrives: { service_tier: 'priority' },
    on: { messages: { arrives: { service_tier: 'auto' } } },
  },
  'service_tier (ultrafast, OpenAI)': {
    sends: { service_tier: 'ultrafast' },
    behind: openai,
    arrives: { service_tier: 'fast' },
    on: { messages: { behind: 'generous-messages/claude-opus-4-8', arrives: { speed: 'fast' } } },
  },
  'service_tier (others, other upstreams)': {
    sends: { service_tier: 'flex' },
    absent: ['service_tier'],
  },
  'moderation (with the mode block)': {
    sends: { moderation: { model: 'm', policy: { input: { mode: 'block' } } } },
  },
  'moderation (without it)': {
    sends: { moderation: { model: 'm', policy: { output: { mode: 'score' } } } },
  },
  access_programs: { sends: { access_programs: { cyber: 'standard' } }, beyondSchema: true },
  image: { sends: { image: { context_compression: 'auto' } }, beyondSchema: true },
};

function endUser(key: 'safety_identifier' | 'user'): Samples<Sent> {
  return {
    [`${key} (up to 64 characters)`]: {
      sends: { [key]: 'user-1' },
      behind: openai,
      arrives: { safety_identifier: 'user-1' },
      on: { messages: { arrives: { metadata: { user_id: 'user-1' } } } },
    },
    [`${key} (longer)`]: {
      sends: { [key]: long },
      behind: openai,
      beyondSchema: true,
      arrives: { safety_identifier: hash },
      on: { messages: { arrives: { metadata: { user_id: long } } } },
    },
  };
}

const extended: { readonly [row: string]: Sample<object> } = {
  client_metadata: {
    sends: { client_metadata: { 'x-codex-installation-id': 'i' } },
    beyondSchema: true,
    absent: ['client_metadata'],
  },
  generate: { sends: { generate: false }, beyondSchema: true },
  'any other field': {
    sends: { made_up: 1 },
    named: 'made_up',
    beyondSchema: true,
    absent: ['made_up'],
  },
};

export const responsesRequestSamples: Samples<object> = { ...plain, ...extended };
