/** What an upstream may make the gateway parse (G11). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isBoundedAnswer,
  maxAnswerTokens,
  tryParseAnswerEvent,
  tryParseExactEvent,
} from '../../../src/json/parse.ts';

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const bounded = (text: string): boolean => isBoundedAnswer(Buffer.from(text));

test('G11 a document may be as deep as a request, and no deeper', () => {
  const padding = ' '.repeat(2000);
  assert.equal(bounded(`${nested(128)}${padding}`), true);
  assert.equal(bounded(`${nested(129)}${padding}`), false);
  assert.equal(bounded(`"${'['.repeat(5000)}"`), true, 'in a text it is text');
  assert.equal(bounded(`"\\"${'['.repeat(5000)}"`), true, 'behind an escaped quote, too');
  assert.equal(bounded(`"\\\\"${'['.repeat(5000)}`), false, 'and not behind an escaped backslash');
});

test('G11 a document has a million values at most, and no number of a thousand digits', () => {
  assert.equal(bounded(`[${'0,'.repeat(maxAnswerTokens - 1)}0]`), true);
  assert.equal(bounded(`[${'0,'.repeat(maxAnswerTokens)}0]`), false);
  assert.equal(bounded(`{"a":"${'0,'.repeat(maxAnswerTokens)}"}`), true);
  assert.equal(bounded(`[${'9'.repeat(1024)}]`), true);
  assert.equal(bounded(`[${'9'.repeat(1025)}]`), false);
});

test('G11 an event of a stream has the bounds of arguments', () => {
  for (const parse of [tryParseAnswerEvent, tryParseExactEvent]) {
    assert.deepEqual(parse('{"a":[[1]]}'), { a: [[1]] });
    assert.equal(parse(`{"a":${nested(600)}}`), undefined);
    assert.equal(parse(`{"a":[${'0,'.repeat(100_000)}0]}`), undefined);
    const text = 'x'.repeat(2_000_000);
    assert.deepEqual(parse(JSON.stringify({ text })), { text });
  }
});
