/** §4.2: what a messages client says of thinking, as each vendor's models are told. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { fromMessages, ownMembers } from '../../support/translating.ts';

const off = { thinking: { type: 'disabled' } };
const adaptive = { thinking: { type: 'adaptive' } };
const budget = (tokens: number) => ({ thinking: { type: 'enabled', budget_tokens: tokens } });
const effort = (word: string) => ({ output_config: { effort: word } });
const max = { ...adaptive, ...effort('max') };
const word = (reasoning_effort: string) => ({ reasoning_effort });
const template = (enable_thinking: boolean) => ({ chat_template_kwargs: { enable_thinking } });

type Row = readonly [
  target: string,
  asked: JsonObject,
  sent: JsonObject,
  notes?: readonly string[],
];
const toEffort = ['changed output_config.effort'];
const toOff = ['changed thinking'];

const rows: readonly Row[] = [
  // An unknown server: the words that all know.
  ['x/any', max, word('high'), toEffort],
  ['x/any', adaptive, word('high')],
  ['x/any', off, word('low'), toOff],
  ['x/any', budget(10_000), word('high')],
  ['x/any', budget(5000), word('medium')],
  ['x/any', budget(2000), word('low')],
  ['x/any', budget(1999), word('low'), ['changed thinking.budget_tokens']],
  ['x/any', {}, {}],
  // OpenAI, by generation; models that do not reason get nothing.
  ['openai/gpt-4o', max, {}, ['lost output_config.effort']],
  ['openai/gpt-4.1', off, {}],
  ['openai/ft:gpt-4o-mini:me', adaptive, {}, ['lost thinking']],
  ['openai/gpt-5-chat-latest', adaptive, {}, ['lost thinking']],
  ['openai/gpt-4o-search-preview', adaptive, {}, ['lost thinking']],
  ['openai/o3', max, word('high'), toEffort],
  ['openai/o4-mini', off, word('low'), toOff],
  ['openai/gpt-5-mini', off, word('minimal'), toOff],
  ['openai/gpt-5', max, word('high'), toEffort],
  ['openai/gpt-5-pro', effort('low'), word('high'), toEffort],
  ['openai/gpt-5.1', off, word('none')],
  ['openai/gpt-5.1', budget(1024), word('low'), ['changed thinking.budget_tokens']],
  ['openai/gpt-5.2', max, word('xhigh'), toEffort],
  ['openai/gpt-5.2-pro', effort('low'), word('medium'), toEffort],
  ['openai/gpt-5.3-chat-latest', off, word('medium'), toOff],
  ['openai/gpt-5.1-codex-max', effort('xhigh'), word('xhigh')],
  ['openai/gpt-5.1-codex', effort('xhigh'), word('high'), toEffort],
  ['openai/gpt-5.6-sol', max, word('max')],
  ['openai/gpt-6.1-terra', max, word('max')],
  // xAI: most models choose for themselves.
  ['xai/grok-3-mini', effort('medium'), word('low'), toEffort],
  ['xai/grok-4', adaptive, {}, ['lost thinking']],
  ['xai/grok-4-1-fast-reasoning', adaptive, {}, ['lost thinking']],
  ['xai/grok-4.3', off, word('none')],
  ['xai/grok-4.5', off, word('low'), toOff],
  ['xai/grok-4.20-reasoning', adaptive, {}, ['lost thinking']],
  // Groq and Cerebras, by the maker of the model.
  ['groq/openai/gpt-oss-120b', max, word('high'), toEffort],
  ['groq/qwen/qwen3-32b', off, { ...word('none'), reasoning_format: 'parsed' }],
  ['groq/qwen/qwen3-32b', adaptive, { reasoning_format: 'parsed' }, ['lost thinking']],
  ['groq/llama-3.3-70b-versatile', adaptive, {}, ['lost thinking']],
  ['cerebras/gpt-oss-120b', off, word('low'), toOff],
  ['cerebras/zai-glm-4.7', off, word('none')],
  ['cerebras/llama3.1-8b', adaptive, {}, ['lost thinking']],
  ['together/openai/gpt-oss-20b', adaptive, word('high')],
  ['together/meta-llama/Llama-3.3-70B', adaptive, {}, ['lost thinking']],
  ['fireworks/any', off, word('none')],
  // Mistral: on or off, for those that can.
  ['mistral/mistral-small-latest', effort('low'), word('high'), toEffort],
  ['mistral/mistral-medium-3-5', off, word('none')],
  ['mistral/magistral-medium-latest', adaptive, {}, ['lost thinking']],
  // Gemini: a budget is exact where there is one.
  ['gemini-compatible/gemini-2.5-flash', off, word('none')],
  ['gemini-compatible/gemini-2.5-pro', off, word('low'), toOff],
  [
    'gemini-compatible/gemini-2.5-pro',
    budget(3000),
    { extra_body: { google: { thinking_config: { thinking_budget: 3000 } } } },
  ],
  ['gemini-compatible/gemini-3-flash-preview', budget(3000), word('low')],
  ['gemini-compatible/gemini-2.0-flash', adaptive, {}, ['lost thinking']],
  // A switch called `thinking`.
  ['deepseek/deepseek-flash', off, { thinking: { type: 'disabled' } }],
  ['deepseek/deepseek-flash', max, { thinking: { type: 'enabled' }, ...word('max') }],
  ['zai/glm-5', off, { thinking: { type: 'disabled' } }],
  ['zai/glm-5', adaptive, { thinking: { type: 'enabled' } }],
  ['zai/glm-5', effort('low'), { thinking: { type: 'enabled' } }, toEffort],
  ['moonshot/kimi-k2.6', off, { thinking: { type: 'disabled' } }],
  ['moonshot/kimi-k3', effort('medium'), word('low'), toEffort],
  ['moonshot/kimi-k2.7-code', adaptive, {}, ['lost thinking']],
  ['moonshot/moonshot-v1-8k', off, {}],
  // Qwen: a switch and an exact budget.
  ['qwen/qwen3.8-max', off, { enable_thinking: false }],
  ['qwen/qwen-plus', adaptive, { enable_thinking: true }],
  ['qwen/qwen-plus', budget(777), { enable_thinking: true, thinking_budget: 777 }],
  ['qwen/qwen-plus', effort('low'), { enable_thinking: true }, toEffort],
  ['qwen/qwen2.5-72b-instruct', adaptive, {}, ['lost thinking']],
  // OpenRouter: words for all models, and an exact budget.
  ['openrouter/openai/o1', max, { reasoning: { effort: 'max' } }],
  ['openrouter/anthropic/claude-opus-5', budget(777), { reasoning: { max_tokens: 777 } }],
  ['openrouter/any', off, { reasoning: { effort: 'none' } }],
  // Engines: the switch of the chat template.
  ['vllm/qwen3', off, template(false)],
  ['vllm/qwen3', max, { ...template(true), ...word('high') }, toEffort],
  ['llama-cpp/any', off, template(false)],
  ['lm-studio/any', adaptive, word('high')],
  ['ollama/qwen3', off, word('none')],
  ['ollama/qwen3', budget(6000), word('medium')],
];

describe('B14 §4.2 thinking and effort on chat models', () => {
  for (const [target, asked, sent, notes = []] of rows) {
    test(`${target} ${JSON.stringify(asked)}`, () => {
      const translated = fromMessages(target, asked);
      assert.deepEqual(ownMembers(translated), sent);
      assert.deepEqual(translated.notes, notes);
    });
  }

  test('A1 B14 a note names the instruction that set the effort', () => {
    const user = { role: 'user', content: 'Hi' };
    const messages = [user, { role: 'system', ...effort('max') }, user];
    const translated = fromMessages('openai/gpt-5.1', { messages, ...effort('low') });
    assert.equal(translated.body['reasoning_effort'], 'high');
    assert.deepEqual(translated.notes, ['changed messages.1.output_config.effort']);
  });

  const tools = [{ name: 'f', input_schema: { type: 'object', properties: {} } }];
  for (const [model, sent] of [
    ['gpt-5', 'high'],
    ['gpt-5.1', 'high'],
    ['gpt-5.4', 'none'],
    ['gpt-6.1-sol', 'none'],
  ]) {
    test(`tools beside reasoning: ${model} is told ${sent}`, () => {
      const { body } = fromMessages(`openai/${model}`, { tools, ...adaptive });
      assert.equal(body['reasoning_effort'], sent);
    });
  }
});
