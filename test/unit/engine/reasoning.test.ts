/** Reasoning: split off wherever the pieces break, counted, switched by what the template knows. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { GrammarGate } from '../../../src/engine/answer-grammar.ts';
import { AnswerScanner } from '../../../src/engine/generate.ts';
import { EngineError } from '../../../src/engine/engine-error.ts';
import { reasoningTagsOf } from '../../../src/engine/scanners.ts';
import { readThinking, templateValues } from '../../../src/engine/request.ts';

const tags = { open: '<think>', close: '</think>' };

interface Found {
  reasoning: string;
  text: string;
  calls: string[];
  held: boolean[];
  stop: string | undefined;
}

interface Setting {
  readonly open?: boolean;
  readonly stop?: readonly string[];
  readonly thinks?: boolean;
}

function scan(
  pieces: readonly string[],
  { open = false, stop = [], thinks = true }: Setting = {},
): Found {
  const found: Found = { reasoning: '', text: '', calls: [], held: [], stop: undefined };
  const gate = new GrammarGate({ whole: () => 'grammar' });
  const scanner = new AnswerScanner(
    {
      tags: thinks ? tags : undefined,
      reasoningOpen: open,
      stop,
      names: new Set(['f']),
      singleCall: false,
      gate,
    },
    {
      reasoning: (text) => void (found.reasoning += text),
      text: (text) => void (found.text += text),
      call: (name) => void found.calls.push(name),
      callArguments: () => {},
    },
  );
  for (const piece of pieces) {
    found.held.push(gate.current !== undefined);
    scanner.push(piece);
    if (scanner.over) break;
  }
  found.held.push(gate.current !== undefined);
  scanner.end('');
  found.stop = scanner.stopSequence;
  return found;
}

function cut(text: string, places: readonly number[]): string[] {
  const sorted = places.map((place) => place % (text.length + 1)).sort((a, b) => a - b);
  const pieces = sorted.map((place, index) => text.slice(sorted[index - 1] ?? 0, place));
  return [...pieces, text.slice(sorted.at(-1) ?? 0)];
}

describe('split', () => {
  test('the model opens its reasoning, or the prompt did', () => {
    const whole = '<think>\nHm, a <b>.\n</think>\n\nYes. </think>';
    const expected = { reasoning: 'Hm, a <b>.', text: 'Yes. </think>' };
    assert.partialDeepStrictEqual(scan([whole]), expected);
    assert.partialDeepStrictEqual(scan([whole.slice(7)], { open: true }), expected);
    assert.partialDeepStrictEqual(scan(['\n', whole]), expected);
  });

  test('without reasoning, and for models without it, the text is the answer', () => {
    for (const text of ['Yes <think>no</think>', '  < 3', '<thi']) {
      assert.partialDeepStrictEqual(scan([...text]), { reasoning: '', text });
    }
    const text = '<think>a</think>b';
    assert.partialDeepStrictEqual(scan([text], { thinks: false }), { reasoning: '', text });
  });

  test('empty and unfinished reasoning', () => {
    assert.partialDeepStrictEqual(scan(['<think>\n\n</think>\n\nYes']), {
      reasoning: '',
      text: 'Yes',
    });
    assert.partialDeepStrictEqual(scan(['<think>\nand so </thin']), {
      reasoning: 'and so </thin',
      text: '',
    });
    assert.partialDeepStrictEqual(scan(['so'], { open: true }), { reasoning: 'so', text: '' });
  });

  test('stop sequences and calls are for what follows', () => {
    const call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>';
    const found = scan([`<think>END ${call}</think>Yes END no`], { stop: ['END'] });
    assert.partialDeepStrictEqual(found, { reasoning: `END ${call}`, text: 'Yes ', stop: 'END' });
    assert.deepEqual(found.calls, []);
  });

  test('a grammar holds the answer from the end of the reasoning on', () => {
    assert.deepEqual(scan(['a', '</think>', '{}'], { open: true }).held, [
      false,
      false,
      true,
      true,
    ]);
    assert.deepEqual(scan(['{}']).held, [true, true]);
  });

  test('pieces make no difference', () => {
    const places = fc.array(fc.nat(), { maxLength: 12 });
    for (const text of ['<think>\n a </thin b \n</think>\n\n c <d ', ' <thin', '<think> a \n ']) {
      const { held: _one, ...whole } = scan([text]);
      fc.assert(
        fc.property(places, (at) => {
          const { held: _other, ...found } = scan(cut(text, at));
          assert.deepEqual(found, whole);
        }),
      );
    }
  });
});

describe('switch', () => {
  const values = (body: object, template: string): unknown =>
    templateValues(readThinking({ ...body }), {
      template,
      thinks: reasoningTagsOf(template) !== undefined,
    });
  const refuses = (body: object, template: string, param: string): void => {
    assert.throws(
      () => values(body, template),
      (error) => error instanceof EngineError && error.status === 400 && error.param === param,
    );
  };
  const switchable = '{% if enable_thinking %}<think></think>{% endif %}';
  const levelled = '<think></think> {{ reasoning_effort }}';
  const always = '<think></think>';

  test('an effort becomes what the template knows', () => {
    assert.deepEqual(values({ reasoning_effort: 'none' }, switchable), { enable_thinking: false });
    assert.deepEqual(values({ reasoning_effort: 'high' }, switchable), { enable_thinking: true });
    assert.deepEqual(values({ reasoning_effort: 'xhigh' }, levelled), { reasoning_effort: 'high' });
    assert.deepEqual(values({ reasoning_effort: 'low' }, always), {});
    assert.deepEqual(values({ reasoning_effort: 'none' }, 'plain'), {});
    refuses({ reasoning_effort: 'none' }, always, 'reasoning_effort');
    refuses({ reasoning_effort: 'low' }, 'plain', 'reasoning_effort');
    refuses({ reasoning_effort: 'much' }, switchable, 'reasoning_effort');
  });

  test('values for the template are taken where it knows them', () => {
    const off = { chat_template_kwargs: { enable_thinking: false } };
    assert.deepEqual(values(off, switchable), { enable_thinking: false });
    assert.deepEqual(values(off, 'plain'), {});
    refuses(off, always, 'chat_template_kwargs.enable_thinking');
    refuses(
      { chat_template_kwargs: { messages: [] } },
      'messages',
      'chat_template_kwargs.messages',
    );
    refuses({ chat_template_kwargs: 1 }, switchable, 'chat_template_kwargs');
  });
});
