/** The price table that a call goes by. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PriceHistory } from '../../../src/access/price-history.ts';
import { PriceTable } from '../../../src/access/prices.ts';
import type { Price } from '../../../src/core/money.ts';

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function tableOf(source: string): PriceTable {
  const otherwise: Price = { rates: { input: 1, output: 1 }, tiers: [], source };
  const list = { find: () => undefined, load: () => Promise.resolve() };
  return new PriceTable({
    settings: { models: [], otherwise },
    list,
    origin: () => undefined,
    log: quiet,
  });
}

test('F6 a call goes by the prices that held when it began; of too many changes, by the oldest that are kept', () => {
  let now = 100;
  const history = new PriceHistory(tableOf('0'), { now: () => now });
  const at = (startedAt: number) => history.at(startedAt).otherwise?.source;
  assert.equal(at(5), '0');
  for (const number of [1, 2, 3]) {
    now += 100;
    history.replace(tableOf(String(number)));
  }
  assert.deepEqual([150, 200, 299, 300, 400, 1000].map(at), ['0', '1', '1', '2', '3', '3']);
  assert.equal(history.current.otherwise?.source, '3');
  for (let number = 4; number < 40; number++) {
    now += 100;
    history.replace(tableOf(String(number)));
  }
  assert.deepEqual([at(150), at(now - 1), at(now)], ['23', '38', '39']);
});
