/** Signals that come while the gateway still starts: an edit of the config (G15), and a stop (G14). */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { temporaryFolder } from '../support/folders.ts';
import { until } from '../support/postgres-store.ts';
import { programArguments } from '../support/program.ts';

interface Starting {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown[]>;
  printed(): string;
  log(): string;
}

/** A gateway whose book says nothing: its start has begun when it is asked, and is not over. */
async function starting(t: TestContext, config = ''): Promise<Starting> {
  const folder = temporaryFolder('early');
  const book = createServer();
  book.listen(0, '127.0.0.1');
  await once(book, 'listening');
  const { port } = book.address() as AddressInfo;
  const file = join(folder, 'gateway.yaml');
  const text = `storage: postgres://u:p@127.0.0.1:${port}/d\ndrain: { wait: 0s }\n${config}`;
  writeFileSync(file, text, { mode: 0o600 });
  const listen = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'];
  const options = ['--config', file, '--data-dir', join(folder, 'data'), ...listen];
  const args = programArguments(['start', ...options]);
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close');
  let printed = '';
  let log = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => (printed += more));
  child.stderr.setEncoding('utf8').on('data', (more: string) => (log += more));
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
    book.close();
  });
  await once(book, 'connection');
  assert.equal(printed, '', 'it has not started yet');
  return { child, ended, printed: () => printed, log: () => log };
}

const timeout = 500_000;

test('G15 a SIGHUP during the start is a reload behind it', { timeout }, async (t) => {
  const { child, printed, log } = await starting(t);
  child.kill('SIGHUP');
  const isDone = (): boolean => log().includes('config_applied') && printed() !== '';
  await until(() => isDone() || child.signalCode !== null, 'it reloads');
  assert.equal(child.signalCode, null, log());
  assert.match(printed(), /^listening http/);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(
    `G14 ${signal} during the start stops behind it, with exit code 0`,
    { timeout },
    async (t) => {
      const { child, ended, printed, log } = await starting(t);
      child.kill(signal);
      assert.deepEqual(await ended, [0, null], log());
      assert.match(printed(), /^listening http/);
    },
  );
}

test('G14 a second signal during the start ends it at once', { timeout }, async (t) => {
  const { child, ended, printed } = await starting(t);
  child.kill('SIGINT');
  // The first one has been heard: the system keeps one of a kind only.
  child.kill('SIGTERM');
  const [code, signal] = await ended;
  assert.equal(code, null);
  assert.ok(signal === 'SIGTERM' || signal === 'SIGINT', String(signal));
  assert.equal(printed(), '');
});
