import assert from 'node:assert/strict';
import { it } from 'node:test';
import * as fc from 'fast-check';
import { Glob } from '../../../src/core/model-names.ts';

const rows: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['*', ['', 'a', 'openai/gpt-5', '***'], []],
  ['', [''], ['a']],
  ['local/tiny', ['local/tiny'], ['local/tin', 'local/tinyy', 'LOCAL/TINY', '']],
  ['openai/*', ['openai/', 'openai/gpt-5', 'openai/a/b'], ['openai', 'xopenai/gpt']],
  ['*-mini', ['gpt-5-mini', '-mini'], ['mini', 'gpt-5-mini-2', 'gpt-5-min']],
  ['a*a', ['aa', 'aba', 'aaa'], ['a', 'ab', 'ba']],
  ['a*b*c', ['abc', 'axbxc', 'abbcc', 'abcbc'], ['acb', 'ab', 'bc', 'abcd']],
  ['a**c', ['ac', 'abc'], ['a', 'ab']],
  ['**', ['', 'x'], []],
  ['*ab*ab*', ['abab', 'xabyabz'], ['ab', 'aba', 'xaby']],
  ['gpt.5', ['gpt.5'], ['gptx5']],
  ['[a-z]+(x|y)?$', ['[a-z]+(x|y)?$'], ['abcx']],
];

for (const [pattern, yes, no] of rows) {
  it(`S7 the pattern ${JSON.stringify(pattern)}`, () => {
    const glob = new Glob(pattern);
    for (const name of yes) assert.equal(glob.matches(name), true, name);
    for (const name of no) assert.equal(glob.matches(name), false, name);
  });
}

it('S7 agrees with a slow and simple reading of *', () => {
  const simple = (pattern: string, name: string): boolean => {
    if (pattern === '') return name === '';
    if (pattern.startsWith('*')) {
      const rest = pattern.slice(1);
      return simple(rest, name) || (name !== '' && simple(pattern, name.slice(1)));
    }
    return name.startsWith(pattern.charAt(0)) && simple(pattern.slice(1), name.slice(1));
  };
  const letters = fc.constantFrom('a', 'b', '*');
  fc.assert(
    fc.property(
      fc.string({ unit: letters, maxLength: 7 }),
      fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 9 }),
      (pattern, name) => {
        assert.equal(new Glob(pattern).matches(name), simple(pattern, name));
      },
    ),
    { numRuns: 2000 },
  );
});

it('B50 a pattern bomb ends, and an overlong name is refused', () => {
  const glob = new Glob('a*'.repeat(100));
  assert.equal(glob.matches(`${'a'.repeat(500)}!`), true);
  assert.equal(new Glob(`${'a*'.repeat(100)}b`).matches(`${'a'.repeat(500)}!`), false);
  assert.equal(new Glob('*').matches('a'.repeat(1_000_000)), false);
});
