import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseBody, parseClientBody, type JsonSource } from '../../../src/core/json.ts';
import { marks, type Mark } from '../../../src/core/json-marks.ts';
import { Pieces } from '../../../src/core/pieces.ts';
import { outlineOf } from '../../../src/core/json-outline.ts';

/** Short bodies are not walked over: this makes them long, and says nothing. */
const space = ' '.repeat(16_384);
const noKeys: ReadonlySet<string> = new Set();
const isMark = (name: string): name is Mark => name in marks;
const names = Object.keys(marks).filter(isMark);

function walked(text: string): JsonSource | undefined {
  const pieces = Pieces.of(Buffer.from(text + space));
  if (outlineOf(pieces) === undefined) return undefined;
  const source = parseClientBody(pieces, noKeys);
  assert.ok(!(source instanceof Promise));
  return source;
}

/** One mark is only the beginning of a text. */
function closed(text: string): string {
  return text.endsWith('"') ? text : `${text}x"`;
}

const inner = Object.values(marks).flatMap((texts: readonly string[]) =>
  texts.map((text) => closed(text).slice(1, -1)),
);
/** A mark's text in part, with more before and behind it, and as a text that quotes it. */
const words = fc.oneof(
  fc.constantFrom(...inner, '\u0000', '\\u00', '\\', '"', 'x', ' '),
  fc
    .tuple(fc.constantFrom('"', 'x"', '\\"', '\\', 'x', ''), fc.constantFrom(...inner))
    .map((two) => two.join('')),
  fc
    .tuple(fc.constantFrom(...inner), fc.constantFrom('"', 's', '\\', ' '))
    .map((two) => two.join('')),
);
const texts = fc.oneof(
  words,
  fc.array(words, { maxLength: 4 }).map((all) => all.join('')),
);
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5, depthSize: 'small', withCrossShrink: true },
    texts,
    fc.constantFrom(null, 1, true),
    fc.array(tie('tree'), { maxLength: 3 }),
    fc.dictionary(texts, tie('tree'), { maxKeys: 3 }),
  ),
}));

test('Q1 the walk meets exactly the marks that a search of the bytes finds', () => {
  const met = new Map<Mark, number>();
  let found = 0;
  fc.assert(
    fc.property(
      fc.record({ messages: tree, tools: tree, x: tree }, { requiredKeys: [] }),
      (body) => {
        const text = JSON.stringify(body);
        const source = walked(text);
        if (source === undefined) return;
        found += 1;
        for (const mark of names) {
          const searched = marks[mark].some((each) => text.includes(each));
          assert.equal(source.holds(mark), searched, mark);
          if (searched) met.set(mark, (met.get(mark) ?? 0) + 1);
        }
      },
    ),
    { numRuns: 3000 },
  );
  assert.ok(found > 500, `${found} were walked over`);
  for (const mark of names) {
    const times = met.get(mark) ?? 0;
    assert.ok(times > 20 && times < found - 20, `${mark} in ${times} of ${found}`);
  }
});

test('Q1 each mark is met as a key, as a value, and in a text that quotes it', () => {
  for (const [mark, each] of Object.entries(marks)) {
    assert.ok(isMark(mark));
    for (const text of mark === 'escape' ? each : each.map(closed)) {
      const bodies: readonly string[] =
        mark === 'escape'
          ? [`{"a":"${text}41"}`, `{"a":"\\${text}"}`]
          : [
              `{${text}:1}`,
              `{"a":${text}}`,
              `{"tools":[{"f":{"parameters":[${text}]}}]}`,
              `{"a":"b\\${text}}`,
            ];
      for (const body of bodies) {
        for (const name of names) {
          assert.equal(walked(body)?.holds(name), name === mark, `${name} in ${body}`);
          assert.equal(parseBody(Buffer.from(body), noKeys).holds(name), name === mark);
        }
      }
    }
  }
});
