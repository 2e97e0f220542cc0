// Runs test files and closes with the line `N passed, N failed`.
// Usage: node scripts/test.mjs [--all | --rest] [--list] [folder or file …]
//   without paths: what `npm test` runs; --all: everything; --rest: what --all adds.
//   --list: prints each file with the depth that it would run at, and runs nothing.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cores, depthOf, isReady, jobsOf, limitOf, readTimes, timesFile } from './test-plan.mjs';

// Files that import the same sources compile them once.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '../node_modules/.cache/compile');

const args = process.argv.slice(2);
const all = args.includes('--all');
const rest = args.includes('--rest');
const named = args.filter((arg) => !arg.startsWith('--'));
const scope = all ? 'all' : rest ? 'rest' : named.length > 0 ? 'named' : 'test';
/** As many jobs as cores run at any time, and more of them while the cores are idle: suites that wait for timers. */
const maxJobs = cores * 4;
const idleEnough = 0.12;
const tickMs = 500;
const slowestTold = 10;
const outputKept = 200_000;
const sayMs = 5000;
/**
 * Cores are busy with other jobs: threads that help a process collect garbage cost more than they save. With them and
 * the default young generation, tests take 4 % more CPU.
 */
const memoryOptions = ['--max-semi-space-size=32', '--no-parallel-scavenge', '--v8-pool-size=1'];

const files = (named.length === 0 ? ['test'] : named)
  .flatMap((path) => (statSync(path).isDirectory() ? globSync(`${path}/**/*.test.ts`) : [path]))
  .map((file) => relative('.', file).replaceAll('\\', '/'))
  .filter((file) => depthOf(file, scope) !== undefined)
  .toSorted();
if (args.includes('--list')) {
  const lines = files.map((file) => `${depthOf(file, scope)} ${file}\n`);
  // An exit loses what a pipe has not taken yet.
  await new Promise((resolve) => process.stdout.write(lines.join(''), resolve));
  process.exit();
}
const times = readTimes();
/** What a job costs: mostly CPU time, and its wall time where it waits. */
const waiting = jobsOf([...new Set(files)], times, scope).map((job) => ({
  ...job,
  expected: job.cpu + job.seconds / 10,
}));
const folder = mkdtempSync(join(tmpdir(), 'gateway-tests-'));
// Where suites share what their servers start from (test/support/postgres.ts); servers run as other users.
chmodSync(folder, 0o755);
process.env.TEST_SERVER_FOLDER = join(folder, 'servers');
mkdirSync(process.env.TEST_SERVER_FOLDER);
chmodSync(process.env.TEST_SERVER_FOLDER, 0o777);
const began = performance.now();
const running = new Set();
const counts = { passed: 0, failed: 0, skipped: 0, files: 0 };
const failures = [];
const finished = [];

/** Runs one job; resolves when its process has ended. */
function runJob(job) {
  const results = join(folder, `${job.name.replace(/\W/g, '-')}.jsonl`);
  const program = job.files.length > 1 ? ['scripts/test-folder.mjs', ...job.files] : job.files;
  const reporter = join(import.meta.dirname, 'test-reporter.mjs');
  const argv = [
    '--disable-warning=ExperimentalWarning',
    ...memoryOptions,
    `--import=${pathToFileURL(join(import.meta.dirname, 'test-setup.mjs')).href}`,
    `--test-reporter=${reporter}`,
    `--test-reporter-destination=${results}`,
    ...program,
  ];
  const started = performance.now();
  // A group of its own, so that a process that hangs ends with what it started.
  const child = spawn(process.execPath, argv, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, TEST_DEPTH: job.depth },
    detached: true,
  });
  job.child = child;
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output = (output + text).slice(-outputKept);
    });
  }
  // What it started and left behind may hold the pipes above open.
  child.on('exit', () => kill(child));
  let late = false;
  const timer = setTimeout(
    () => {
      late = true;
      // It says which tests have not ended, if it can.
      child.kill('SIGALRM');
      setTimeout(() => kill(child), sayMs).unref();
    },
    limitOf(job) * 1000,
  );
  return new Promise((resolve) => {
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      const seconds = (performance.now() - started) / 1000;
      resolve({ results: readResults(results), seconds, output, late, ending: signal ?? code });
    });
  });
}

function kill(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

function readResults(path) {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  } catch {
    return [];
  }
}

/** Counts the results of a job, prints its failures and remembers its times. */
function take(job, outcome) {
  const { results, seconds, output } = outcome;
  counts.files += job.files.length;
  const cpu = results.find((result) => result.cpu !== undefined)?.cpu;
  if (cpu !== undefined) {
    times[job.name] = { seconds: round(seconds), cpu: round(cpu) };
    finished.push({ ...job, seconds, cpu });
  }
  const tests = results.filter(({ name }) => name !== undefined);
  counts.skipped += tests.filter(({ passed, left }) => passed && left).length;
  counts.passed += tests.filter(({ passed, left, suite }) => passed && !left && !suite).length;
  const failed = failuresOf(job, tests, { ...outcome, complete: cpu !== undefined });
  counts.failed += failed.length;
  failures.push(...failed);
  for (const { where, name } of failed) say(`✖ ${where}: ${name}`);
  for (const [line] of output.matchAll(/^.*left out.*$/gm)) say(line);
}

function failuresOf(job, tests, { seconds, output, late, ending, complete }) {
  const failed = tests
    .filter(({ passed, suite, failure }) => !passed && !(suite && failure === 'subtestsFailed'))
    .map(({ file, name, error }) => ({ where: relative('.', file ?? job.name), name, error }));
  const said = output.trim() === '' ? '' : `\n--- output of ${job.name}\n${output}`;
  const where = job.name;
  if (late) {
    return [...failed, { where, name: `not done after ${Math.round(seconds)} s`, error: said }];
  }
  if (failed.length === 0 && (ending !== 0 || !complete)) {
    return [{ where, name: `the process ended with ${ending}`, error: said }];
  }
  return failed.map((each, i) =>
    i === failed.length - 1 ? { ...each, error: each.error + said } : each,
  );
}

const round = (value) => Math.round(value * 100) / 100;

/** One line of progress, rewritten on a terminal and printed sometimes elsewhere. */
let shown = '';
let shownAt = 0;
function progress() {
  const left = minutesLeft();
  const parts = [`${counts.files} of ${files.length} files`, `${counts.failed} failed`];
  if (left !== '') parts.push(left);
  const line = parts.join(', ');
  if (process.stdout.isTTY) {
    process.stdout.write(`\r\x1b[K${line}`);
    shown = line;
  } else if (performance.now() - shownAt > 15_000) {
    shownAt = performance.now();
    process.stdout.write(`${line}\n`);
  }
}

function say(text) {
  if (shown !== '') process.stdout.write('\r\x1b[K');
  shown = '';
  process.stdout.write(`${text}\n`);
}

/** From what the jobs that are done were expected to take, and how long they took. */
function minutesLeft() {
  const cost = (jobs) => jobs.reduce((sum, { expected }) => sum + expected, 0);
  const done = cost(finished);
  const left = cost([...waiting, ...running]);
  if (left === 0 || done < left / 50) return '';
  const minutes = ((performance.now() - began) / 60_000) * (left / done);
  return minutes < 1 ? 'less than a minute left' : `about ${Math.round(minutes)} min left`;
}

/** The share of all cores that was idle since the last call. */
let lastTimes = cpus();
function idleShare() {
  const now = cpus();
  let idle = 0;
  let total = 0;
  for (const [i, { times: current }] of now.entries()) {
    const before = lastTimes[i]?.times ?? current;
    for (const kind of Object.keys(current)) {
      total += current[kind] - before[kind];
      if (kind === 'idle') idle += current[kind] - before[kind];
    }
  }
  lastTimes = now;
  return total === 0 ? 0 : idle / total;
}

async function start(job) {
  running.add(job);
  const outcome = await runJob(job);
  running.delete(job);
  take(job, outcome);
  progress();
  fill();
}

const ended = Promise.withResolvers();
function fill() {
  while (running.size < cores && startNext());
  if (running.size === 0 && waiting.length === 0) ended.resolve();
}

/** Starts the longest job that can begin. @returns whether there was one */
function startNext() {
  const at = waiting.findIndex(isReady);
  if (at === -1) return false;
  void start(...waiting.splice(at, 1));
  return true;
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const { child } of running) kill(child);
    process.exit(130);
  });
}
const ticker = setInterval(() => {
  const idle = idleShare();
  if (running.size < cores) fill();
  else if (running.size < maxJobs && idle > idleEnough) startNext();
  progress();
}, tickMs);
fill();
await ended.promise;
clearInterval(ticker);

rmSync(folder, { recursive: true, force: true });
mkdirSync(dirname(timesFile), { recursive: true });
const took = {
  seconds: round((performance.now() - began) / 1000),
  cpu: round(finished.reduce((sum, { cpu }) => sum + cpu, 0)),
};
if (named.length === 0) times[`run ${all ? 'test:all' : scope}`] = took;
writeFileSync(timesFile, `${JSON.stringify(times, null, 1)}\n`);

if (finished.length > slowestTold) {
  say('\nslowest:');
  for (const { name, seconds, cpu } of finished
    .toSorted((a, b) => b.seconds - a.seconds)
    .slice(0, slowestTold)) {
    say(`${seconds.toFixed(1).padStart(7)} s, ${cpu.toFixed(1)} s of CPU  ${name}`);
  }
  say(`in ${(took.seconds / 60).toFixed(1)} min, with ${Math.round(took.cpu)} s of CPU`);
}
if (failures.length > 0) say('\nfailed:');
for (const { where, name, error } of failures)
  say(`✖ ${where}: ${name}\n${error.replace(/^/gm, '    ')}\n`);
say(
  `\n${counts.passed} passed, ${counts.failed} failed${counts.skipped > 0 ? `, ${counts.skipped} skipped` : ''}`,
);
process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0;
