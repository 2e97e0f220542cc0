/** §4.1, §1.2, §1.3, §1.7: what a chat client asks, in the form that each Claude model takes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { JsonObject } from '../../../src/json/value.ts';
import { fromChat, ownMembers } from '../../support/translating.ts';

type Row = readonly [model: string, asked: JsonObject, sent: JsonObject, notes?: readonly string[]];

const effort = (reasoning_effort: string) => ({ reasoning_effort, max_tokens: 10_000 });
const summarized = { type: 'adaptive', display: 'summarized' };
const adaptive = (word: string) => ({ thinking: summarized, output_config: { effort: word } });
const budget = (budget_tokens: number) => ({
  thinking: { type: 'enabled', budget_tokens, display: 'summarized' },
});
const changed = ['changed reasoning_effort'];

const thinking: readonly Row[] = [
  [
    'claude-3-5-haiku-20241022',
    effort('high'),
    {},
    ['changed max_tokens', 'lost reasoning_effort'],
  ],
  ['claude-3-opus-20240229', effort('none'), {}, ['changed max_tokens']],
  ['claude-3-7-sonnet-20250219', effort('high'), budget(6000)],
  ['claude-sonnet-4-20250514', effort('medium'), budget(3000)],
  ['claude-sonnet-4@20250514', effort('max'), budget(9000)],
  ['claude-opus-4-1-20250805', effort('minimal'), budget(1024)],
  ['claude-haiku-4-5', effort('xhigh'), budget(8000)],
  ['claude-opus-4-5-20251101', effort('none'), {}],
  ['claude-sonnet-4-6', effort('medium'), adaptive('medium')],
  ['claude-opus-4-6', effort('xhigh'), adaptive('max'), changed],
  ['claude-opus-4-6', effort('max'), adaptive('max')],
  ['claude-mythos-preview', effort('xhigh'), adaptive('max'), changed],
  ['claude-opus-4-7', effort('xhigh'), adaptive('xhigh')],
  ['claude-opus-5', effort('minimal'), adaptive('low')],
  ['claude-opus-5', effort('none'), { thinking: { type: 'disabled' } }],
  ['claude-haiku-5-5', effort('none'), { thinking: { type: 'disabled' } }],
  ['claude-sonnet-5-5', effort('none'), { thinking: { type: 'between_tools' } }],
  ['claude-opus-5-5', effort('none'), { output_config: { effort: 'low' } }, changed],
  ['claude-fable-5', effort('none'), { output_config: { effort: 'low' } }, changed],
  ['claude-of-tomorrow', effort('high'), adaptive('high')],
  ['claude-opus-5', {}, {}],
];

const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }];
const forced = { tools, tool_choice: 'required' };
const any = { tool_choice: { type: 'any' } };

const demanded: readonly Row[] = [
  ['claude-haiku-4-5', { ...effort('high'), ...forced }, any, changed],
  [
    'claude-opus-5',
    { ...effort('high'), ...forced },
    { ...any, thinking: { type: 'disabled' } },
    changed,
  ],
  // It thinks unasked, so it must be told not to.
  ['claude-sonnet-5', forced, { ...any, thinking: { type: 'disabled' } }],
  ['claude-opus-4-6', forced, any],
  ['claude-opus-5-5', forced, { tool_choice: { type: 'auto' } }, ['lost tool_choice']],
  [
    'claude-fable-5-1',
    { ...effort('low'), ...forced },
    { ...adaptive('low'), tool_choice: { type: 'auto' } },
    ['lost tool_choice'],
  ],
];

const sampling: readonly Row[] = [
  ['claude-haiku-4-5', { temperature: 1.7 }, { temperature: 1 }, ['changed temperature']],
  ['claude-3-5-haiku-20241022', { temperature: 0.2, top_p: 0.5 }, { temperature: 0.2, top_p: 0.5 }],
  ['claude-sonnet-4-5', { temperature: 0.2, top_p: 0.5 }, { temperature: 0.2 }, ['lost top_p']],
  ['claude-sonnet-4-6', { top_k: 5 }, { top_k: 5 }],
  ['claude-opus-4-7', { temperature: 0.2, top_k: 5 }, {}, ['lost temperature', 'lost top_k']],
  ['claude-opus-5', { temperature: 1, top_p: 1 }, {}],
];

const schema = { type: 'object', properties: {}, additionalProperties: false };
const format = { type: 'json_schema', json_schema: { name: 'x', schema } };
const enforced = { output_config: { format: { type: 'json_schema', schema } } };

const formats: readonly Row[] = [
  ['claude-sonnet-4-5', { response_format: format }, enforced],
  ['claude-opus-4-1', { response_format: format }, enforced],
  ['claude-opus-5', { response_format: format }, enforced],
];

for (const [title, rows] of Object.entries({
  'B14 §4.1 thinking': thinking,
  '§1.6 a demanded tool call': demanded,
  '§1.3 sampling': sampling,
  '§1.7 structured output': formats,
})) {
  describe(`${title} on Claude models`, () => {
    for (const [model, asked, sent, notes = []] of rows) {
      test(`${model} ${JSON.stringify(asked)}`, () => {
        const translated = fromChat(`anthropic/${model}`, asked);
        assert.deepEqual(ownMembers(translated), sent);
        assert.deepEqual(translated.notes, notes);
      });
    }
  });
}

describe('what else depends on the model', () => {
  const caps: readonly (readonly [string, number])[] = [
    ['anthropic/claude-3-opus-20240229', 4096],
    ['anthropic/claude-3-5-sonnet-20241022', 8192],
    ['anthropic/claude-sonnet-4-20250514', 32_000],
    ['anthropic/claude-haiku-4-5', 64_000],
    ['anthropic/claude-opus-5', 128_000],
    ['elsewhere/claude-opus-4-8', 128_000],
    ['elsewhere/kimi-k3', 8192],
  ];
  for (const [target, cap] of caps) {
    test(`§1.2 the cap of ${target} when none is set`, () => {
      assert.equal(fromChat(target, {}).body['max_tokens'], cap);
    });
  }

  test('§3.2 instructions in mid-conversation stay, natively or tagged', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Ho' },
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'So?' },
    ];
    const roles = (model: string): unknown => {
      const sent = fromChat(`anthropic/${model}`, { messages }).body['messages'];
      return Array.isArray(sent) ? sent.map((each: JsonObject) => each['role']) : sent;
    };
    assert.deepEqual(roles('claude-opus-4-8'), ['user', 'assistant', 'system', 'user']);
    assert.deepEqual(roles('claude-opus-4-6'), ['user', 'assistant', 'user']);
  });

  test('§3.4 an answer begun by the client is continued, or asked to be', () => {
    const messages = [
      { role: 'user', content: 'Count.' },
      { role: 'assistant', content: 'One, two, \n' },
    ];
    const older = fromChat('anthropic/claude-sonnet-4-5', { messages });
    assert.deepEqual(older.body['messages'], [
      { role: 'user', content: [{ type: 'text', text: 'Count.' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'One, two,' }] },
    ]);
    assert.deepEqual(older.notes, []);
    const newer = fromChat('anthropic/claude-sonnet-4-6', { messages });
    assert.match(JSON.stringify(newer.body['messages']), /"Continue\."/);
    assert.equal(newer.notes.length, 1);
  });
});
