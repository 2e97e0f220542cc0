/** §1.1: every option of a chat request on messages upstreams: a member, a note or a refusal. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { fromChat, ownMembers, refusedPath, type Asked } from '../../support/translating.ts';

type Row = readonly [
  request: JsonObject,
  sent: JsonObject,
  notes?: readonly string[],
  asked?: Asked | string,
];

const haiku = 'anthropic/claude-haiku-4-5';
const opus = 'anthropic/claude-opus-4-8';
const fast = { target: opus, betas: ['fast-mode-2026-02-01'] };
const long = 'u'.repeat(257);
const hash = createHash('sha256').update(long).digest('hex');
const user = (user_id: string) => ({ metadata: { user_id } });
const lost = (field: string, value: JsonObject[string]): Row => [
  { [field]: value },
  {},
  [`lost ${field}`],
];
const ignored = (field: string, value: JsonObject[string]): Row => [{ [field]: value }, {}];

const rows: readonly Row[] = [
  ...[
    ['n', 1],
    ['logprobs', false],
    ['top_logprobs', 0],
    ['frequency_penalty', 0],
    ['presence_penalty', 0],
    ['logit_bias', {}],
    ['metadata', {}],
    ['store', false],
    ['verbosity', 'medium'],
    ['modalities', ['text']],
    ['response_format', { type: 'text' }],
    ['parallel_tool_calls', true],
    ['stop', null],
    ['moderation', null],
    ['service_tier', 'auto'],
    ['stream_options', { include_obfuscation: false }],
    ['audio', { voice: 'alloy', format: 'wav' }],
    ['prediction', { type: 'content', content: 'x' }],
    ['prompt_cache_key', 'k'],
    ['prompt_cache_options', { mode: 'implicit' }],
    ['prompt_cache_retention', 'in_memory'],
  ].map(([field, value]) => ignored(String(field), value)),
  ...[
    ['frequency_penalty', 0.5],
    ['presence_penalty', -1],
    ['logit_bias', { 5: 1 }],
    ['seed', 7],
    ['metadata', { a: 'b' }],
    ['store', true],
    ['verbosity', 'low'],
    ['moderation', { model: 'm', policy: { input: { mode: 'score' } } }],
    ['brand_new', 1],
  ].map(([field, value]) => lost(String(field), value)),
  [{ top_k: 5 }, { top_k: 5 }],
  [{ top_k: -1 }, {}],
  [{ stop: 'END' }, { stop_sequences: ['END'] }],
  [{ stop: ['a', 'b', 'c', 'd'] }, { stop_sequences: ['a', 'b', 'c', 'd'] }],
  [{ user: 'me' }, user('me')],
  [{ user: 'me', safety_identifier: 'id' }, user('id')],
  [{ user: long }, user(hash)],
  [{ service_tier: 'default' }, { service_tier: 'standard_only' }],
  [{ service_tier: 'priority' }, { service_tier: 'auto' }, ['changed service_tier']],
  [{ service_tier: 'flex' }, {}, ['lost service_tier']],
  [{ service_tier: 'scale' }, {}, ['lost service_tier']],
  [{ service_tier: 'fast' }, { service_tier: 'auto' }, ['lost service_tier'], opus],
  [{ service_tier: 'fast' }, { speed: 'fast' }, [], fast],
  [
    { service_tier: 'fast' },
    { service_tier: 'auto' },
    ['lost service_tier'],
    { ...fast, target: haiku },
  ],
  // Three spellings of thinking; the messages one wins.
  [
    { thinking: { type: 'enabled', budget_tokens: 2000 }, reasoning_effort: 'low' },
    { thinking: { type: 'enabled', budget_tokens: 2000, display: 'summarized' } },
  ],
  [
    { reasoning: { max_tokens: 3000, exclude: true } },
    { thinking: { type: 'enabled', budget_tokens: 3000, display: 'omitted' } },
  ],
  [{ reasoning: { enabled: false } }, {}],
  [{ reasoning: { effort: 'none', summary: 'auto' } }, {}, ['lost reasoning.summary']],
  [{ thinking: { type: 'disabled', brand_new: 1 } }, {}, ['lost thinking.brand_new']],
];

describe('§1.1 options of a chat request', () => {
  for (const [request, sent, notes = [], asked = haiku] of rows) {
    const target = typeof asked === 'string' ? '' : ` ${asked.target} ${String(asked.betas)}`;
    test(`${JSON.stringify(request).slice(0, 90)}${target}`, () => {
      const translated = fromChat(asked, request);
      assert.deepEqual(ownMembers(translated), sent);
      assert.deepEqual(translated.notes, notes);
    });
  }

  const refusals: readonly (readonly [JsonObject, string])[] = [
    [{ max_completion_tokens: 0 }, 'max_completion_tokens'],
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ n: 2 }, 'n'],
    [{ logprobs: true }, 'logprobs'],
    [{ modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }, 'modalities'],
    [{ moderation: { model: 'm', policy: { output: { mode: 'block' } } } }, 'moderation'],
    [{ stop: '' }, 'stop'],
    [{ reasoning_effort: 'huge' }, 'reasoning_effort'],
  ];
  for (const [request, path] of refusals) {
    test(`REJECT ${JSON.stringify(request)}`, () => {
      assert.equal(
        refusedPath(() => fromChat(haiku, request)),
        path,
      );
    });
  }

  test('both caps count reasoning: the newer spelling is the same number', () => {
    assert.equal(fromChat(haiku, { max_completion_tokens: 77 }).body['max_tokens'], 77);
    assert.equal(fromChat(haiku, { max_tokens: 77 }).body['max_tokens'], 77);
  });

  test('a cap too small to think in', () => {
    const { body, notes } = fromChat(haiku, { reasoning_effort: 'high', max_tokens: 1024 });
    assert.equal(body['thinking'], undefined);
    assert.deepEqual(notes, ['lost reasoning_effort']);
  });
});
