/** Texts that are JSON, nearly JSON, or were; for whatever reads bodies. */
import * as fc from 'fast-check';

const space = fc.constantFrom('', '', ' ', '\n', '\t\r\n');
const scalars = fc.constantFrom(
  '1',
  '-0',
  '1.5',
  '1e5',
  '12345678901234567890',
  'true',
  'null',
  '""',
  '"a"',
  '"\\n\\"x"',
  '"\\\\"',
  '"é你🦀"',
  '"[,]{}:"',
  '"\\ud800"',
  '"é\\\\\\u00e9\\ud83e\\udd80\\\\\\"\\\\n🦀\\/你\\\\"',
);
const keys = fc.constantFrom('"a"', '"b"', '"1"', '"__proto__"', '"k\\u0061"', '"é"');

function separated(
  items: fc.Arbitrary<string>,
  [open, close]: readonly [string, string],
): fc.Arbitrary<string> {
  return fc
    .tuple(fc.array(fc.tuple(space, items, space), { maxLength: 5 }), space)
    .map(
      ([list, inner]) => `${open}${inner}${list.map((each) => each.join('')).join(',')}${close}`,
    );
}

const { value } = fc.letrec<{ value: string; item: string }>((tie) => ({
  item: fc
    .tuple(keys, space, space, tie('value'))
    .map(([key, a, b, text]) => `${key}${a}:${b}${text}`),
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalars,
    separated(tie('value'), ['[', ']']),
    separated(tie('item'), ['{', '}']),
  ),
}));

const documents = fc
  .array(fc.tuple(keys, value), { minLength: 1, maxLength: 5 })
  .map((members) => `{${members.map(([key, text]) => `${key}:${text}`).join(',')}}`);

const edit = fc.record({
  at: fc.nat(),
  takes: fc.boolean(),
  puts: fc.constantFrom('', ',', '[', ']', '{', '}', '"', ':', ' ', 'x', '\\', '1'),
});

/** Documents, many of them with a character or two changed. */
export const jsonTexts: fc.Arbitrary<string> = fc
  .tuple(documents, fc.array(edit, { maxLength: 2 }))
  .map(([text, edits]) =>
    edits.reduce((changed, { at, takes, puts }) => {
      const place = at % (changed.length + 1);
      return changed.slice(0, place) + puts + changed.slice(place + (takes ? 1 : 0));
    }, text),
  )
  // The first character decides alone whether a body is an object.
  .filter((text) => /^\s*\{/.test(text));
