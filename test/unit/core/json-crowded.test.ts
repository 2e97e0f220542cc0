/** Bodies of many values: what they leave behind while they are made must not add up (G5). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/core/errors.ts';
import { maxBytesAtOnce, maxTokensAtOnce } from '../../../src/core/json-bytes.ts';
import { parseClientBody } from '../../../src/core/json.ts';

const count = 30_000;
const short = Buffer.from(`{"x":[${'{},'.repeat(count)}{}]}`);
const long = Buffer.from(`{"x":[${`{}${' '.repeat(40)},`.repeat(count)}{}]}`);
const noKeys: ReadonlySet<string> = new Set();

for (const [name, body] of [
  ['of less than a megabyte', short],
  ['of more', long],
] as const) {
  test(`G5 bodies of many values, ${name}, are made one after the other`, async () => {
    assert.equal(body.length > maxBytesAtOnce, body === long);
    const asked: string[] = [];
    const make = (who: string) =>
      parseClientBody(body, noKeys, (tokens) => {
        if (tokens > maxTokensAtOnce) asked.push(who);
      });
    const sources = await Promise.all(['a', 'b', 'c'].map(make));
    for (const { tokens } of sources) assert.equal(tokens, 2 * count + 4);
    const turns = asked.filter((who, i) => who !== asked[i - 1]);
    assert.deepEqual(turns, ['a', 'b', 'c']);
    assert.ok(asked.length > turns.length, 'each asks more than once');
  });

  test(`G5 the next one of many values, ${name}, has its turn where one is refused`, async () => {
    const refusal = new GatewayError('overloaded', 'no room');
    const refused = async () =>
      parseClientBody(body, noKeys, (tokens) => {
        if (tokens > maxTokensAtOnce) throw refusal;
      });
    const [first, second] = await Promise.allSettled([refused(), parseClientBody(body, noKeys)]);
    assert.deepEqual(first, { status: 'rejected', reason: refusal });
    assert.equal(second.status, 'fulfilled');
  });
}
