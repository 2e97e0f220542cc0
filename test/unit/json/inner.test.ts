import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  innerTokens,
  maxInnerTokens,
  tryParseInner,
  tryParseInnerObject,
} from '../../../src/json/parse.ts';
import { truncatedInput } from '../../../src/dialects/shared/request/tools.ts';
import { assertLinear } from '../../support/linear.ts';

const nested = (depth: number): string => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`;

test('B36 JSON inside of a string is as deep as a body may be, and no deeper', () => {
  assert.notEqual(tryParseInner(nested(127)), undefined);
  assert.equal(innerTokens(nested(128)), Infinity);
  assert.equal(tryParseInner(nested(128)), undefined);
  assert.equal(innerTokens(`{"a":${'['.repeat(1_000_000)}`), Infinity);
});

test('G11 B38 it has so many values, and what is in its strings is none', () => {
  const values = (count: number): string => `[${'1,'.repeat(count - 1)}1]`;
  assert.equal(innerTokens(values(1000)), 1000);
  assert.notEqual(tryParseInner(values(maxInnerTokens)), undefined);
  assert.equal(tryParseInner(values(maxInnerTokens + 1)), undefined);
  const inString = JSON.stringify({ file: '[{":,'.repeat(200_000) });
  assert.equal(innerTokens(inString), 2);
  assert.notEqual(tryParseInnerObject(inString), undefined);
});

test('B40 a number of a megabyte of digits is not parsed', () => {
  assert.equal(tryParseInner(`[${'1'.repeat(1_000_000)}]`), undefined);
  assert.notEqual(tryParseInner(`[${'1'.repeat(1024)}]`), undefined);
});

test('S22 arguments that were cut off are looked through once, however deep they are', () => {
  assertLinear((size) => truncatedInput(`{"a":${'['.repeat(size)}${'[],'.repeat(size)}`));
  assertLinear((size) => innerTokens(`{"a":"${'\\"'.repeat(size)}`));
});
