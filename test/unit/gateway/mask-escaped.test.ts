/** S14: a credential that an upstream quotes in an escaped form is the same credential. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { maskValues } from '../../../src/gateway/mask-credentials.ts';

const key = 'Zk3/pQ9+tR7=uV5"wX1yB';
const inJson = JSON.stringify(key).slice(1, -1);

for (const [form, written] of Object.entries({
  'as it is': key,
  'in a JSON text': inJson,
  'in a JSON text with escaped slashes': inJson.replaceAll('/', String.raw`\/`),
  'in a URL': encodeURIComponent(key),
})) {
  test(`S14 a credential is masked ${form}`, () => {
    const shown = maskValues(`no such key: ${written}!`, ['authorization', `Bearer ${key}`]);
    assert.equal(shown, 'no such key: [redacted]!');
  });
}
