/** The gateway's own regular expressions (S22): texts come from clients, upstreams and model files. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { nestsRepetitions, patternsOf } from '../../support/patterns.ts';

const src = join(import.meta.dirname, '..', '..', '..', 'src');
const files = globSync('**/*.ts', { cwd: src })
  .map((name) => name.replaceAll('\\', '/'))
  .sort();
const textOf = (name: string): string => readFileSync(join(src, name), 'utf8');

/** Each round begins with a character that the inner repetition cannot take: there is one way to cut a text. */
const oneWayOnly: ReadonlySet<string> = new Set([
  String.raw`^data:([^;,]*)((?:;[^;,]*)*),`,
  String.raw`(?:^|[\n"'${'`'}:]\s{0,3})([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*):`,
  String.raw`\b([a-z]+(?:_[a-z]+)+)\b`,
  String.raw`(?:^|[-._/])((?:UD-)?(?:I?Q\d+_[A-Z0-9]+(?:_[A-Z0-9]+)*|BF16|F16|F32|MXFP4|TQ[12]_0))(?:[-.]|$)`,
]);

/** Where patterns are put together, and of what; never of a client's or an upstream's text. */
const composed: { readonly [file: string]: string } = {
  'config/options.ts': 'constants that the published schema shares',
  'dialects/shared/refusals.ts': 'constant phrases, and efforts of the list of all efforts',
  'engine/prompt.ts': "a model's control markers, escaped",
  'engine/request.ts': 'a name of word characters only',
  'json/parse.ts': 'a constant number of digits',
  'tokens/tokenizer-worker.ts': 'a constant length',
};

test('S22: patterns are found in all places where a slash may stand', () => {
  const text = [
    'const a = 1 / 2; // no /comment/',
    'const b = \'no /text/\' + "/either/"; /* nor /here/ */',
    'const c = /one/u.test(x) && [/t[/]wo/, x / y / z];',
    'const d = `/no/ ${ x.replace(/three\\//g, `${ {} }`) } /no/` + (x) / 2 / 1;',
    'return /four`/;',
  ].join('\n');
  const found = patternsOf(text).map(({ source, flags, line }) => `${line} ${source} ${flags}`);
  assert.deepEqual(found, ['3 one u', '3 t[/]wo ', '4 three\\/ g', '5 four` ']);
});

test('S22: a repetition in a repetition is told from what only looks like one', () => {
  const nested = ['(a+)+', '(?:a*b?)*', '^(\\d+,?)+$', '((a{2,})b)*', '(?<x>a+){11}', '(([a+]*))+'];
  for (const source of nested) assert.equal(nestsRepetitions(source), true, source);
  const plain = [
    '(a+)?b*',
    '[(a+)]+',
    '(?:ab)+c+',
    '\\(a+\\)+',
    '(a?b)*',
    '(a+){2,5}',
    '(a{1,9})*',
  ];
  for (const source of plain) assert.equal(nestsRepetitions(source), false, source);
});

test('S22: no pattern repeats a repetition', () => {
  let seen = 0;
  for (const file of files) {
    for (const { source, flags, line } of patternsOf(textOf(file))) {
      seen += 1;
      assert.doesNotThrow(() => new RegExp(source, flags), `${file}:${line}`);
      if (oneWayOnly.has(source)) continue;
      assert.equal(nestsRepetitions(source), false, `src/${file}:${line} /${source}/`);
    }
  }
  assert.ok(seen > 200, `only ${seen} patterns found`);
});

test('S22: patterns are put together in known places only', () => {
  const found = files.filter((file) => /\bRegExp\(/.test(textOf(file)));
  assert.deepEqual(found, Object.keys(composed));
});
