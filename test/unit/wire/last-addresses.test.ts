/** F3: names keep their last good address while name servers fail. */
import assert from 'node:assert/strict';
import type { LookupFunction } from 'node:net';
import { test } from 'node:test';
import { withLastAddresses } from '../../../src/wire/connect.ts';

let now = 0;
let answer: string | NodeJS.ErrnoException;
const lookup: LookupFunction = (_hostname, _options, callback) => {
  if (typeof answer === 'string') callback(null, [{ address: answer, family: 4 }]);
  else callback(answer, '', 0);
};
const failing = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });

function asked(remembering: LookupFunction, hostname: string): Promise<unknown> {
  return new Promise((resolve) => {
    remembering(hostname, { all: true }, (error, found) => resolve(error?.code ?? found));
  });
}

test('F3 a failing name server changes nothing for five minutes, a name that is gone is gone', async () => {
  const remembering = withLastAddresses(lookup, () => now);
  answer = failing('EAI_AGAIN');
  assert.equal(await asked(remembering, 'a.example'), 'EAI_AGAIN', 'nothing is known yet');
  answer = '192.0.2.1';
  const found = await asked(remembering, 'a.example');
  assert.deepEqual(found, [{ address: '192.0.2.1', family: 4 }]);
  answer = failing('EAI_AGAIN');
  now += 5 * 60_000;
  assert.deepEqual(await asked(remembering, 'a.example'), found);
  assert.equal(await asked(remembering, 'b.example'), 'EAI_AGAIN');
  now += 1;
  assert.equal(await asked(remembering, 'a.example'), 'EAI_AGAIN');
  answer = '192.0.2.2';
  await asked(remembering, 'a.example');
  answer = failing('ENOTFOUND');
  assert.equal(await asked(remembering, 'a.example'), 'ENOTFOUND');
});
