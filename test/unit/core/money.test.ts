import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  decimalText,
  dollarsNumber,
  dollarsText,
  isBelowUnit,
  parseDollars,
  ratePerMillion,
  scaledDecimal,
} from '../../../src/core/money.ts';
import { check } from '../../support/checking.ts';

const amounts: readonly (readonly [string, number | undefined])[] = [
  ['1', 1_000_000_000],
  ['1.50', 1_500_000_000],
  ['$1.50', 1_500_000_000],
  [' 0.1 ', 100_000_000],
  ['0.000000001', 1],
  ['0', 0],
  ['007', 7_000_000_000],
  ['0.3', 300_000_000],
  ['9007199.254740991', Number.MAX_SAFE_INTEGER],
  // Beyond what an integer holds, finer than a nanodollar, or no amount at all.
  ['9007199.254740992', undefined],
  ['0.0000000001', undefined],
  ['', undefined],
  ['.5', undefined],
  ['5.', undefined],
  ['-1', undefined],
  ['1e3', undefined],
  ['1,5', undefined],
  ['1_000', undefined],
  ['Infinity', undefined],
  ['0x10', undefined],
  ['1 000', undefined],
  ['€1', undefined],
];

for (const [text, nanodollars] of amounts) {
  test(`F6 ${JSON.stringify(text)} dollars are ${nanodollars} nanodollars`, () => {
    assert.equal(parseDollars(text), nanodollars);
  });
}

test('F6 what is less than one unit is seen, and nothing is not less', () => {
  for (const text of ['1e-10', '0.0000000009', '0.0000000001', '1e-300']) {
    assert.equal(isBelowUnit(text, 9), true, text);
  }
  for (const text of [
    '0',
    '0.0',
    '0.000000001',
    '1e-9',
    '0.0000000011',
    '5',
    'much',
    '-1e-10',
    '',
  ]) {
    assert.equal(isBelowUnit(text, 9), false, text);
  }
});

test('F6 an amount is written with the digits that count', () => {
  assert.equal(dollarsText(0), '0');
  assert.equal(dollarsText(1), '0.000000001');
  assert.equal(dollarsText(12_300), '0.0000123');
  assert.equal(dollarsText(1_500_000_000), '1.5');
  assert.equal(dollarsText(100_000_000_000), '100');
  assert.equal(dollarsText(-1), '-0.000000001');
  assert.equal(dollarsText(Number.MAX_SAFE_INTEGER), '9007199.254740991');
  assert.equal(ratePerMillion(75_000), '0.075');
  assert.equal(decimalText(12_000_000_000, 12), '0.012');
});

test('F6 dollars written and read again are the same nanodollars', (t) => {
  check(t, fc.nat(Number.MAX_SAFE_INTEGER), (nanodollars) => {
    assert.equal(parseDollars(dollarsText(nanodollars)), nanodollars);
  });
});

test('F6 a number of JSON shows the same digits as the text, up to four million dollars', (t) => {
  check(t, fc.nat(4e15), (nanodollars) => {
    const printed = JSON.stringify(dollarsNumber(nanodollars));
    assert.equal(scaledDecimal(printed, 9)?.units, nanodollars);
    assert.equal(Number(printed), Number(dollarsText(nanodollars)));
  });
});

test('F6 decimals become integers by their digits, not through floats', () => {
  assert.deepEqual(scaledDecimal('0.1', 6), { units: 100_000, exact: true });
  assert.deepEqual(scaledDecimal('1.005', 2), { units: 101, exact: false });
  assert.deepEqual(scaledDecimal('1.0049999999', 2), { units: 100, exact: false });
  assert.deepEqual(scaledDecimal('0.18000000000000002', 6), { units: 180_000, exact: false });
  assert.deepEqual(scaledDecimal('1e-7', 6), { units: 0, exact: false });
  assert.deepEqual(scaledDecimal('1e-7', 7), { units: 1, exact: true });
  assert.deepEqual(scaledDecimal('1e+3', 2), { units: 100_000, exact: true });
  assert.equal(scaledDecimal('9007199254740992', 0), undefined);
  assert.equal(scaledDecimal('1e400', 0), undefined);
  assert.equal(scaledDecimal('NaN', 6), undefined);
});

test('F6 any number with six decimals is exact as it was written', (t) => {
  check(t, fc.nat(1_000_000_000), (units) => {
    const written = Number(decimalText(units, 6));
    assert.deepEqual(scaledDecimal(String(written), 6), { units, exact: true });
  });
});
