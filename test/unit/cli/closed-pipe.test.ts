/** `model-gateway … | head`: who reads no further is no failure. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
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
