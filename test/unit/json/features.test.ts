import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseBody, parseClientBody, type JsonSource } from '../../../src/core/client-body.ts';
import { featuresIn } from '../../../src/json/features.ts';
import { featureBits, featureTexts, walkOver, type Feature } from '../../../src/json/skeleton.ts';
import { Pieces } from '../../../src/json/pieces.ts';

/** Short bodies are not walked over: this makes them long, and says nothing. */
const space = ' '.repeat(16_384);
const noKeys: ReadonlySet<string> = new Set();
const isFeature = (name: string): name is Feature => name in featureTexts;
const names = Object.keys(featureTexts).filter(isFeature);

function walked(text: string): JsonSource | undefined {
  const pieces = Pieces.of(Buffer.from(text + space));
  if (walkOver(pieces) === undefined) return undefined;
  const source = parseClientBody(pieces, noKeys);
  assert.ok(!(source instanceof Promise));
  return source;
}

/** Some featureTexts are only the beginning of a text, or its end. */
function closed(text: string): string {
  const whole = text.startsWith('"') || text.startsWith('\\') ? text : `"x${text}`;
  return whole.endsWith('"') ? whole : `${whole}x"`;
}

const inner = Object.values(featureTexts).flatMap((texts: readonly string[]) =>
  texts.map((text) => closed(text).slice(1, -1)),
);
/** A feature's text in part, with more before and behind it, and as a text that quotes it. */
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

test('Q1 the walk meets exactly the featureTexts that a search of the bytes finds', () => {
  const met = new Map<Feature, number>();
  let found = 0;
  fc.assert(
    fc.property(
      fc.record({ messages: tree, tools: tree, x: tree }, { requiredKeys: [] }),
      (body) => {
        const text = JSON.stringify(body);
        const source = walked(text);
        if (source === undefined) return;
        found += 1;
        for (const feature of names) {
          const searched = featureTexts[feature].some((each) => text.includes(each));
          assert.equal(source.has(feature), searched, feature);
          if (searched) met.set(feature, (met.get(feature) ?? 0) + 1);
        }
      },
    ),
    { numRuns: 3000 },
  );
  assert.ok(found > 500, `${found} were walked over`);
  for (const feature of names) {
    const times = met.get(feature) ?? 0;
    // The rarest is met about 35 times: a random run has too few once in a billion.
    assert.ok(times > 4 && times < found - 4, `${feature} in ${times} of ${found}`);
  }
});

test('Q1 each feature is met as a key, as a value, and in a text that quotes it', () => {
  for (const [feature, each] of Object.entries(featureTexts)) {
    assert.ok(isFeature(feature));
    for (const text of feature === 'escape' ? each : each.map(closed)) {
      const bodies: readonly string[] =
        feature === 'escape'
          ? [`{"a":"${text}41"}`, `{"a":"\\${text}"}`]
          : [
              `{${text}:1}`,
              `{"a":${text}}`,
              `{"tools":[{"f":{"parameters":[${text}]}}]}`,
              `{"a":"b\\${text}}`,
            ];
      for (const body of bodies) {
        for (const name of names) {
          const stands = featureTexts[name].some((other) => body.includes(other));
          assert.ok(stands || name !== feature, `${name} in ${body}`);
          assert.equal(walked(body)?.has(name), stands, `${name} in ${body}`);
          assert.equal(walked(body)?.lacks(name), !stands, `${name} in ${body}`);
          assert.equal(parseBody(Buffer.from(body), noKeys).has(name), stands);
        }
      }
    }
  }
});

const whole = fc.constantFrom(...Object.values(featureTexts).flat());

test('G11 one pass over the quotes of a long body finds what a search for each text finds', () => {
  const met = new Map<Feature, number>();
  fc.assert(
    fc.property(fc.array(fc.oneof(words, whole), { maxLength: 6 }), (all) => {
      const bytes = Buffer.from(all.join(''));
      const found = featuresIn(bytes);
      for (const name of names) {
        const searched = featureTexts[name].some((text) => bytes.includes(text));
        if (searched) met.set(name, (met.get(name) ?? 0) + 1);
        assert.equal((found & featureBits[name]) !== 0, searched, `${name} in ${bytes.toString()}`);
      }
    }),
    { numRuns: 3000 },
  );
  for (const name of names) assert.ok((met.get(name) ?? 0) > 20, `${name} was tried`);
});

test('G11 the features of a body that is too long for the walk are those of its bytes', () => {
  const text = `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url"}]}],"pad":"${'x'.repeat(100_000)}"}`;
  const source = parseBody(Buffer.from(text), noKeys);
  assert.deepEqual(
    names.filter((name) => source.has(name)),
    ['media', 'address'],
  );
  assert.equal(source.lacks('unusualName'), false, 'only the walk sees names');
});
