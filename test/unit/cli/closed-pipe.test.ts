/** `model-gateway … | head`: who reads no further is no failure. A full disk is one. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

test('a closed pipe behind a command ends it quietly', async () => {
  const child = spawn(process.execPath, [program, 'pull', '--list'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  let told = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (told += text));
  const [code] = await once(child, 'close');
  assert.equal(told, '');
  assert.equal(code, 0);
});

const full = { skip: existsSync('/dev/full') ? false : 'the system has no /dev/full' };

test('output that a full disk does not take is a failure in one line', full, async (t) => {
  const disk = openSync('/dev/full', 'w');
  t.after(() => closeSync(disk));
  const child = spawn(process.execPath, [program, 'pull', '--list'], {
    stdio: ['ignore', disk, 'pipe'],
  });
  let told = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => void (told += text));
  const [code] = await once(child, 'close');
  assert.equal(told, 'model-gateway: The output cannot be written (ENOSPC).\n');
  assert.equal(code, 1);
});
