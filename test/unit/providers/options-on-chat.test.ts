/** §2.1, §3.4: every option of a messages request on chat upstreams: a member, a note or a refusal. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { fromMessages, ownMembers, refusedPath, type Asked } from '../../support/translating.ts';

type Row = readonly [
  asked: Asked | string,
  request: JsonObject,
  sent: JsonObject,
  notes?: readonly string[],
];

const any = 'x/any';
const openai = 'openai/gpt-4o';
const long = 'u'.repeat(65);
const hash = createHash('sha256').update(long).digest('hex');
const user = (user_id: string) => ({ metadata: { user_id } });
const stops = (count: number) => ({
  stop_sequences: Array.from({ length: count }, (_, i) => `stop ${i}`),
});
const mark = { type: 'ephemeral' };

const rows: readonly Row[] = [
  // Sampling.
  [any, { temperature: 0.3, top_p: 0.5 }, { temperature: 0.3, top_p: 0.5 }],
  ['openai/gpt-5', { temperature: 0.3, top_p: 0.5 }, {}, ['lost temperature', 'lost top_p']],
  ['openai/gpt-5', { temperature: 1, top_p: 1 }, {}],
  ['moonshot/kimi-k2.6', { temperature: 0.3 }, {}, ['lost temperature']],
  ['moonshot/moonshot-v1-8k', { temperature: 0.3 }, { temperature: 0.3 }],
  ['openai/gpt-4o-search-preview', { temperature: 0.3 }, {}, ['lost temperature']],
  ...['openrouter/m', 'together/m', 'vllm/m', 'llama-cpp/m', 'fireworks/m', 'qwen/qwen-max'].map(
    (target): Row => [target, { top_k: 5 }, { top_k: 5 }],
  ),
  ...[any, openai, 'groq/m', 'xai/grok-4', 'mistral/m', 'deepseek/m', 'ollama/m'].map(
    (target): Row => [target, { top_k: 5 }, {}, ['lost top_k']],
  ),
  // Stop sequences.
  [any, stops(4), { stop: stops(4).stop_sequences }],
  ['vllm/m', stops(9), { stop: stops(9).stop_sequences }],
  ['deepseek/m', stops(16), { stop: stops(16).stop_sequences }],
  // More than the model takes, or any where it takes none: the gateway looks for them itself.
  ['openai/o1', stops(1), { stop: stops(1).stop_sequences }],
  ...['openai/o3', 'openai/gpt-5', 'openai/gpt-6-luna', 'xai/grok-4', 'xai/grok-4.3'].map(
    (target): Row => [target, stops(1), {}],
  ),
  ['xai/grok-3', stops(1), { stop: stops(1).stop_sequences }],
  ['zai/glm-5', stops(1), { stop: stops(1).stop_sequences }],
  ['zai/glm-5', stops(2), {}],
  [openai, stops(5), {}],
  // Who asks.
  [openai, user('me'), { safety_identifier: 'me' }],
  [openai, user(long), { safety_identifier: hash }],
  [any, user('me'), { user: 'me' }],
  [any, user(long), { user: hash }],
  ['mistral/m', user('me'), {}, ['lost metadata.user_id']],
  [any, { metadata: { user_id: null, team: 'x' } }, {}, ['lost metadata.team']],
  // Tiers and speed.
  [openai, { service_tier: 'auto' }, {}],
  [openai, { service_tier: 'standard_only' }, { service_tier: 'default' }],
  [any, { service_tier: 'standard_only' }, {}],
  [openai, { speed: 'fast' }, { service_tier: 'fast' }],
  [openai, { speed: 'fast', service_tier: 'auto' }, { service_tier: 'fast' }],
  [openai, { speed: 'standard' }, {}],
  [any, { speed: 'fast' }, {}, ['lost speed']],
  // What the upstream has no field for.
  [
    any,
    { output_config: { task_budget: { type: 'tokens', total: 9 } } },
    {},
    ['lost output_config.task_budget'],
  ],
  [
    any,
    { context_management: { edits: [{ type: 'clear_thinking_20251015' }] } },
    {},
    ['lost context_management'],
  ],
  [any, { context_management: { edits: [] } }, {}],
  [any, { diagnostics: { previous_message_id: 'm' } }, {}, ['lost diagnostics']],
  [any, { fallbacks: 'default' }, {}, ['lost fallbacks']],
  [any, { fallback_credit_token: 't' }, {}, ['lost fallback_credit_token']],
  [any, { container: null, mcp_servers: [], fallbacks: [], inference_geo: null }, {}],
  [any, { inference_geo: 'global' }, {}],
  [{ target: any, region: 'us' }, { inference_geo: 'us' }, {}],
  [any, { cache_control: mark }, {}],
  ['openrouter/anthropic/claude-opus-5', { cache_control: mark }, { cache_control: mark }],
  // A4: what a later client sends, at the top and inside.
  [any, { brand_new: 1 }, {}, ['lost brand_new']],
  [
    any,
    { thinking: { type: 'disabled', brand_new: 1 } },
    { reasoning_effort: 'low' },
    ['lost thinking.brand_new', 'changed thinking'],
  ],
  [
    any,
    { thinking: { type: 'between_tools' } },
    { reasoning_effort: 'low' },
    ['changed thinking.type', 'changed thinking'],
  ],
  [
    any,
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', brand_new: 1 }] }] },
    {},
    ['lost messages.0.content.0.brand_new'],
  ],
];

describe('§2.1 options of a messages request', () => {
  for (const [asked, request, sent, notes = []] of rows) {
    const target = typeof asked === 'string' ? asked : asked.target;
    test(`${target} ${JSON.stringify(request).slice(0, 90)}`, () => {
      const translated = fromMessages(asked, request);
      assert.deepEqual(ownMembers(translated), sent);
      assert.deepEqual(translated.notes, notes);
    });
  }

  const refusals: readonly (readonly [Asked | string, JsonObject, string])[] = [
    [any, { container: 'c_1' }, 'container'],
    [any, { container: { skills: [{ skill_id: 'x' }] } }, 'container'],
    [any, { mcp_servers: [{ type: 'url', name: 'x', url: 'https://x.test' }] }, 'mcp_servers'],
    [any, { fallbacks: [{ model: 'm' }] }, 'fallbacks'],
    [any, { inference_geo: 'us' }, 'inference_geo'],
    [{ target: any, region: 'eu' }, { inference_geo: 'us' }, 'inference_geo'],
  ];
  for (const [asked, request, path] of refusals) {
    test(`REJECT ${JSON.stringify(request)}`, () => {
      assert.equal(
        refusedPath(() => fromMessages(asked, request)),
        path,
      );
    });
  }

  for (const [target, field] of [
    ['openai/gpt-4o', 'max_completion_tokens'],
    ['xai/grok-4', 'max_completion_tokens'],
    ['groq/m', 'max_completion_tokens'],
    ['cerebras/m', 'max_completion_tokens'],
    ['deepseek/m', 'max_tokens'],
    ['vllm/m', 'max_tokens'],
    ['ollama/m', 'max_tokens'],
    ['x/any', 'max_tokens'],
  ] as const) {
    test(`B9 the cap goes to ${target} as ${field}`, () => {
      const { body } = fromMessages(target, { max_tokens: 77 });
      const other = field === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
      assert.deepEqual([body[field], body[other]], [77, undefined]);
    });
  }

  const schema = {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'string' } },
    required: ['a', 'b'],
    additionalProperties: false,
  };
  const output = (value: JsonObject) => ({
    output_config: { format: { type: 'json_schema', schema: value } },
  });
  test('§1.7 a schema is strict where OpenAI can be, else not, with a note', () => {
    const strict = fromMessages(openai, output(schema));
    const format = { name: 'output', schema, strict: true };
    assert.deepEqual(ownMembers(strict), {
      response_format: { type: 'json_schema', json_schema: format },
    });
    assert.deepEqual(strict.notes, []);
    const optional = { ...schema, required: ['a'] };
    const loose = fromMessages(openai, output(optional));
    assert.deepEqual(ownMembers(loose), {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'output', schema: optional, strict: false },
      },
    });
    assert.deepEqual(loose.notes, ['changed output_config.format']);
  });
});

describe('§3.4 an answer begun by the client, on chat upstreams', () => {
  const messages = [
    { role: 'user', content: 'Count.' },
    { role: 'assistant', content: 'One,' },
  ];
  const vllm = { continue_final_message: true, add_generation_prompt: false };
  const noThinking = { chat_template_kwargs: { enable_thinking: false } };
  const last = { role: 'assistant', content: 'One,' };
  const unable = ['changed messages.1'];
  const beta = { target: 'deepseek/m', baseUrl: 'https://api.deepseek.com/beta' };
  const cases: readonly (readonly [Asked | string, JsonObject, JsonObject, readonly string[]])[] = [
    ['openai/gpt-4o', {}, last, unable],
    ['x/any', {}, last, unable],
    ['deepseek/m', {}, last, unable],
    [beta, {}, { ...last, prefix: true }, []],
    ['mistral/m', {}, { ...last, prefix: true }, []],
    ['vllm/m', { ...vllm, ...noThinking }, last, []],
    ['llama-cpp/m', noThinking, last, []],
  ];
  for (const [asked, sent, message, notes] of cases) {
    test(typeof asked === 'string' ? asked : `${asked.target} at ${asked.baseUrl}`, () => {
      const translated = fromMessages(asked, { messages });
      assert.deepEqual(ownMembers(translated), sent);
      const list = translated.body['messages'];
      const written: unknown = Array.isArray(list) ? list.at(-1) : undefined;
      if (asked === beta || asked === 'deepseek/m') {
        assert.partialDeepStrictEqual(written, message);
      } else assert.deepEqual(written, message);
      assert.deepEqual(translated.notes, notes);
    });
  }

  test('calls are not continued: they wait for their results', () => {
    const call = { type: 'tool_use', id: 'a', name: 'f', input: {} };
    const result = { type: 'tool_result', tool_use_id: 'a', content: 'x' };
    const { body } = fromMessages('vllm/m', {
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      messages: [
        { role: 'user', content: 'Go.' },
        { role: 'assistant', content: [call] },
        { role: 'user', content: [result] },
      ],
    });
    assert.equal(body['continue_final_message'], undefined);
  });
});
