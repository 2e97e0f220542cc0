import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { readPlace } from '../../../src/cli/place.ts';

test('the flags that say where a gateway lies are taken out of the others', () => {
  assert.deepEqual(readPlace(['list', '--data-dir', '/d', '--json', '--config=/c.yaml']), {
    args: ['list', '--json'],
    env: { MODEL_GATEWAY_DATA_DIR: '/d', MODEL_GATEWAY_CONFIG: '/c.yaml' },
  });
  assert.deepEqual(readPlace(['show', 'ID']), { args: ['show', 'ID'], env: {} });
  for (const args of [['--data-dir'], ['--data-dir', '--json'], ['--config=']]) {
    assert.throws(() => readPlace(args), /needs a value/);
  }
});

test('a command acts on the directory that --data-dir names, and leaves no other behind', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-place-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const main = join(import.meta.dirname, '../../../src/main.ts');
  const run = async (...args: readonly string[]): Promise<string> => {
    const options = { cwd: folder, env: { PATH: process.env['PATH'] } };
    return (await promisify(execFile)(process.execPath, [main, ...args], options)).stdout;
  };
  await run('keys', 'create', '--name', 'ci', '--models', '*', '--data-dir', 'there');
  assert.match(await run('keys', 'list', '--data-dir=there'), /ci/);
  assert.deepEqual(readdirSync(folder), ['there']);
});
