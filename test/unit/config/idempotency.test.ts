import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scene } from './scene.ts';

const mebibyte = 1024 ** 2;

test('E17 what is kept by Idempotency-Key, and where each of it stands', async () => {
  const usual = { keepMs: 86_400_000, answerBytes: mebibyte, keyBytes: 16 * mebibyte };
  const plain = await scene().load();
  assert.deepEqual(plain.idempotency, { ...usual, totalBytes: 256 * mebibyte });
  const lines = plain.origins.filter(({ path }) => path.startsWith('idempotency'));
  assert.deepEqual(
    lines.map(({ path, value, origin }) => `${path} ${value} ${origin}`),
    [
      'idempotency.keep 24h default',
      'idempotency.answer 1MiB default',
      'idempotency.key 16MiB default',
      'idempotency.total 256MiB default',
    ],
  );
  const memory = await scene('storage: memory\n').load();
  assert.deepEqual(memory.idempotency, { ...usual, totalBytes: 64 * mebibyte });
  const text =
    'storage: memory\nidempotency: { keep: 90m, answer: 2KiB, key: 2MiB, total: 1GiB }\n';
  const { idempotency, origins } = await scene(text).load();
  assert.deepEqual(idempotency, {
    keepMs: 5_400_000,
    answerBytes: 2048,
    keyBytes: 2 * mebibyte,
    totalBytes: 1024 * mebibyte,
  });
  const kept = origins.find(({ path }) => path === 'idempotency.keep');
  assert.equal(kept?.origin, 'gateway.yaml:2');
});

test('N3 what cannot be kept so is reported with its line', async () => {
  for (const [text, message] of [
    ['keep: 30s', /gateway\.yaml:1.*idempotency\.keep.*must be 60000ms to 24h/s],
    ['keep: 48h', /must be 60000ms to 24h/],
    ['answer: 100', /idempotency\.answer.*must be 1KiB to 16MiB/s],
    ['key: 1KiB', /must be 1MiB to 1TiB/],
    ['answer: 2MiB, key: 1MiB', /gateway\.yaml:1.*must not be more than idempotency\.key/s],
    ['answer: 2MiB, total: 1MiB', /must not be more than idempotency\.total/],
    ['total: much', /is not a size \(256MiB, 10GiB, bytes\)/],
    ['store: redis', /idempotency/],
  ] as const) {
    await assert.rejects(scene(`idempotency: { ${text} }\n`).load(), message, text);
  }
});
