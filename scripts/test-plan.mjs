/**
 * Which test files `npm test` runs, and which share a process. `test/unit/scripts/test-runs.test.ts` checks that no file is
 * lost, `test/guarantees.test.ts` that each guarantee has a proof in `npm test`.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';

/**
 * The members of all rows above a path hold, those of the most specific row first.
 * - `together`: this many files below this path share a process, which saves starting it and loading the sources again:
 *   a second of CPU. Each file is a suite of its own there. 1 for files that change the process itself.
 * - `slow`: not in `npm test`, only in `npm run test:all`. The text says why; `undefined` takes a file back.
 * - `sampled`: `npm test` runs a fixed part of its cases (test/support/depth.ts), `npm run test:all` all of them.
 * - `seconds`: what a file takes as a whole until a run has measured it. The longest jobs start first.
 * - `limit`: the least number of seconds after which a job of these files is ended as one that hangs (`limitOf`).
 * - `after`: a file with the id of a process; a job of these files begins when that process has ended.
 */
const rows = [
  { path: 'test', together: 1, seconds: 5, limit: 300 },
  { path: 'test/unit', together: 80, seconds: 0.5 },
  { path: 'test/unit/access/price-sheet.test.ts', sampled: true, seconds: 7 },
  { path: 'test/unit/cli/terminal.test.ts', sampled: true, seconds: 10 },
  { path: 'test/unit/cli-config', seconds: 3 },
  { path: 'test/access', together: 10 },
  // Refusals of wrong secrets wait.
  { path: 'test/access/first-start.test.ts', seconds: 20 },
  { path: 'test/access/revoked.test.ts', seconds: 18 },
  { path: 'test/access/tenants.test.ts', seconds: 15 },
  // It replaces a function of this process.
  { path: 'test/access/config-file.test.ts', together: 1 },
  {
    path: 'test/unit/cli-config/failed-start.test.ts',
    slow: 'programs that start and fail',
    seconds: 15,
  },
  {
    path: 'test/unit/cli-config/gateway-flags.test.ts',
    slow: 'a program for each place of its data',
    seconds: 12,
  },
  { path: 'test/access/canaries.test.ts', together: 1, seconds: 20 },
  { path: 'test/access/directory.test.ts', slow: 'programs on one directory', seconds: 12 },
  { path: 'test/clouds', together: 36, seconds: 1.5 },
  // They look at what this process has loaded.
  { path: 'test/clouds/aws-loading.test.ts', together: 1 },
  { path: 'test/clouds/google-loading.test.ts', together: 1 },
  { path: 'test/contract', together: 27, seconds: 4 },
  { path: 'test/contract/error-table.test.ts', sampled: true, seconds: 60 },
  { path: 'test/contract/official-sdks.test.ts', sampled: true, seconds: 40 },
  { path: 'test/contract/stored-responses.test.ts', seconds: 20 },
  { path: 'test/contract/long-calls.test.ts', slow: 'answers of megabytes', seconds: 12 },
  { path: 'test/contract/playground-code.test.ts', slow: 'programs in other languages' },
  { path: 'test/contract/pulled-model.test.ts', slow: 'a model that is fetched beside a gateway' },
  // It asserts which modules this process has loaded.
  { path: 'test/contract/prices.test.ts', together: 1 },
  { path: 'test/corpus', together: 8, seconds: 2 },
  { path: 'test/corpus/corpus.test.ts', sampled: true },
  // Each starts a real model in a process of its own: four files show what it answers.
  { path: 'test/engine', slow: 'local models, one after another', seconds: 12 },
  { path: 'test/engine/chat.test.ts', slow: undefined },
  { path: 'test/engine/reasoning.test.ts', slow: undefined },
  { path: 'test/engine/structured.test.ts', slow: undefined },
  { path: 'test/engine/supervisor.test.ts', slow: undefined, sampled: true },
  { path: 'test/engine/supervisor-pool.test.ts', seconds: 45 },
  { path: 'test/faults', together: 16, seconds: 4 },
  { path: 'test/faults/before-content.test.ts', sampled: true, seconds: 60 },
  { path: 'test/faults/client-leaves.test.ts', sampled: true, seconds: 8 },
  { path: 'test/faults/echoed-everywhere.test.ts', sampled: true, seconds: 8 },
  { path: 'test/faults/equal-errors.test.ts', sampled: true },
  { path: 'test/faults/half-documents.test.ts', sampled: true, seconds: 35 },
  { path: 'test/faults/silence.test.ts', sampled: true, seconds: 45 },
  // Clients that read slowly.
  { path: 'test/faults/slow-readers.test.ts', seconds: 25 },
  { path: 'test/faults/in-stream.test.ts', sampled: true, seconds: 30 },
  { path: 'test/faults/timeouts.test.ts', sampled: true, seconds: 20 },
  // Its megabytes are most of what the folder takes.
  { path: 'test/faults/wire.test.ts', sampled: true, together: 1, seconds: 100 },
  { path: 'test/faults/broken-while-slow.test.ts', slow: 'it waits for slow clients', seconds: 20 },
  { path: 'test/faults/late-endings.test.ts', slow: 'it waits for late endings' },
  { path: 'test/faults/left-streams.test.ts', slow: 'it waits for streams without a client' },
  // It counts what an exception does to this process.
  { path: 'test/faults/thrown.test.ts', together: 1 },
  { path: 'test/golden/conversions.test.ts', seconds: 20 },
  {
    path: 'test/golden/vendor-conversions.test.ts',
    slow: 'all shapes of requests to all vendors',
    seconds: 15,
  },
  { path: 'test/inputs', together: 16, seconds: 4 },
  { path: 'test/inputs/addresses.test.ts', sampled: true },
  { path: 'test/inputs/bad-bodies.test.ts', sampled: true, seconds: 30 },
  { path: 'test/inputs/twin-names.test.ts', sampled: true, seconds: 15 },
  { path: 'test/inputs/go-reader.test.ts', slow: 'compiles a program of Go', seconds: 30 },
  // It takes the place of look-ups of this process.
  { path: 'test/inputs/never-fetched.test.ts', together: 1 },
  { path: 'test/inputs/refusal-log.test.ts', together: 1, seconds: 20 },
  { path: 'test/limits', together: 28, seconds: 2 },
  { path: 'test/limits/impossible-usage.test.ts', sampled: true },
  { path: 'test/limits/raised-cost.test.ts', sampled: true },
  { path: 'test/limits/settled.test.ts', together: 1, sampled: true, seconds: 15 },
  { path: 'test/matrix', together: 8, seconds: 2 },
  { path: 'test/matrix/matrix.test.ts', sampled: true },
  { path: 'test/counters', together: 4 },
  { path: 'test/counters/memory.test.ts', sampled: true },
  { path: 'test/lifecycle', together: 6 },
  {
    path: 'test/lifecycle/process-failures.test.ts',
    together: 1,
    sampled: true,
    seconds: 60,
  },
  { path: 'test/metrics', together: 3 },
  {
    path: 'test/metrics/deploy.test.ts',
    slow: 'a Prometheus, and rules that it plays',
    seconds: 25,
  },
  { path: 'test/overload', together: 8, seconds: 12 },
  { path: 'test/people', together: 8, seconds: 2 },
  // It examines what this process has loaded.
  { path: 'test/people/discovery.test.ts', together: 1 },
  { path: 'test/property', together: 18, sampled: true, seconds: 6 },
  { path: 'test/property/cloud-pieces.test.ts', sampled: false },
  { path: 'test/property/event-stream.test.ts', sampled: false },
  { path: 'test/property/spoiled-answers.test.ts', sampled: false },
  { path: 'test/recordings', seconds: 15 },
  { path: 'test/recordings/replayed.test.ts', sampled: true },
  { path: 'test/recordings/split-and-cut.test.ts', sampled: true, seconds: 90, limit: 900 },
  // A history plays while its file is read: files that are read together would disturb each other.
  { path: 'test/simulation', together: 1, sampled: true, seconds: 60 },
  { path: 'test/simulation/simulation.test.ts', sampled: false, seconds: 3 },
  { path: 'test/simulation/leases.test.ts', seconds: 60 },
  { path: 'test/traces', together: 8, seconds: 2 },
  { path: 'test/two-turn', together: 8, seconds: 2 },
  { path: 'test/two-turn/two-turn.test.ts', sampled: true },
  { path: 'test/unit/bench/at-end.test.ts', slow: 'a bench that is ended twice', seconds: 5 },
  { path: 'test/vendors', together: 8, seconds: 3 },
  { path: 'test/vendors/conversations.test.ts', sampled: true, seconds: 20 },
  { path: 'test/vendors/long.test.ts', sampled: true, seconds: 20 },
  { path: 'test/vendors/members.test.ts', sampled: true },
  { path: 'test/vendors/messages-vendors.test.ts', sampled: true },
  { path: 'test/vendors/shapes.test.ts', sampled: true },
  {
    path: 'test/agents',
    slow: 'installed agents in a sandbox',
    seconds: 80,
    after: '.agents/installing',
  },
  { path: 'test/cluster', slow: 'several instances that are killed', seconds: 40 },
  // Leases of dead instances end after a minute, several times.
  { path: 'test/cluster/money.test.ts', seconds: 200, limit: 900 },
  // A browser waits for the processor longest: some pages have minutes.
  { path: 'test/dashboard', slow: 'a browser', seconds: 60, limit: 600 },
  { path: 'test/dashboard/every-page.test.ts', seconds: 130 },
  { path: 'test/dashboard/session.test.ts', seconds: 100 },
  { path: 'test/dashboard/overview-and-calls.test.ts', seconds: 120 },
  { path: 'test/deploy', slow: 'gateways as they are deployed', seconds: 15 },
  // Each with a network and files of its own: CPU of 20 s.
  { path: 'test/deploy/compose.test.ts', seconds: 60 },
  // Gateways are replaced under load, and mostly wait.
  { path: 'test/deploy/proxies.test.ts', seconds: 110 },
  { path: 'test/endurance', slow: 'gateways under load for minutes', seconds: 60 },
  { path: 'test/engine/supervisor-gateway.test.ts', seconds: 110 },
  { path: 'test/engine/supervisor-files.test.ts', seconds: 20 },
  { path: 'test/lifecycle/tls.test.ts', slow: 'gateways and commands over TLS', seconds: 30 },
  { path: 'test/lifecycle/rolling.test.ts', slow: 'instances replaced under load', seconds: 40 },
  { path: 'test/overload/admin-connections.test.ts', sampled: true, together: 1, seconds: 50 },
  { path: 'test/overload/connections.test.ts', seconds: 15 },
  { path: 'test/overload/aborts.test.ts', slow: 'a client that leaves at each byte', seconds: 20 },
  { path: 'test/overload/tls.test.ts', slow: 'the same guards over TLS', seconds: 20 },
  { path: 'test/store', slow: 'PostgreSQL that dies, hangs and moves', seconds: 12 },
  { path: 'test/store/kills.test.ts', slow: undefined },
  { path: 'test/store/sqlite.test.ts', slow: undefined },
  { path: 'test/store/spool.test.ts', slow: undefined },
  { path: 'test/store/postgres-schema.test.ts', slow: undefined },
  { path: 'test/store/postgres-outages.test.ts', slow: undefined },
  { path: 'test/store/postgres.test.ts', slow: undefined, seconds: 25 },
  { path: 'test/store/postgres-busy.test.ts', seconds: 30 },
  {
    path: 'test/workers',
    together: 4,
    slow: 'several processes of one gateway, which die',
    seconds: 14,
  },
  { path: 'test/workers/outages.test.ts', seconds: 30 },
  { path: 'test/workers/processes.test.ts', seconds: 40 },
  { path: 'test/workers/counters.test.ts', slow: undefined, seconds: 2 },
  { path: 'test/workers/heartbeat.test.ts', slow: undefined, seconds: 1 },
  { path: 'test/workers/leaving.test.ts', slow: undefined, sampled: true },
  { path: 'test/workers/session.test.ts', slow: undefined, seconds: 1 },
  { path: 'test/workers/sockets.test.ts', slow: undefined, seconds: 1 },
  { path: 'test/overload/memory.test.ts', slow: '50 bodies of 32 MB', seconds: 100 },
  {
    path: 'test/package',
    // All of them, since they share what is packed.
    together: 10,
    slow: 'packs and installs the package',
    seconds: 90,
    limit: 2400,
  },
];

/** Durations of the last runs, by the name of a job. */
export const timesFile = join(import.meta.dirname, '../node_modules/.cache/test-times.json');

export function readTimes() {
  try {
    return JSON.parse(readFileSync(timesFile, 'utf8'));
  } catch {
    return {};
  }
}

export const cores = availableParallelism();

/** Whether nothing that a job needs is still being made. */
export function isReady({ files: [file] }) {
  const { after } = rowOf(file);
  if (after === undefined) return true;
  try {
    process.kill(Number(readFileSync(join(import.meta.dirname, '..', after), 'utf8')), 0);
    return false;
  } catch {
    // No file, or no such process.
    return true;
  }
}

/** The members that hold for a file, and in `group` the path of the row whose files share its process. */
export function rowOf(path) {
  const above = rows
    .filter((row) => path === row.path || path.startsWith(`${row.path}/`))
    .toSorted((a, b) => a.path.length - b.path.length);
  const group = above.findLast(({ together }) => together !== undefined)?.path;
  return Object.assign({ group }, ...above);
}

/**
 * How deep a file goes in a run (test/support/depth.ts), undefined where it is not a part of it.
 * @param scope `test` and `rest` together are `all`; `named` is what a person asked for by its path
 */
export function depthOf(file, scope) {
  const { slow, sampled } = rowOf(file);
  if (scope === 'all') return 'whole';
  if (scope === 'named') return sampled === true ? (process.env.TEST_DEPTH ?? 'sample') : 'whole';
  if (slow !== undefined) return scope === 'rest' ? 'whole' : undefined;
  if (scope === 'test') return sampled === true ? 'sample' : 'whole';
  return sampled === true ? 'rest' : undefined;
}

/** Files that may share processes have the same name here. The times of runs are stored by these names. */
function groupOf(file, scope) {
  const { together, group } = rowOf(file);
  const name = together === 1 ? file : group;
  // A file that is not sampled reads no depth: in `npm test` it may share the process of samples.
  return scope === 'test' ? name : `${name} (${depthOf(file, scope)})`;
}

/** Seconds after which a job is ended as one that hangs: three times what it takes, and no less than its `limit`. */
export function limitOf({ files: [file], seconds }) {
  return Math.max(rowOf(file).limit, 3 * seconds);
}

/** What a sample takes of the time of all cases, about. */
const sampleShare = 0.25;

function secondsOf(file, scope) {
  return rowOf(file).seconds * (depthOf(file, scope) === 'sample' ? sampleShare : 1);
}

/** Files as jobs, the longest first. A job is one process. */
export function jobsOf(files, times, scope) {
  const groups = Map.groupBy(files, (file) => groupOf(file, scope));
  const jobs = [...groups].flatMap(([name, unordered]) => {
    // The long ones go to different jobs.
    const its = unordered.toSorted((a, b) => secondsOf(b, scope) - secondsOf(a, scope));
    const depths = new Set(its.map((file) => depthOf(file, scope)));
    const depth = depths.has('sample') ? 'sample' : depthOf(its[0], scope);
    const parts = Math.ceil(its.length / rowOf(its[0]).together);
    return Array.from({ length: parts }, (_, part) => ({
      name: parts === 1 ? name : `${name} ${part + 1}/${parts}`,
      files: its.filter((_file, i) => i % parts === part),
      depth,
    }));
  });
  return jobs
    .map((job) => {
      const seconds = job.files.reduce((sum, file) => sum + secondsOf(file, scope), 0);
      return { ...job, seconds, cpu: seconds / 2, ...times[job.name] };
    })
    .toSorted((a, b) => b.seconds - a.seconds);
}
