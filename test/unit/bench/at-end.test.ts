/** A measurement that is ended leaves no server and no files behind. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/folders.ts';

const bench = join(import.meta.dirname, '../../../bench/admin-pages.ts');
const skip = process.platform === 'linux' ? false : 'reads /proc';

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGINT', 130],
] as const) {
  test(`G14 ${signal} ends what the bench of the admin pages started`, { skip }, async (t) => {
    const folder = temporaryFolder('bench');
    const args = ['--rows', '1000', '--keys', '10', '--rounds', '100'];
    const child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', bench, ...args],
      { env: { PATH: process.env['PATH'], TMPDIR: folder }, stdio: ['ignore', 'pipe', 'ignore'] },
    );
    const ended = once(child, 'exit');
    const childrenOf = (pid: number): readonly number[] =>
      readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
        .split(' ')
        .filter((text) => text !== '')
        .map(Number);
    const pid = child.pid ?? 0;
    t.after(() => child.kill('SIGKILL'));
    // The first list has been measured, many are to come.
    await once(child.stdout, 'data');
    const gateways = childrenOf(pid);
    assert.ok(gateways.length > 0);
    child.kill(signal);
    const [exitCode]: unknown[] = await ended;
    for (const gateway of gateways) {
      if (!isThere(gateway)) continue;
      process.kill(gateway, 'SIGKILL');
      assert.fail('a gateway was left behind');
    }
    assert.equal(exitCode, code);
    // Compiled modules are for later processes.
    const left = readdirSync(folder).filter((name) => name !== 'node-compile-cache');
    assert.deepEqual(left, []);
  });
}
