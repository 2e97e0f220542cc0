import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayLoseDigits, tryParse } from '../../../src/json/parse.ts';

const long = '12345678901234567890';

test('B10 an integer beyond 2^53 is found wherever JSON may hold one, and keeps its digits', () => {
  for (const number of [long, `-${long}`]) {
    for (const text of [
      number,
      ` ${number}`,
      `[${number}]`,
      `[0,${number}]`,
      `[0,\n${number}]`,
      `{"a":${number}}`,
      `{"a":\t${number} }`,
      `{"text":"${long}","a": ${number}}`,
    ]) {
      assert.equal(mayLoseDigits(text), true, text);
      assert.equal(JSON.stringify(tryParse(text)), text.replace(/\s/g, ''));
    }
  }
});

test('G1 digits in a text are no number: events with ids are parsed as quickly as others', () => {
  for (const text of [`{"id":"${long}"}`, `{"text":"call_${long} @${long}"}`, `{"${long}":1}`]) {
    assert.equal(mayLoseDigits(text), false, text);
    assert.equal(JSON.stringify(tryParse(text)), text);
  }
  assert.equal(mayLoseDigits('{"created":1767225600,"x":123456789012345}'), false);
});
