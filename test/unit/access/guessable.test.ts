/** secrets that are tried first are refused, and random ones of 16 characters or more are not even warned of. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  estimatedBits,
  goodBits,
  minBits,
  requireNotGuessable,
} from '../../../src/access/keys/key-format.ts';
import { adminToken, clientKey } from '../../support/keys.ts';

const weak = [
  'aaaaaaaaaaaaaaaa',
  '0000000000000001',
  '1234567890123456',
  '9876543210987654',
  'abcdefghijklmnop',
  'abcabcabcabcabcabc',
  'passwordpassword',
  'Password12345678',
  'adminadminadmin1',
  'changemechangeme',
  'changeme-changeme',
  'letmein-letmein-1',
  'secret-secret-secret',
  'qwertyuiopasdfgh',
  'admin-token-admin-token',
  'rootrootrootroot',
];
for (const secret of weak) {
  test(`X-9 ${secret} is refused, with what to do instead and without itself`, () => {
    assert.ok(estimatedBits(secret) < minBits, String(estimatedBits(secret)));
    assert.throws(
      () => requireNotGuessable('MODEL_GATEWAY_ADMIN_TOKEN', secret),
      (error: Error) =>
        error.message.startsWith('MODEL_GATEWAY_ADMIN_TOKEN is easy to guess') &&
        error.message.includes('openssl rand -base64 32') &&
        !error.message.includes(secret),
    );
  });
}

/** The same each time. */
function bytesOf(seed: number): Buffer {
  return createHash('sha256').update(`seed ${seed}`).digest();
}

const kinds: readonly (readonly [string, (bytes: Buffer) => string])[] = [
  ['hex', (bytes) => bytes.toString('hex').slice(0, 32)],
  ['base64', (bytes) => bytes.toString('base64').slice(0, 16)],
  ['base64url', (bytes) => bytes.toString('base64url')],
];
for (const [name, form] of kinds) {
  test(`X-9 random secrets are good: ${name}`, () => {
    for (let seed = 0; seed < 5000; seed++) {
      const secret = form(bytesOf(seed));
      assert.ok(estimatedBits(secret) >= goodBits, secret);
    }
  });
}

test('X-9 sixteen random digits are taken', () => {
  for (let seed = 0; seed < 5000; seed++) {
    const digits = [...bytesOf(seed).subarray(0, 16)].map((byte) => byte % 10).join('');
    assert.doesNotThrow(() => requireNotGuessable('X', digits), digits);
  }
});

test('X-9 phrases that people make up are taken', () => {
  for (const secret of [
    'correct-horse-battery-staple',
    'the-admin-token-0123',
    adminToken,
    clientKey,
  ]) {
    assert.doesNotThrow(() => requireNotGuessable('X', secret), secret);
  }
});
