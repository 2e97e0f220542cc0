/** Edits of a body in its own bytes mean what they mean of its value, and leave all other bytes as they were. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';
import { editJson, type JsonEdit, replaceMembers, spliceMembers } from '../../src/json/edit.ts';
import { tryParse } from '../../src/json/parse.ts';
import { parseBody, spliceAnswer, type WholeDocument } from '../../src/core/client-body.ts';
import { Pieces } from '../../src/json/pieces.ts';
import { json } from './arbitraries.ts';
import { check } from './checking.ts';

const noKeys: ReadonlySet<string> = new Set();
const spaces = fc.constantFrom('', ' ', '\n', '\t ');
const keys = fc.oneof(
  fc.constantFrom('a', 'b', '10', '9', '__proto__', 'é', 'q"q', 'back\\slash', ''),
  fc.string({ maxLength: 5 }),
);

/** A value of some depth and its text, with white space, escapes and numbers as people write them. */
const { value } = fc.letrec<{ value: string; scalar: string; list: string; object: string }>(
  (tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      tie('scalar'),
      tie('list'),
      tie('object'),
    ),
    scalar: fc.oneof(
      json.filter((each) => typeof each !== 'object').map((each) => JSON.stringify(each)),
      fc.constantFrom('1.0', '1e2', '12345678901234567890', '"\\u00e9\\/"', '"}],{\\"["', 'null'),
    ),
    list: fc
      .array(fc.tuple(spaces, tie('value'), spaces), { maxLength: 4 })
      .map((items) => `[${items.map((parts) => parts.join('')).join(',')}]`),
    object: objectOf(tie('value')),
  }),
);

function objectOf(inner: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .uniqueArray(fc.tuple(spaces, keys, spaces, spaces, inner, spaces), {
      selector: (parts) => parts[1],
      maxLength: 4,
    })
    .map((members) => {
      const texts = members.map(
        ([a, key, b, c, text, d]) => `${a}${escaped(key)}${b}:${c}${text}${d}`,
      );
      return `{${texts.join(',')}}`;
    });
}

/** Some keys with escapes that need none. */
function escaped(key: string): string {
  return key === 'a' ? '"\\u0061"' : JSON.stringify(key);
}

type Path = readonly (string | number)[];

/** All places of a value, and beside them places in its containers where nothing is yet. */
function placesIn(json: Json | undefined, path: Path = []): readonly Path[] {
  if (Array.isArray(json)) {
    const items: readonly Json[] = json;
    return [
      ...items.flatMap((item, i) => [[...path, i], ...placesIn(item, [...path, i])]),
      [...path, items.length],
    ];
  }
  if (!isObject(json)) return [];
  const members = Object.keys(json).flatMap((key) => [
    [...path, key],
    ...placesIn(json[key], [...path, key]),
  ]);
  return [...members, [...path, 'new'], [...path, 'newer']];
}

const change = fc.record({
  at: fc.nat({ max: 1000 }),
  text: fc.option(fc.oneof(value, fc.constant('"text"')), { nil: undefined }),
  insert: fc.boolean(),
});

interface Case {
  readonly text: string;
  readonly edits: readonly JsonEdit[];
}

const cases: fc.Arbitrary<Case> = fc
  .tuple(objectOf(value), fc.array(change, { maxLength: 5 }))
  .map(([text, changes]) => {
    const places = placesIn(parseBody(Buffer.from(text), noKeys).value);
    const edits = changes.map(({ at, text, insert }): JsonEdit => {
      const path = places[at % places.length] ?? ['new'];
      const inserts = insert && text !== undefined && typeof path.at(-1) === 'number';
      return { path, text, ...(inserts ? { insert: true } : {}) };
    });
    return { text, edits };
  });

/** What the edits mean, by the book: the last edit of a place holds, and edits inside of it do not. */
function expected(json: Json | undefined, edits: readonly JsonEdit[]): Json | undefined {
  const here = edits.findLast(({ path, insert }) => path.length === 0 && insert !== true);
  if (here !== undefined) return here.text === undefined ? undefined : tryParse(here.text);
  const at = (key: string | number): readonly JsonEdit[] =>
    edits
      .filter(({ path, insert }) => path[0] === key && !(path.length === 1 && insert === true))
      .map((edit) => ({ ...edit, path: edit.path.slice(1) }));
  if (Array.isArray(json)) {
    const items: readonly Json[] = json;
    const all: (Json | undefined)[] = [];
    for (let i = 0; i <= items.length; i += 1) {
      for (const { path, text, insert } of edits) {
        if (insert === true && path.length === 1 && path[0] === i) all.push(tryParse(text ?? ''));
      }
      all.push(expected(items[i], at(i)));
    }
    return all.filter((item) => item !== undefined);
  }
  if (!isObject(json)) return json;
  const names = new Set([...Object.keys(json), ...edits.map(({ path }) => String(path[0]))]);
  const members = [...names].map((key) => [key, expected(json[key], at(key))] as const);
  return Object.fromEntries(members.filter(([, member]) => member !== undefined));
}

function edited({ text, edits }: Case): string {
  return editJson(parseBody(Buffer.from(text), noKeys), edits).toString();
}

test('D13 X-10 an edit of the bytes means what it means of the value', (context) => {
  check(context, cases, (each) => {
    const before = parseBody(Buffer.from(each.text), noKeys).value;
    assert.deepEqual(tryParse(edited(each)), expected(before, each.edits));
  });
});

const someMembers = fc.dictionary(
  fc.oneof(keys, fc.constantFrom('new', 'model')),
  fc.option(value, { nil: undefined }),
  { maxKeys: 3 },
);

test('D13 members of the top level are replaced in one pass as they are by a scan', (context) => {
  check(context, fc.tuple(objectOf(value), someMembers), ([text, members]) => {
    const bytes = Buffer.from(text);
    const source = parseBody(bytes, noKeys);
    const quick = replaceMembers(bytes, source.value, members);
    const slow = spliceMembers(source, members).toString();
    if (quick !== undefined) assert.equal(quick.toString(), slow);
    else
      assert.match(text, /\\|[\u0080-\uffff]/, 'only a key that is not plain ASCII needs the scan');
  });
});

test('D13 members of a body in which a key of the top level stands twice are not replaced in one pass', () => {
  const bytes = Buffer.from('{"a":1,"b":2,"a":3}');
  assert.equal(replaceMembers(bytes, { a: 3, b: 2 }, { b: '4' }), undefined);
  assert.equal(replaceMembers(bytes, { a: 3, b: 2 }, { a: '4' }), undefined);
});

test('D13 an answer retains keys that its nested objects have twice, and is written anew for one of its top level', () => {
  const changed = (text: string): string | undefined =>
    spliceAnswer(parsedAnswer(text), { model: '"own"' })?.toString();
  const deep = `${'['.repeat(2000)}${']'.repeat(2000)}`;
  assert.equal(
    changed(`{"in":{"k":1,"k":2},"model":"x","deep":${deep}}`),
    `{"in":{"k":1,"k":2},"model":"own","deep":${deep}}`,
  );
  assert.equal(changed('{"a":1, "a":2,"model":"x"}'), '{"a":2,"model":"own"}');
  assert.equal(changed(`{"a":1,"a":2,"model":"x","deep":${deep}}`), undefined);
});

function parsedAnswer(text: string): WholeDocument {
  const body = tryParse(text);
  assert.ok(isObject(body));
  return { bytes: Buffer.from(text), body };
}

test('D13 bodies in which a key stands twice are edited as well', (context) => {
  check(context, cases, ({ text, edits }) => {
    const twice = `{"twin":{"k":1,"k":2}${text === '{}' ? '' : ','}${text.slice(1)}`;
    const source = parseBody(Buffer.from(twice), noKeys);
    assert.equal(source.unambiguous, false);
    assert.deepEqual(tryParse(editJson(source, edits).toString()), expected(source.value, edits));
  });
});

test('D13 bytes outside of the edits stay: taken back, an edit leaves the body as it was', (context) => {
  check(context, cases, ({ text, edits }) => {
    const source = parseBody(Buffer.from(text), noKeys);
    const replaced = edits.filter(({ path, text: put, insert }) => {
      const there = placesIn(source.value).some(
        (place) => JSON.stringify(place) === JSON.stringify(path),
      );
      return there && put !== undefined && insert !== true && isThere(source.value, path);
    });
    const [edit] = replaced;
    if (edit === undefined) return;
    const mark = '"§mark§"';
    const marked = editJson(source, [{ ...edit, text: mark }]).toString();
    const [head = '', tail = '', ...more] = marked.split(mark);
    assert.deepEqual(more, []);
    assert.ok(text.startsWith(head) && text.endsWith(tail));
    const inside = text.slice(head.length, text.length - tail.length);
    assert.deepEqual(tryParse(inside), valueAt(source.value, edit.path));
    assert.equal(inside, inside.trim());
  });
});

function isThere(body: JsonObject, path: Path): boolean {
  return valueAt(body, path) !== undefined;
}

function valueAt(value: Json | undefined, path: Path): Json | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (Array.isArray(value)) return valueAt((value as readonly Json[])[Number(step)], rest);
  if (!isObject(value) || !Object.hasOwn(value, step)) return undefined;
  return valueAt(value[step], rest);
}

test('D13 pieces make no difference', (context) => {
  check(context, fc.tuple(cases, fc.nat({ max: 50 })), ([{ text, edits }, cut]) => {
    const bytes = Buffer.from(text);
    const source = parseBody(bytes, noKeys);
    const pieces = new Pieces([bytes.subarray(0, cut), bytes.subarray(cut)]);
    const { value, spans, bodyStart, unambiguous } = source;
    const edited = editJson({ pieces, value, spans, bodyStart, unambiguous }, edits);
    assert.equal(edited.toString(), editJson(source, edits).toString());
  });
});
