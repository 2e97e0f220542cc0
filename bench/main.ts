/**
 * `npm run bench`: measures the gateway beside nginx and others, and writes RESULTS.md. The method is in
 * README.md. Exits with 1 when a measurement failed that is not a peer's: such a run has no result.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { endOnSignals } from './at-end.ts';
import { doubts, Results } from './analysis.ts';
import { bareRelay } from './bare.ts';
import { measureSubject } from './alternating.ts';
import { loadCore, stopAll } from './child.ts';
import { measureEngine, type EngineFigures } from './engine.ts';
import { findGateway } from './gateway.ts';
import {
  leftOutOf,
  merge,
  readMeasurements,
  writeMeasurements,
  type LeftOut,
  type Measurements,
  type ModelStart,
  type Run,
} from './saved-measurements.ts';
import { savedSections } from './saved-sections.ts';
import { keepingGateway, limitedGateway, openSharedStores, sharedWorkloads } from './limited.ts';
import { inspectMachine, pinMyself, type Machine } from './machine.ts';
import { startRig, subjectsOf, type Sample } from './measure.ts';
import { findNginx } from './nginx.ts';
import { options, resultsFile, usage } from './options.ts';
import { findPeers } from './peers.ts';
import { plotsOf } from './plots.ts';
import { committedRatios, judge, keepRatios, ratiosOf } from './ratios.ts';
import { renderReport } from './report.ts';
import { installedMb, measureStart } from './startup.ts';
import type { Subject } from './subject.ts';
import { workloads } from './workloads.ts';

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

interface Field {
  readonly subjects: readonly Subject[];
  readonly missing: LeftOut[];
  close(): Promise<void>;
}

/** Everybody who is measured, and why others are not. Shared stores run for as long as the field does. */
async function gather(): Promise<Field> {
  const subjects: Subject[] = [];
  const missing: LeftOut[] = [];
  const take = (name: string, found: Subject | { readonly missing: string }): void => {
    if ('missing' in found) missing.push({ name, why: found.missing });
    else subjects.push(found);
  };
  take('nginx', findNginx());
  if (!options.guard) subjects.push(bareRelay);
  const gateway = findGateway();
  take('gateway', gateway);
  const peers = options.workloads.some(({ withPeers }) => withPeers)
    ? findPeers(options.guard ? [] : options.peers)
    : { subjects: [], missing: [] };
  subjects.push(...peers.subjects);
  missing.push(...peers.missing);
  if ('missing' in gateway) return { subjects, missing, close: () => Promise.resolve() };
  subjects.push(limitedGateway(gateway), keepingGateway(gateway));
  if (!options.workloads.some(({ id }) => sharedWorkloads.includes(id))) {
    return { subjects, missing, close: () => Promise.resolve() };
  }
  const shared = await openSharedStores(gateway);
  if ('missing' in shared) {
    missing.push({ name: 'the gateway on shared stores', why: shared.missing });
    return { subjects, missing, close: () => Promise.resolve() };
  }
  return { subjects: [...subjects, ...shared.subjects], missing, close: () => shared.close() };
}

async function measureRounds(subjects: readonly Subject[]): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    const rig = await startRig();
    for (const workload of options.workloads) {
      if (round > (workload.maxRounds ?? options.rounds)) continue;
      for (const subject of subjectsOf(workload, subjects)) {
        for (const sample of await measureSubject(rig, workload, subject, options)) {
          samples.push({ round, workload: workload.id, ...sample });
          const { failures, reasons } = sample.measurement;
          const trouble = failures > 0 ? `: FAILED, ${reasons[0]}` : '';
          say(`round ${round}/${options.rounds}  ${workload.id}  ${sample.subject}${trouble}`);
        }
      }
    }
    await rig.stop();
  }
  return samples;
}

async function measureStarts(): Promise<ModelStart[]> {
  const rig = await startRig();
  try {
    await rig.mock.ask({ kind: 'unary' });
    const starts = [];
    for (const model of ['mock/m', 'local/tiny']) {
      say(`start to first answer  ${model}`);
      const times = await measureStart(model, rig.mockPort, options.starts);
      starts.push({ model, times });
    }
    return starts;
  } finally {
    await rig.stop();
  }
}

function measureEngines(): Promise<readonly EngineFigures[]> {
  const { rounds, quick } = options;
  const modelFile = 'modelFile' in options ? { modelFile: options.modelFile } : {};
  return measureEngine({ say, rounds, quick, ...modelFile });
}

/** Conditions of this run, for readers of its figures. */
function describe(machine: Machine, { subjects, missing }: Field, measured: string[]): Run {
  const took = new Set(options.workloads.flatMap((each) => subjectsOf(each, subjects)));
  const { durations, rounds, chunksPerSecond } = options;
  const [window, warm, short] = [durations.measureMs, durations.longWarmMs, durations.warmMs].map(
    (ms) => ms / 1000,
  );
  return {
    command: options.command,
    date: new Date().toISOString().slice(0, 10),
    machine: machine.description,
    commit: machine.commit,
    method: `${rounds} round${rounds === 1 ? '' : 's'}, windows of ${window} s after a warm-up of ${warm} s (nginx ${short} s), streams paced at ${chunksPerSecond} chunks a second`,
    warnings: [...machine.warnings],
    subjects: subjects
      .filter((subject) => took.has(subject))
      .map(({ name, version }) => ({ name, version })),
    missing,
    measured,
  };
}

/** Report, plots and figures, beside each other. */
function publish(measurements: Measurements): void {
  const results = new Results(measurements.samples);
  const measured = workloads.filter(({ id }) => results.subjectsOf(id).length > 0);
  const plots = plotsOf(measured, results);
  const folder = join(dirname(options.out), 'plots');
  for (const { file, svg } of plots) writeFileSync(join(folder, file), svg);
  const report = renderReport({
    ...measurements,
    missing: leftOutOf(measurements),
    doubts: doubts(results, measured, options.chunksPerSecond),
    workloads: measured,
    results,
    installMb: installedMb(),
    plots: plots.map(({ title, file }) => ({ title, file: `plots/${file}` })),
  });
  writeFileSync(options.out, report + savedSections(options.out));
  process.stdout.write(`${report}\n`);
  say(`written to ${relative(process.cwd(), options.out)}`);
}

function tellGuard(results: Results): void {
  const { lines, failed } = judge(committedRatios(), ratiosOf(results, options.workloads));
  process.stdout.write(`${lines.join('\n')}\n`);
  if (failed) process.exitCode = 1;
}

async function main(): Promise<void> {
  if (options.help) {
    process.stdout.write(usage);
    return;
  }
  // Before anything is measured: a folder that cannot be made must not cost a run.
  mkdirSync(join(dirname(options.out), 'plots'), { recursive: true });
  const machine = await inspectMachine();
  for (const warning of machine.warnings) say(`warning: ${warning}`);
  pinMyself(loadCore);
  const field = await gather();
  const { subjects, missing } = field;
  for (const { name, why } of missing) say(`left out: ${name} (${why})`);
  const samples = await measureRounds(subjects);
  await field.close();
  const fresh = new Results(samples);
  const peers = new Set(subjects.filter(({ isPeer }) => isPeer).map(({ name }) => name));
  if (fresh.failed().some(({ subject }) => !peers.has(subject))) process.exitCode = 1;
  if (options.guard) return tellGuard(fresh);
  if (options.out === resultsFile) keepRatios(ratiosOf(fresh, options.workloads));
  const file = join(dirname(options.out), 'measurements.json');
  const old = readMeasurements(file);
  const ids = options.workloads.map(({ id }) => id);
  // At once: what fails from here on must not cost the rounds.
  const rounds = describe(machine, field, ids);
  writeMeasurements(file, merge(old, rounds, { samples, starts: [], engines: [] }));
  const starts = options.wants('start') ? await measureStarts() : [];
  const engines = options.wants('engine') ? await measureEngines() : [];
  for (const { model, times } of starts) {
    if ('missing' in times) missing.push({ name: `start with ${model}`, why: times.missing });
  }
  for (const each of engines) {
    if ('missing' in each)
      missing.push({ name: `engine with ${each.model.label}`, why: each.missing });
  }
  const run = describe(machine, field, [
    ...ids,
    ...['start', 'engine'].filter((id) => options.wants(id)),
  ]);
  const all = merge(old, run, { samples, starts, engines });
  writeMeasurements(file, all);
  publish(all);
}

endOnSignals(async () => stopAll());
process.on('exit', stopAll);
await main();
