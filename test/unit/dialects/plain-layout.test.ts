/** How frames that differ in their text alone are told (C4). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PlainLayout, type LayoutRules } from '../../../src/dialects/shared/plain-layout.ts';

const rules: LayoutRules = {
  text: /"say"\s*:\s*"/,
  passing: [/"n"\s*:\s*/, /"padding"\s*:\s*"/],
  textOf: ({ say }) => (typeof say === 'string' ? say : undefined),
};

function taught(data: string): PlainLayout {
  const layout = new PlainLayout(rules);
  layout.learn(data);
  return layout;
}

const data = (say: string, more: object = {}): string => JSON.stringify({ id: 'x', say, ...more });

describe('the layout of frames', () => {
  test('it is found, holds for texts with escapes, and ends with another one', () => {
    const layout = new PlainLayout(rules);
    assert.equal(layout.textOf(data('a')), undefined);
    layout.learn(data('a'));
    for (const say of ['b', 'two\nlines', 'a "word"', '\\', '🦀']) {
      assert.equal(layout.textOf(data(say)), say);
    }
    assert.equal(layout.textOf(data('')), undefined);
    assert.equal(layout.textOf(data('a').replace('"a"', '"a","more":"b"')), undefined);
    assert.equal(layout.textOf(data('a').replace('"a"', '"\t"')), undefined, 'no JSON');
    assert.equal(layout.textOf(data('a').replace('id', 'other')), undefined);
    assert.equal(layout.textOf(data('a').slice(0, -1)), undefined);
  });

  test('numbers and padding may differ, wherever they stand', () => {
    for (const [first, next] of [
      ['{"n":1,"say":"a","padding":"p"}', '{"n":20,"say":"b","padding":"longer"}'],
      ['{"padding":"p","say":"a","n":9}', '{"padding":"q","say":"b","n":10}'],
      ['{"say":"a", "n": 7}', '{"say":"b", "n": 123456789012345}'],
    ] as const) {
      assert.equal(taught(first).textOf(next), 'b', next);
    }
    const layout = taught('{"n":1,"say":"a","padding":"p"}');
    for (const odd of [
      '{"n":01,"say":"b","padding":"p"}',
      '{"n":,"say":"b","padding":"p"}',
      '{"n":-1,"say":"b","padding":"p"}',
      '{"n":1234567890123456,"say":"b","padding":"p"}',
      '{"n":1,"say":"b","padding":"\t"}',
      '{"n":1,"say":"b","padding":"\\q"}',
      '{"n":1,"say":"b","padding":"p","say":"c"}',
    ]) {
      assert.equal(layout.textOf(odd), undefined, odd);
    }
  });

  test('nothing is learned where the text is not the one that a parse finds', () => {
    for (const odd of [
      '{"inner":{"say":"a"},"say":"b"}',
      '{"say":"a","say":"b"}',
      '{"x\\"say":"a","say":"b"}',
      '{"padding":"\\"say\\":\\"a","say":"b"}',
      '{"n":-1,"say":"a"}',
      '{"n":null,"say":"a"}',
    ]) {
      assert.equal(taught(odd).textOf(odd), undefined, odd);
    }
  });

  test('a server whose frames all differ is not looked at for ever', () => {
    const layout = new PlainLayout(rules);
    for (let i = 0; i < 3; i += 1) layout.learn(data('a', { i }));
    assert.equal(layout.textOf(data('a', { i: 2 })), 'a');
    for (let i = 0; i < 4; i += 1) layout.learn(data('a', { i }));
    assert.equal(layout.textOf(data('a', { i: 3 })), undefined);
  });
});
