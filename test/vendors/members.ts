/** Top-level members of requests, each with the values that clients send. */
import type { JsonObject } from '../../src/json/value.ts';
import type { Shape } from './shapes.ts';

const user = { role: 'user', content: 'What time is it? Answer in JSON.' } as const;
const schema = {
  type: 'object',
  properties: { zone: { type: 'string' } },
  required: ['zone'],
  additionalProperties: false,
} as const;
const odd = {
  type: 'object',
  $defs: { zone: { const: 'UTC' } },
  properties: { zone: { $ref: '#/$defs/zone' }, more: { type: 'object' } },
} as const;

function tool(name: string, parameters: JsonObject, more: JsonObject = {}): JsonObject {
  return { type: 'function', function: { name, description: 'Tells it.', parameters, ...more } };
}

const tools = [tool('get_time', schema), tool('get_date', schema)];
const named = { type: 'function', function: { name: 'get_time' } } as const;
const format = (json_schema: JsonObject): JsonObject => ({
  response_format: { type: 'json_schema', json_schema },
});

/** Names of several members are one request; the same member with several values is several. */
const members: readonly JsonObject[] = [
  { max_tokens: 500 },
  { max_completion_tokens: 500 },
  { max_tokens: 500, max_completion_tokens: 500 },
  { temperature: 0.2 },
  { temperature: 1, top_p: 1 },
  { temperature: 0.2, top_p: 0.9 },
  { top_k: 5 },
  { presence_penalty: 0.5 },
  { frequency_penalty: 0, presence_penalty: 0 },
  { seed: 7 },
  { random_seed: 7 },
  { user: 'u1' },
  { safety_identifier: 'u1' },
  { user: 'u1', safety_identifier: 'u1' },
  { n: 1 },
  { logprobs: true, top_logprobs: 2 },
  { logprobs: false },
  { logit_bias: { 50256: -100 } },
  { stop: 'END' },
  { stop: ['a', 'b', 'c', 'd', 'e'] },
  { stop: null, user: null, seed: null, logprobs: null, store: null, n: null },
  { max_tokens: 500, max_completion_tokens: null },
  { top_k: null, random_seed: null, safety_identifier: null },
  { reasoning: null, thinking: null, enable_thinking: null, thinking_budget: null },
  { chat_template_kwargs: null },
  { chat_template_kwargs: {} },
  { chat_template_kwargs: { custom: 1 } },
  { functions: null, function_call: null },
  { tools, functions: null, function_call: 'auto' },
  { tools, functions: [], function_call: null },
  { tools },
  { tools, tool_choice: 'auto' },
  { tools, tool_choice: 'required' },
  { tools, tool_choice: 'any' },
  { tools, tool_choice: 'none' },
  { tools, tool_choice: named },
  {
    tools,
    tool_choice: {
      type: 'allowed_tools',
      allowed_tools: { mode: 'required', tools: [named] },
    },
  },
  { tools, parallel_tool_calls: false },
  { tools, parallel_tool_calls: true },
  { tools: [], tool_choice: 'auto' },
  { tools: [tool('get_time', schema, { strict: true })] },
  { tools: [tool('get_time', odd), tool('get_date', schema)] },
  { functions: [{ name: 'get_time', parameters: schema }], function_call: 'auto' },
  { functions: [{ name: 'get_time', parameters: odd }], function_call: { name: 'get_time' } },
  { response_format: { type: 'json_object' } },
  { response_format: { type: 'text' } },
  format({ name: 'answer', schema, strict: true }),
  format({ name: 'answer', schema: odd }),
  ...['none', 'minimal', 'low', 'high', 'xhigh'].map((word) => ({ reasoning_effort: word })),
  { reasoning: { effort: 'high' } },
  { reasoning: { max_tokens: 4000 } },
  { thinking: { type: 'enabled', budget_tokens: 2000 } },
  { thinking: { type: 'disabled' } },
  { thinking: { type: 'adaptive' } },
  { enable_thinking: true, thinking_budget: 4000 },
  { chat_template_kwargs: { enable_thinking: false } },
  { reasoning_effort: 'high', tools },
  { verbosity: 'low' },
  { verbosity: 'medium' },
  { service_tier: 'auto' },
  { store: false },
  { store: true, metadata: { team: 'a' } },
  { prediction: { type: 'content', content: 'noon' } },
  { modalities: ['text'] },
  { prompt_cache_key: 'k', prompt_cache_retention: '24h' },
  { models: ['a/b'], provider: { sort: 'price' }, transforms: [] },
  { min_p: 0.1, repetition_penalty: 1.1 },
  { safe_prompt: true },
  { search_parameters: { mode: 'off' } },
  { extra_body: { a: 1 } },
  { stream: true, stop: ['a', 'b', 'c', 'd', 'e'], stream_options: { include_usage: true } },
];

/** Requests that some vendors cannot answer as asked: they are refused there before they are sent. */
const promises: readonly JsonObject[] = [
  { n: 2 },
  { web_search_options: {} },
  { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
  { tools: [{ type: 'custom', custom: { name: 'run' } }] },
];

function shape(body: JsonObject): Shape {
  const name = JSON.stringify(body).slice(1, 90);
  return { name, dialect: 'chat', body: { messages: [user], ...body } };
}

export const memberShapes = members.map(shape);
export const promiseShapes = promises.map(shape);
