// Changes the sources in small ways, one at a time, and prints the share of changes that tests notice.
// Usage: npm run mutants -- [--count N] [--seed N] [--dir CHECKOUT] [--areas gateway,access] [--tests test/unit,test/contract,test/store]
//   Each area gets the same number of mutants. Results are stored in node_modules/.cache/mutants, so that a run that
//   was interrupted continues, and a longer one begins with what is known. --dir takes a checkout of another commit,
//   with its node_modules.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { candidatesOf, mulberry, shuffled } from './mutations.mjs';

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    dir: { type: 'string', default: join(import.meta.dirname, '..') },
    areas: { type: 'string', default: 'gateway,access,store,dialects' },
    tests: { type: 'string', default: 'test/unit,test/contract,test/store' },
  },
});
const root = resolve(values.dir);
const areas = values.areas.split(',');
/** A mutant survives when this many covering tests, the most specific ones, pass. */
const maxTests = 25;
const lanes = availableParallelism();
/** A test that takes this much longer than without a mutant hangs. */
const hangFactor = 5;
const hangMs = 20_000;

const sources = new Map(
  areas
    .flatMap((area) => globSync(`src/${area}/**/*.ts`, { cwd: root }))
    .toSorted()
    .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
);
const candidates = [...sources].flatMap(([path, text]) => candidatesOf(path, text));
const tests = values.tests
  .split(',')
  .flatMap((path) =>
    path.endsWith('.ts') ? [path] : globSync(`${path}/**/*.test.ts`, { cwd: root }),
  )
  .toSorted();
const cache = join(import.meta.dirname, '../node_modules/.cache/mutants');
mkdirSync(cache, { recursive: true });
const everything = globSync('{src,test}/**/*.ts', { cwd: root }).toSorted();
const state = createHash('sha256');
for (const path of everything) state.update(path).update(readFileSync(join(root, path)));
const edition = state.digest('hex').slice(0, 12);

/** Lines of JSON that outlive the run. */
function journal(name) {
  const path = join(cache, `${edition}-${name}.jsonl`);
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
  const known = new Map(
    lines
      .filter((line) => line.endsWith('}'))
      .map((line) => JSON.parse(line))
      .map((entry) => [entry.id, entry]),
  );
  return {
    known,
    add: (entry) => {
      known.set(entry.id, entry);
      appendFileSync(path, `${JSON.stringify(entry)}\n`);
    },
  };
}

/** A copy of the checkout whose sources may be changed. */
function copyOf() {
  const copy = mkdtempSync(join(tmpdir(), 'gateway-mutants-'));
  for (const path of globSync('**/*', {
    cwd: root,
    exclude: ['node_modules', 'dist', '.git', '.agents'],
    withFileTypes: true,
  })) {
    const from = join(path.parentPath, path.name);
    const to = join(copy, from.slice(root.length));
    if (path.isDirectory()) mkdirSync(to, { recursive: true });
    else {
      mkdirSync(dirname(to), { recursive: true });
      copyFileSync(from, to);
    }
  }
  for (const name of ['node_modules', 'dist']) {
    if (existsSync(join(root, name))) symlinkSync(join(root, name), join(copy, name));
  }
  return copy;
}

/** Runs a test file; `undefined` when it hangs. */
function runTest(copy, file, { limit, env = {} }) {
  const argv = ['--disable-warning=ExperimentalWarning', '--test-reporter=dot', file];
  const cached = { NODE_COMPILE_CACHE: join(cache, 'compile') };
  const child = spawn(process.execPath, argv, {
    cwd: copy,
    env: { ...process.env, ...cached, ...env },
    stdio: 'ignore',
    detached: true,
  });
  return new Promise((done) => {
    const timer = setTimeout(() => {
      process.kill(-child.pid, 'SIGKILL');
      done(undefined);
    }, limit);
    child.once('close', (code) => {
      clearTimeout(timer);
      done(code === 0);
    });
  });
}

/** Which candidates a test file executes, how long it takes, and how many source files it runs through. */
async function coverageOf(copy, file) {
  const folder = mkdtempSync(join(tmpdir(), 'gateway-coverage-'));
  const began = performance.now();
  const passed = await runTest(copy, file, { limit: 300_000, env: { NODE_V8_COVERAGE: folder } });
  const ms = Math.round(performance.now() - began);
  const covered = new Set();
  const files = new Set();
  for (const name of readdirSync(folder)) {
    for (const { url, functions } of profileIn(join(folder, name))) {
      if (!url.startsWith('file:') || !url.includes('/src/')) continue;
      files.add(url);
      const path = fileURLToPath(url).slice(copy.length + 1);
      for (const id of executed(path, functions)) covered.add(id);
    }
  }
  rmSync(folder, { recursive: true, force: true });
  return { id: file, passed: passed === true, ms, files: files.size, covered: [...covered] };
}

/** The scripts of a profile; none of one that a process left half-written when it was killed. */
function profileIn(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).result;
  } catch {
    return [];
  }
}

const byFile = Map.groupBy(candidates, ({ path }) => path);

/** The candidates whose innermost range was executed. */
function executed(path, functions) {
  const ranges = functions.flatMap((each) => each.ranges);
  const own = byFile.get(path) ?? [];
  const isRun = ({ start, end }) => {
    const around = ranges.filter(
      ({ startOffset, endOffset }) => startOffset <= start && end <= endOffset,
    );
    const length = ({ startOffset, endOffset }) => endOffset - startOffset;
    const inner = around.toSorted((a, b) => length(a) - length(b))[0];
    return inner !== undefined && inner.count > 0;
  };
  return own.filter(isRun).map(({ id }) => id);
}

/** Runs the covering tests, the most specific first, until one notices. */
async function judge(copy, mutant, covering) {
  const path = join(copy, mutant.path);
  const text = sources.get(mutant.path);
  writeFileSync(path, text.slice(0, mutant.start) + mutant.becomes + text.slice(mutant.end));
  try {
    for (const { id: test, ms } of covering.slice(0, maxTests)) {
      const passed = await runTest(copy, test, { limit: ms * hangFactor + hangMs });
      if (passed === undefined) return { outcome: 'hangs', test };
      if (!passed) return { outcome: 'killed', test };
    }
    return { outcome: covering.length === 0 ? 'uncovered' : 'survived' };
  } finally {
    writeFileSync(path, text);
  }
}

/** Does the work of a list in one copy for each lane. */
async function inParallel(list, copies, work) {
  const left = [...list];
  await Promise.all(
    copies.map(async (copy) => {
      for (let each = left.shift(); each !== undefined; each = left.shift()) await work(copy, each);
    }),
  );
}

const copies = Array.from({ length: lanes }, copyOf);
process.once('exit', () => {
  for (const copy of copies) rmSync(copy, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

const coverage = journal('coverage');
const fresh = tests.filter((file) => !coverage.known.has(file));
process.stdout.write(
  `${candidates.length} places in ${sources.size} files; coverage of ${fresh.length} of ${tests.length} test files\n`,
);
await inParallel(fresh, copies, async (copy, file) => coverage.add(await coverageOf(copy, file)));
const usable = tests.map((file) => coverage.known.get(file)).filter(({ passed }) => passed);
const broken = tests.length - usable.length;
if (broken > 0)
  process.stdout.write(`${broken} test files fail without a mutant and are left out\n`);

const quota = Math.ceil(Number(values.count) / areas.length);
const chosen = areas.flatMap((area) => {
  const own = candidates.filter(({ path }) => path.startsWith(`src/${area}/`));
  return shuffled(own, mulberry(Number(values.seed))).slice(0, quota);
});
const results = journal('results');
const open = chosen.filter(({ id }) => !results.known.has(id));
let done = chosen.length - open.length;
await inParallel(open, copies, async (copy, mutant) => {
  const covering = usable
    .filter(({ covered }) => covered.includes(mutant.id))
    .toSorted((a, b) => a.files - b.files || a.ms - b.ms);
  results.add({ id: mutant.id, ...(await judge(copy, mutant, covering)) });
  done += 1;
  process.stdout.write(
    `${done} of ${chosen.length}: ${results.known.get(mutant.id).outcome} ${mutant.description}\n`,
  );
});

process.stdout.write(
  '\n| area | mutants | killed | hang | survive | uncovered | share killed |\n|---|---|---|---|---|---|---|\n',
);
for (const area of [...areas, 'all']) {
  const own = chosen.filter(({ path }) => area === 'all' || path.startsWith(`src/${area}/`));
  const count = (outcome) =>
    own.filter(({ id }) => results.known.get(id).outcome === outcome).length;
  const [killed, hang, survived, uncovered] = ['killed', 'hangs', 'survived', 'uncovered'].map(
    count,
  );
  const share = ((100 * (killed + hang)) / Math.max(1, own.length)).toFixed(1);
  process.stdout.write(
    `| ${area} | ${own.length} | ${killed} | ${hang} | ${survived} | ${uncovered} | ${share} % |\n`,
  );
}
process.stdout.write('\nnot noticed:\n');
for (const { id, description } of chosen) {
  const { outcome } = results.known.get(id);
  if (outcome === 'survived' || outcome === 'uncovered')
    process.stdout.write(`${outcome}: ${description}\n`);
}
process.exit(0);
