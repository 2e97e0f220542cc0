/**
 * `npm run profile`: where the microseconds of each workload go. Starts the gateway under Node's own
 * profiler, loads it as the bench does, and writes a flame graph and the profile itself for each.
 */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { endOnSignals } from './at-end.ts';
import { loadCore, makeScratch, removeScratch, stopAll, subjectCore } from './child.ts';
import {
  fileOf,
  folderTimes,
  locationOf,
  readProfile,
  selfTimes,
  type Branch,
} from './cpu-profile.ts';
import { flameGraph } from './flame-graph.ts';
import { findGateway, startGateway } from './gateway.ts';
import { limitedGateway, limitsConfig } from './limited.ts';
import { pinMyself } from './machine.ts';
import { orderOf, startRig, type Rig } from './measure.ts';
import { isMeasurement } from './protocol.ts';
import type { Subject } from './subject.ts';
import { defaultChunksPerSecond, workloads, type Workload } from './workloads.ts';

const profiled = workloads.filter(
  ({ id, kind }) => kind === 'cpu' || (kind === 'added' && id === 'limits'),
);

const usage = `Usage: npm run profile -- [options]
  --only ID[,ID…]  only these workloads: ${profiled.map(({ id }) => id).join(', ')}
  --seconds N      of load after a warm-up of 4 s (10)
  --out FOLDER     where to write (bench/profiles)
`;

/** Coarse enough that sampling does not distort the result. */
const intervalUs = 300;
const tableRows = 15;

const { values: flags } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string', default: '10' },
    out: { type: 'string', default: join(import.meta.dirname, 'profiles') },
    help: { type: 'boolean', default: false },
  },
});

async function profile(rig: Rig, workload: Workload, gateway: Subject): Promise<void> {
  const limited = workload.kind === 'added';
  const subject = limited ? limitedGateway(gateway) : gateway;
  const folder = makeScratch('profile');
  await rig.mock.ask(
    workload.kind === 'cpu' && workload.body.kind === 'stream'
      ? {
          kind: 'stream',
          chunks: workload.body.chunks,
          chunksPerSecond: defaultChunksPerSecond,
        }
      : { kind: 'unary' },
  );
  const running = await startGateway({
    mockPort: rig.mockPort,
    core: subjectCore,
    config: limited ? limitsConfig : '',
    nodeOptions: ['--cpu-prof', `--cpu-prof-interval=${intervalUs}`, `--cpu-prof-dir=${folder}`],
  });
  const measureMs = Number(flags.seconds) * 1000;
  const durations = { warmMs: 4000, longWarmMs: 4000, measureMs, settleMs: 0 };
  const options = { durations, chunksPerSecond: defaultChunksPerSecond };
  const answer = await rig.load.ask(orderOf(rig, workload, subject, running, options));
  await running.stop();
  if (!isMeasurement(answer) || answer.failures > 0) {
    const why = isMeasurement(answer) ? answer.reasons[0] : 'no measurement came back';
    throw new Error(`${workload.id} could not be measured: ${why}`);
  }
  const text = readFileSync(largestIn(folder), 'utf8');
  removeScratch(folder);
  const root = readProfile(text);
  const file = join(flags.out, workload.id);
  writeFileSync(`${file}.cpuprofile`, text);
  writeFileSync(`${file}.svg`, flameGraph(root, `${workload.id}: ${workload.title}`));
  process.stdout.write(`\n${workload.id}: ${relative(process.cwd(), file)}.svg\n${tableOf(root)}`);
}

/** Each thread writes one; the main thread's is the largest. */
function largestIn(folder: string): string {
  const [largest] = readdirSync(folder)
    .map((name) => join(folder, name))
    .sort((a, b) => statSync(b).size - statSync(a).size);
  if (largest === undefined) throw new Error('The gateway wrote no profile.');
  return largest;
}

function tableOf(root: Branch): string {
  const rows = (times: ReturnType<typeof selfTimes>): string =>
    times
      .slice(0, tableRows)
      .map(([name, us]) => `  ${((100 * us) / root.totalUs).toFixed(1).padStart(5)} %  ${name}\n`)
      .join('');
  const files = selfTimes(root, ({ functionName, url }) =>
    url === '' ? functionName : fileOf(url),
  );
  return `by function, in itself\n${rows(selfTimes(root, locationOf))}by file\n${rows(files)}by folder, with what it calls of others\n${rows(folderTimes(root))}`;
}

async function main(): Promise<void> {
  const gateway = findGateway();
  if (flags.help || 'missing' in gateway) {
    process.stdout.write('missing' in gateway ? `no gateway: ${gateway.missing}\n` : usage);
    return;
  }
  const wanted = flags.only?.split(',');
  mkdirSync(flags.out, { recursive: true });
  pinMyself(loadCore);
  const rig = await startRig();
  for (const workload of profiled) {
    if (wanted?.includes(workload.id) ?? true) await profile(rig, workload, gateway);
  }
  await rig.stop();
}

endOnSignals(async () => stopAll());
process.on('exit', stopAll);
await main();
