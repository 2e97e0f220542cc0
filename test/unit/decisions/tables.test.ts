/** Issue 3: one table decides every field of both APIs. That it is complete is a matter of types. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { typeComplaints, typesHead } from '../../support/schemas.ts';
import { translationText } from '../../decisions/document.ts';
import { answerTables, requestTables, rowId } from '../../decisions/rows.ts';

const root = join(import.meta.dirname, '../../..');

test('docs/user/translation.md is fresh (node scripts/write-translation.mjs writes it)', () => {
  assert.equal(readFileSync(join(root, 'docs/user/translation.md'), 'utf8'), translationText());
});

test('issue 3: no row stands twice', () => {
  for (const table of [...Object.values(requestTables), ...answerTables]) {
    const ids = table.rows.map(rowId);
    const twice = ids.filter((id, i) => ids.indexOf(id) !== i);
    assert.deepEqual(twice, [], JSON.stringify({ ...table, rows: [] }));
  }
});

test('issue 21: each line of a column decides a row', () => {
  for (const { client, idle } of Object.values(requestTables)) assert.deepEqual(idle, [], client);
  for (const { from, client, what, idle } of answerTables) {
    assert.deepEqual(idle, [], `${from} to ${client}, ${what}`);
  }
});

const decision = JSON.stringify(join(root, 'test/decisions/decision.ts'));
const a = 'a: { ...exact(""), in: { x: exact("") } }';

/** Tables for small types, and whether they are complete and nothing more. */
const fixtures: readonly (readonly [type: string, table: string, fits: boolean])[] = [
  ['Inner', '{ one: exact(""), two: ignore() }', true],
  ['Inner', '{ one: exact("") }', false],
  ['Inner', '{ one: exact(""), two: ignore(), three: ignore() }', false],
  ['List', '{ list: { ...exact(""), in: { one: exact(""), two: ignore() } } }', true],
  ['List', '{ list: { ...exact(""), in: { one: exact("") } } }', false],
  ['List', '{ list: exact("") }', false],
  ['List', '{ list: reject() }', true],
  ['Kinds', `{ either: { ...exact(""), one: { ${a}, b: reject() } } }`, true],
  ['Kinds', `{ either: { ...exact(""), one: { ${a} } } }`, false],
];

test('issue 3: a field or kind that an SDK knows and a table does not is a type error', () => {
  const head = `import { exact, ignore, reject, type Fields } from ${decision};
type Inner = { readonly one: string; readonly two?: number | null };
type List = { list: Inner[] };
type Kinds = { either: { type: 'a'; x: 1 } | { type: 'b'; y: 2 } };
`;
  const lines = fixtures.map(
    ([type, table], i) => `export const t${i} = ${table} satisfies Fields<${type}>;\n`,
  );
  const complaints = typeComplaints([], head + lines.join(''));
  const first = typesHead.split('\n').length + head.split('\n').length - 1;
  for (const [i, [type, table, fits]] of fixtures.entries()) {
    const own = complaints.filter((text) => text.includes(`values.ts(${first + i},`)).join(' ');
    assert.equal(own === '', fits, `${type} ${table}: ${own}`);
  }
});
