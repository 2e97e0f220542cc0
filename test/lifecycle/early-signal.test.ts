/** G15: who edits the config and says so while the gateway still starts ends nothing. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../support/postgres-store.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

test('G15 a SIGHUP during the start is a reload behind it', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gw-early-'));
  // A book that says nothing: the start has begun when it is asked, and is not over.
  const book = createServer();
  book.listen(0, '127.0.0.1');
  await once(book, 'listening');
  const { port } = book.address() as AddressInfo;
  const config = join(folder, 'gateway.yaml');
  const text = `storage: postgres://u:p@127.0.0.1:${port}/d\ndrain: { wait: 0s }\n`;
  writeFileSync(config, text, { mode: 0o600 });
  const listen = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  const options = ['--config', config, '--data-dir', join(folder, 'data'), ...listen];
  const args = ['--disable-warning=ExperimentalWarning', main, 'start', ...options];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close');
  let printed = '';
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => (printed += more));
  child.stderr.setEncoding('utf8').on('data', (more: string) => (log += more));
  try {
    await once(book, 'connection');
    assert.equal(printed, '', 'it has not started yet');
    child.kill('SIGHUP');
    await until(() => log.includes('config applied') || child.signalCode !== null, 'it reloads');
    assert.equal(child.signalCode, null, log);
    assert.match(printed, /^listening http/);
  } finally {
    child.kill('SIGKILL');
    await ended;
    book.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
