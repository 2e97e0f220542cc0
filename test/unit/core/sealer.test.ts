import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSealer } from '../../../src/core/secret.ts';

const sealer = createSealer(new Uint8Array(32).fill(1));
const record = { v: 1, by: 'deepseek', text: '你好🦀' };

describe('§5.4 sealed records', () => {
  test('open as they were sealed, and are the same text each time', () => {
    const sealed = sealer.seal(record);
    assert.deepEqual(sealer.open(sealed), record);
    assert.equal(sealer.seal(record), sealed);
    assert.match(sealed, /^gw1\.[\w-]+\.[\w-]{22}$/);
    assert.deepEqual(createSealer(new Uint8Array(32).fill(1)).open(sealed), record);
  });

  test('no changed character is taken, nor another key, nor a digest for a seal', () => {
    const sealed = sealer.seal(record);
    for (let i = 0; i < sealed.length; i++) {
      const other = sealed[i] === 'A' ? 'Q' : 'A';
      const changed = sealed.slice(0, i) + other + sealed.slice(i + 1);
      const opened = sealer.open(changed);
      // The last character of a base64url text holds bits that mean nothing.
      if (i < sealed.length - 1) assert.equal(opened, undefined, changed);
    }
    assert.equal(createSealer(new Uint8Array(32).fill(2)).open(sealed), undefined);
    const payload = Buffer.from('{}').toString('base64url');
    assert.equal(sealer.open(`gw1.${payload}.${sealer.digest(payload)}`), undefined);
    for (const text of ['', 'gw1.', 'gw1..', 'gw1.a', 'gw2.a.b', `gw1.${payload}`]) {
      assert.equal(sealer.open(text), undefined, text);
    }
  });
});
