/** A start that fails says why and ends: nothing it opened keeps the process alive. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test, type TestContext } from 'node:test';

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

function run(
  t: TestContext,
  args: readonly string[],
  {
    key = 'Zk3pQ9tR7uV5wX1yB',
    env = {},
  }: { readonly key?: string; readonly env?: NodeJS.ProcessEnv },
) {
  const folder = mkdtempSync(join(tmpdir(), 'failed-start-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return spawnSync(process.execPath, [main, ...args], {
    cwd: folder,
    env: { MODEL_GATEWAY_KEY: key, MODEL_GATEWAY_ADMIN_LISTEN: '127.0.0.1:0', ...env },
    encoding: 'utf8',
    timeout: 500_000,
  });
}

for (const args of [
  ['start', '--listen', '127.0.0.1:0'],
  ['keys', 'list'],
]) {
  test(`${args.join(' ')} with a key that is too short`, (t) => {
    const { status, stderr } = run(t, args, { key: 'short' });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /MODEL_GATEWAY_KEY must have at least 16 characters/);
  });
}

test('X-9 start with a key that is tried first', (t) => {
  const { status, stderr } = run(t, ['start', '--listen', '127.0.0.1:0'], {
    key: 'changemechangeme',
  });
  assert.equal(status, 1, stderr);
  assert.match(stderr, /MODEL_GATEWAY_KEY is easy to guess: .*openssl rand -base64 32/);
});

test('start on a port that is taken', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  t.after(() => taken.close());
  const address = taken.address();
  assert.ok(address !== null && typeof address === 'object');
  const { status, stderr } = run(t, ['start', '--listen', `127.0.0.1:${address.port}`], {});
  assert.equal(status, 1, stderr);
  assert.match(stderr, /EADDRINUSE|in use/);
});

for (const args of [
  ['start', '--listen', '127.0.0.1:0'],
  ['pull', 'https://127.0.0.1:9/model.gguf'],
]) {
  test(`S19 ${args[0]} where certificates would not be verified`, (t) => {
    const { status, stderr } = run(t, args, { env: { NODE_TLS_REJECT_UNAUTHORIZED: '0' } });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /NODE_TLS_REJECT_UNAUTHORIZED: .* unset it and name your authority/);
  });
}
