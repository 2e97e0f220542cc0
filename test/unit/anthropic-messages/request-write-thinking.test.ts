import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Effort, Part, Reasoning, Tool, Turn } from '../../../src/core/conversation.ts';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import type { UpstreamTraits } from '../../../src/core/traits.ts';
import { fields } from './answer-context.ts';

const user: Turn = { role: 'user', parts: [{ type: 'text', text: 'Hi' }] };
const tool: Tool = { name: 'f', schema: { type: 'object', properties: {} } };

describe('4.1 thinking', () => {
  type Row = readonly [Reasoning, JsonObject | undefined, string | undefined, readonly string[]];
  const summarized = { type: 'adaptive', display: 'summarized' };
  const adaptive: readonly Row[] = [
    [{ effort: 'none' }, { type: 'disabled' }, undefined, []],
    [{ effort: 'minimal' }, summarized, 'low', []],
    [{ effort: 'low' }, summarized, 'low', []],
    [{ effort: 'xhigh' }, summarized, 'xhigh', []],
    [{ adaptive: true, hidden: true }, { type: 'adaptive', display: 'omitted' }, undefined, []],
    [{ budgetTokens: 6000 }, summarized, 'medium', ['thinking.budget_tokens changed']],
    [{ hidden: true }, undefined, undefined, []],
  ];
  for (const [reasoning, thinking, effort, notes] of adaptive) {
    test(`B14 adaptive model: ${JSON.stringify(reasoning)}`, () => {
      const written = fields({ reasoning });
      assert.deepEqual(written['thinking'], thinking);
      assert.deepEqual(written['output_config'], effort === undefined ? undefined : { effort });
      assert.deepEqual(written.notes, notes);
    });
  }

  test('efforts that the model lacks', () => {
    const efforts = (known: UpstreamTraits['efforts'], effort: 'xhigh' | 'max'): unknown =>
      fields({ reasoning: { effort } }, { efforts: known })['output_config'];
    assert.deepEqual(efforts(['low', 'high', 'max'], 'xhigh'), { effort: 'max' });
    assert.deepEqual(efforts(['low', 'high'], 'xhigh'), { effort: 'high' });
    assert.deepEqual(efforts(['low', 'high'], 'max'), { effort: 'high' });
    assert.equal(efforts([], 'max'), undefined);
  });

  const budget: readonly (readonly [Reasoning, number | undefined, readonly string[]])[] = [
    [{ effort: 'none' }, undefined, []],
    [{ effort: 'minimal' }, 1024, []],
    [{ effort: 'low' }, 1024, []],
    [{ effort: 'medium' }, 3000, []],
    [{ effort: 'high' }, 6000, []],
    [{ effort: 'xhigh' }, 8000, []],
    [{ effort: 'max' }, 9000, []],
    [{ adaptive: true }, 6000, []],
    [{ budgetTokens: 5000 }, 5000, []],
    [{ budgetTokens: 50_000 }, 9999, ['thinking.budget_tokens changed']],
    [{ budgetTokens: 5 }, 1024, ['thinking.budget_tokens changed']],
  ];
  for (const [reasoning, tokens, notes] of budget) {
    test(`B14 budget model: ${JSON.stringify(reasoning)}`, () => {
      const written = fields(
        { reasoning, sampling: { maxOutputTokens: 10_000 } },
        { thinking: 'budget' },
      );
      assert.deepEqual(
        written['thinking'],
        tokens === undefined
          ? undefined
          : { type: 'enabled', budget_tokens: tokens, display: 'summarized' },
      );
      assert.deepEqual(written.notes, notes);
    });
  }

  const uncapped: readonly (readonly [Effort, number])[] = [
    ['minimal', 1024],
    ['low', 4096],
    ['medium', 8192],
    ['high', 16_384],
    ['xhigh', 32_768],
    ['max', 57_600],
  ];
  for (const [effort, tokens] of uncapped) {
    test(`D16 without a cap of the client's, ${effort} is a budget of ${tokens} tokens`, () => {
      const traits = { thinking: 'budget', defaultMaxOutputTokens: 64_000 } as const;
      const thinking = fields({ reasoning: { effort } }, traits)['thinking'];
      assert.equal(isObject(thinking) ? thinking['budget_tokens'] : undefined, tokens);
    });
  }

  test('no room for a budget; no thinking at all', () => {
    const reasoning = { effort: 'high' } as const;
    const small = fields(
      { reasoning, sampling: { maxOutputTokens: 1024 } },
      { thinking: 'budget' },
    );
    assert.equal(small['thinking'], undefined);
    assert.deepEqual(small.notes, ['reasoning_effort lost']);
    const none = fields({ reasoning }, { thinking: 'none' });
    assert.equal(none['thinking'], undefined);
    assert.deepEqual(none.notes, ['reasoning_effort lost']);
  });

  test('sampling is left alone while the model thinks', () => {
    const { notes, ...written } = fields({
      reasoning: { effort: 'high' },
      sampling: { temperature: 0.5, topP: 1, topK: 3 },
    });
    assert.deepEqual(
      [written['temperature'], written['top_p'], written['top_k']],
      [undefined, undefined, undefined],
    );
    assert.deepEqual(notes, ['temperature lost', 'top_k lost']);
  });

  test('1.6 a demanded tool call turns thinking off', () => {
    const changes = { tools: [tool], toolChoice: { type: 'required' }, reasoning: {} } as const;
    const written = fields({ ...changes, reasoning: { effort: 'max' } });
    assert.deepEqual(written['thinking'], { type: 'disabled' });
    assert.equal(written['output_config'], undefined);
    assert.deepEqual(written.notes, ['reasoning_effort changed']);
    const onBudget = fields({ ...changes, reasoning: { effort: 'max' } }, { thinking: 'budget' });
    assert.equal(onBudget['thinking'], undefined);
  });

  test('D3 an open tool turn without signed thinking turns a budget off, never a 400', () => {
    const call: Part = { type: 'tool-call', id: 'a', name: 'f', argumentsJson: '{}' };
    const answered: Turn = {
      role: 'user',
      parts: [{ type: 'tool-result', callId: 'a', parts: [], failed: false }],
    };
    const turnsWith = (...thought: readonly Part[]): readonly Turn[] => [
      user,
      { role: 'assistant', parts: [...thought, call] },
      answered,
    ];
    const signed: Part = { type: 'reasoning', text: 'hm', signature: 's' };
    const reasoning = { effort: 'high' } as const;
    const off = fields(
      { reasoning, turns: turnsWith({ type: 'reasoning', text: 'hm' }) },
      { thinking: 'budget' },
    );
    assert.equal(off['thinking'], undefined);
    assert.deepEqual(off.notes, ['reasoning_effort changed']);
    const on = fields({ reasoning, turns: turnsWith(signed) }, { thinking: 'budget' });
    assert.ok(isObject(on['thinking']));
    assert.ok(isObject(fields({ reasoning, turns: turnsWith() })['thinking']));
  });
});
