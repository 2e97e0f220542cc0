/** CSV for spreadsheets: no text of a client runs as a formula (S12). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { csvRows } from '../../../src/core/display.ts';

/** Text of a field, and the field of the file. */
const fields: readonly (readonly [string, string])[] = [
  ['=1', `'=1`],
  ['＝1', `'＝1`],
  ['\t=1', `'\t'=1`],
  ['\n=1', `"'\n'=1"`],
  // Where fields end at semicolons or tabs, these begin a cell.
  ['a;=1', `a;'=1`],
  ['a;;@x', `a;;'@x`],
  ['a\t+1', `a\t'+1`],
  ['a;"=1', `"a;""'=1"`],
  ['a\r\n-1', `"a\r\n'-1"`],
  // A comma is inside of quotes for every spreadsheet that separates by commas.
  ['a,=1', '"a,=1"'],
  ['a; b - c = d', 'a; b - c = d'],
];

for (const [text, field] of fields) {
  test(`S12 the field of ${JSON.stringify(text)}`, () => {
    assert.equal(csvRows(['x'], [{ x: text }]), `${field}\r\n`);
  });
}
