import assert from 'node:assert/strict';
import { it } from 'node:test';
import { presentedKey } from '../../../src/access/keys/key-format.ts';

const rows: readonly (readonly [string, string | undefined, string | undefined, string])[] = [
  ['nothing', undefined, undefined, ''],
  ['a bearer', 'Bearer k1', undefined, 'k1'],
  ['the scheme in any case', 'bEARER k1', undefined, 'k1'],
  ['spaces around', '  Bearer   k1  ', undefined, 'k1'],
  ['x-api-key', undefined, 'k1', 'k1'],
  ['both, equal', 'Bearer k1', 'k1', 'k1'],
  ['both, different', 'Bearer k1', 'k2', ''],
  ['an empty x-api-key beside a bearer', 'Bearer k1', '', 'k1'],
  ['an empty bearer beside an x-api-key', 'Bearer ', 'k1', 'k1'],
  ['an empty authorization', '', 'k1', 'k1'],
  ['both empty', 'Bearer', '', ''],
  ['another scheme', 'Basic dTpw', undefined, ''],
  ['another scheme beside an x-api-key', 'Basic dTpw', 'k1', ''],
  ['no scheme', 'k1', undefined, ''],
  ['a longer scheme', 'Bearerx k1', undefined, ''],
];

for (const [name, authorization, xApiKey, expected] of rows) {
  it(`B16 ${name}`, () => assert.equal(presentedKey(authorization, xApiKey), expected));
}
