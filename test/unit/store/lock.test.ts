import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { once } from 'node:events';
import { it } from 'node:test';
import { lockDataDir } from '../../../src/store/data-dir.ts';
import { temporaryFolder } from '../../support/folders.ts';

const folder = temporaryFolder('lock');

const holder = `
const { lockDataDir } = await import(process.argv[1]);
lockDataDir(process.argv[2]);
globalThis.gc();
process.stdout.write('held');
setInterval(() => {}, 1000);`;

it('F87 refuses a second gateway on one data directory and names the first', async (t) => {
  const dir = join(folder, 'a');
  const entry = new URL('../../../src/store/data-dir.ts', import.meta.url).href;
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--input-type=module', '-e', holder, entry, dir],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  assert.throws(
    () => lockDataDir(dir),
    (error: Error) => {
      assert.ok(error.message.includes(`pid ${child.pid}`), error.message);
      assert.ok(error.message.includes(dir));
      return 'kind' in error && error.kind === 'in_use';
    },
  );
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
  assert.ok(existsSync(join(dir, 'gateway.pid')));
  lockDataDir(dir).release();
});

it('F87 holds within one process, until it is released', () => {
  const dir = join(folder, 'b');
  const lock = lockDataDir(dir);
  assert.equal(statSync(dir).mode & 0o777, 0o700);
  assert.equal(statSync(join(dir, 'gateway.lock')).mode & 0o777, 0o600);
  assert.throws(() => lockDataDir(dir), /Another gateway/);
  lock.release();
  lock.release();
  const again = lockDataDir(dir);
  assert.throws(() => lockDataDir(dir), /Another gateway/);
  again.release();
});
