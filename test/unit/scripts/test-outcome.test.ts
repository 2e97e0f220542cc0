/** Errors that belong to no test, and processes that do not end, fail the run and say why. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { temporaryFolder } from '../../support/folders.ts';

const scripts = join(import.meta.dirname, '..', '..', '..', 'scripts');

const setup = `--import=${pathToFileURL(join(scripts, 'test-setup.mjs')).href}`;

interface Outcome {
  readonly status: number | null;
  readonly stderr: string;
  readonly results: readonly { passed?: boolean; name?: string; error?: string; cpu?: number }[];
}

/** Of a file of tests, run as by `scripts/test.mjs`. */
function outcomeOf(text: string, env: NodeJS.ProcessEnv = {}): Outcome {
  const folder = temporaryFolder('outcome');
  const file = join(folder, 'file.mjs');
  const results = join(folder, 'results.jsonl');
  writeFileSync(file, text);
  const { status, stderr } = spawnSync(
    process.execPath,
    [
      setup,
      `--test-reporter=${join(scripts, 'test-reporter.mjs')}`,
      `--test-reporter-destination=${results}`,
      file,
    ],
    { encoding: 'utf8', env: { ...process.env, NODE_TEST_CONTEXT: undefined, ...env } },
  );
  // One that ends at once has written none: its file is missing or empty.
  const written = existsSync(results) ? readFileSync(results, 'utf8') : '';
  const lines = written.split('\n').filter((line) => line !== '');
  return { status, stderr, results: lines.map((line): Outcome['results'][0] => JSON.parse(line)) };
}

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
  const { status, stderr, results } = outcomeOf(source);
  assert.equal(status, 1);
  const failed = results
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
  assert.match(stderr, /uncaught: Error: a stray rejection\n {4}at .*file\.mjs:4/);
  assert.match(stderr, /uncaught: Error: thrown later\n {4}at .*file\.mjs:11/);
});

const open = `
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
let server;
before(() => { server = createServer().listen(0); });
after(() => { throw new Error('an early hook'); });
after(() => server.close());
test('well', async () => {});
`;

test('a process whose tests have ended and that stays open is ended, and says what keeps it open', () => {
  const { status, stderr, results } = outcomeOf(open, { TEST_EXIT_MS: '500' });
  assert.equal(status, 1);
  assert.match(stderr, /all tests have ended, not the process; open are: .*TCPServerWrap/);
  const well = results.find(({ name }) => name === 'well');
  assert.equal(well?.passed, true);
  // `scripts/test.mjs` takes it for a process that did not end by itself.
  assert.ok(results.every(({ cpu }) => cpu === undefined));
});

const hanging = `
import { suite, test } from 'node:test';
test('well', () => {});
suite('some', () => {
  test('hangs', async () => {
    // The reporter hears of it in later turns of the event loop.
    for (let turns = 0; turns < 50 || process.listenerCount('SIGALRM') === 0; turns += 1) {
      await new Promise(setImmediate);
    }
    process.kill(process.pid, 'SIGALRM');
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  });
});
`;

test('a process at its limit says which tests have not ended', () => {
  const { status, stderr } = outcomeOf(hanging);
  assert.equal(status, 1);
  assert.match(stderr, /these tests have not ended: some, hangs; open are: .*Timeout/);
});

const parent = `
import { spawnSync } from 'node:child_process';
const source = 'void Promise.reject(new Error("of a worker")); setTimeout(() => process.exit(7), 100)';
const { status } = spawnSync(process.execPath, [...process.execArgv, '-e', source]);
console.log(status);
`;

test('a process that a test starts with its own arguments ends by an unhandled rejection, as without tests', () => {
  const folder = temporaryFolder('outcome');
  const file = join(folder, 'parent.mjs');
  writeFileSync(file, parent);
  const { stdout } = spawnSync(process.execPath, [setup, file], { encoding: 'utf8' });
  assert.equal(stdout.trim(), '1');
});
