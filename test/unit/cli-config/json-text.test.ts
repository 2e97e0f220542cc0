/** Values inside the text of a JSON file: what is not touched stays, byte by byte where it can (C7). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { placed } from '../../../src/cli/clients/client.ts';
import { jsonAt, withJsonAt, withoutJsonAt } from '../../../src/cli/settings-file.ts';
import type { Json } from '../../../src/json/value.ts';
import { anyCharacter } from '../../support/any-character.ts';

const names = fc.constantFrom('a', 'b', 'a"b', '__proto__', 'c/d');
const { tree } = fc.letrec<{ tree: Json; object: Json }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.string({ unit: anyCharacter })),
    tie('object'),
    fc.array(tie('object'), { maxLength: 3 }),
  ),
  object: fc.dictionary(names, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
}));
const objects = fc.dictionary(names, tree, { maxKeys: 4, noNullPrototype: true });
const comments = fc.constantFrom('', ' ', '\n', ' // c "}\n', '/* , ] */', '\r\n\t');

/** A text of the value with comments, blanks and trailing commas in between. */
function written(value: unknown, blank: () => string): string {
  const around = (text: string): string => `${blank()}${text}${blank()}`;
  const list = (items: readonly string[]): string =>
    items.join(',') + (items.length > 0 && blank() === ' ' ? ',' : '') + blank();
  if (Array.isArray(value)) return around(`[${list(value.map((item) => written(item, blank)))}]`);
  if (typeof value !== 'object' || value === null) return around(JSON.stringify(value));
  const members = Object.entries(value).map(
    ([name, item]) => `${around(JSON.stringify(name))}:${written(item, blank)}`,
  );
  return around(`{${list(members)}}`);
}

const texts = fc.tuple(objects, fc.infiniteStream(comments)).map(([value, blanks]) => ({
  value,
  text: written(value, () => blanks.next().value ?? ''),
}));

test('C7 any text with comments reads as its value', () => {
  fc.assert(
    fc.property(texts, ({ value, text }) => {
      assert.deepEqual(jsonAt(text, []), value);
    }),
  );
});

test('C7 a value is set where it belongs; the rest and every comment stay', () => {
  fc.assert(
    fc.property(texts, fc.array(names, { minLength: 1, maxLength: 3 }), ({ value, text }, path) => {
      const stops = path.some((_, depth) => {
        const at = jsonAt(text, path.slice(0, depth));
        return at !== undefined && (typeof at !== 'object' || at === null || Array.isArray(at));
      });
      if (stops) return void assert.throws(() => withJsonAt(text, path, 'new'), /is not an object/);
      const after = withJsonAt(text, path, 'new');
      assert.deepEqual(jsonAt(after, []), placed(value, path, 'new'));
      assert.equal(withJsonAt(after, path, 'new'), after);
    }),
  );
});

test('C7 a member is removed, and nothing but it', () => {
  fc.assert(
    fc.property(texts, names, ({ value, text }, name) => {
      const left = Object.fromEntries(Object.entries(value).filter(([each]) => each !== name));
      const after = withoutJsonAt(text, [name]);
      assert.deepEqual(jsonAt(after, []), left);
      if (!Object.hasOwn(value, name)) assert.equal(after, text);
    }),
  );
});

test('C7 what is no JSON is refused with its line', () => {
  for (const [text, line] of [
    ['{\n"a": }', 2],
    ['{"a": 1} x', 1],
    ['{"a" 1}', 1],
    ["{'a': 1}", 1],
    ['{\n\n"a": tru}', 3],
    ['', 1],
    ['{"a": 1', 1],
    ['[1 2]', 1],
    ['{"a": "\n"}', 1],
    ['/* open', 1],
  ] as const) {
    assert.throws(() => jsonAt(text, []), new RegExp(`line ${line} is not JSON`), text);
  }
});
