/** Errors that belong to no test fail the run, and their stack is printed. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

const scripts = join(import.meta.dirname, '..', '..', '..', 'scripts');

const setup = `--import=${pathToFileURL(join(scripts, 'test-setup.mjs')).href}`;

const source = `
import { test } from 'node:test';
test('stray', async () => {
  void Promise.reject(new Error('a stray rejection'));
  await new Promise((resolve) => setTimeout(resolve, 50));
});
test('own', async () => {
  setTimeout(() => { throw new Error('thrown by a timer'); }, 10);
  await new Promise((resolve) => setTimeout(resolve, 50));
});
test('ended', () => { setTimeout(() => { throw new Error('thrown later'); }, 50); });
test('well', async () => { await new Promise((resolve) => setTimeout(resolve, 200)); });
`;

test('an error outside of a test is a failure of its own, with its stack; one of a timer belongs to its test', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gw-outcome-'));
  try {
    const file = join(folder, 'stray.mjs');
    const results = join(folder, 'results.jsonl');
    writeFileSync(file, source);
    const { status, stderr } = spawnSync(
      process.execPath,
      [
        setup,
        `--test-reporter=${join(scripts, 'test-reporter.mjs')}`,
        `--test-reporter-destination=${results}`,
        file,
      ],
      { encoding: 'utf8', env: { ...process.env, NODE_TEST_CONTEXT: undefined } },
    );
    assert.equal(status, 1);
    const failed = readFileSync(results, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { passed?: boolean; name?: string; error?: string })
      .filter(({ passed }) => passed === false)
      .map(({ name = '', error = '' }) => [
        name,
        /stray rejection|by a timer|later/.exec(error)?.[0],
      ]);
    assert.deepEqual(failed.toSorted(), [
      ['outside of a test', 'later'],
      ['outside of a test', 'stray rejection'],
      ['own', 'by a timer'],
    ]);
    assert.match(stderr, /uncaught: Error: a stray rejection\n {4}at .*stray\.mjs:4/);
    assert.match(stderr, /uncaught: Error: thrown later\n {4}at .*stray\.mjs:11/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

const parent = `
import { spawnSync } from 'node:child_process';
const source = 'void Promise.reject(new Error("of a worker")); setTimeout(() => process.exit(7), 100)';
const { status } = spawnSync(process.execPath, [...process.execArgv, '-e', source]);
console.log(status);
`;

test('a process that a test starts with its own arguments ends by an unhandled rejection, as without tests', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gw-outcome-'));
  try {
    const file = join(folder, 'parent.mjs');
    writeFileSync(file, parent);
    const { stdout } = spawnSync(process.execPath, [setup, file], { encoding: 'utf8' });
    assert.equal(stdout.trim(), '1');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
