import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { it } from 'node:test';
import * as fc from 'fast-check';
import { makeKey, makeToken, readKey } from '../../../src/access/keys/key-format.ts';
import { anyCharacter } from '../../support/any-character.ts';

const form = /^gw_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}[0-9A-Za-z]{6}$/;

it('S1 a key has its form, holds its id, and reads back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 64, maxLength: 64 }), (bytes) => {
      let asked = 0;
      // The id wants few bytes, some of which it may throw away; the secret wants 32.
      const { id, key } = makeKey((count) => {
        asked += 1;
        return asked > 3 ? randomBytes(count) : bytes.subarray(0, count);
      });
      assert.match(key.reveal(), form);
      assert.deepEqual(readKey(key.reveal()), { id });
      assert.ok(!inspect(key).includes(key.reveal()));
    }),
    { numRuns: 200 },
  );
});

it('S1 the extremes of the random bits fit', () => {
  for (const byte of [0, 1, 247]) {
    const { id, key } = makeKey((count) => new Uint8Array(count).fill(byte));
    assert.deepEqual(readKey(key.reveal()), { id });
  }
});

it('S1 any single changed character is refused without a look-up', () => {
  const text = makeKey(randomBytes).key.reveal();
  for (let i = 0; i < text.length; i++) {
    for (const other of ['0', 'Z', '_', ' ', 'é']) {
      if (text[i] === other) continue;
      assert.equal(readKey(text.slice(0, i) + other + text.slice(i + 1)), undefined);
    }
  }
});

it('B72 junk is no key', () => {
  const text = makeKey(randomBytes).key.reveal();
  const junk = [
    '',
    'gw_',
    `' OR 1=1--`,
    'a'.repeat(10_240),
    `${text} `,
    ` ${text}`,
    text.slice(0, -1),
    `${text}0`,
    text.replace('gw_', 'GW_'),
    `${text.slice(0, 20)}\0${text.slice(21)}`,
    'sk-ant-api03-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst',
    'ключ'.repeat(15),
  ];
  for (const item of junk) assert.equal(readKey(item), undefined, JSON.stringify(item));
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 80 }), (item) => {
      assert.equal(readKey(item), undefined);
    }),
    { numRuns: 300 },
  );
});

it('S9 an admin token is no key', () => {
  const token = makeToken('gwadmin', randomBytes).reveal();
  assert.match(token, /^gwadmin_[0-9A-Za-z]{49}$/);
  assert.equal(readKey(token), undefined);
});
