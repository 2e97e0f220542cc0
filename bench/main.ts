/**
 * `npm run bench`: measures the gateway beside nginx and writes RESULTS.md. The method is in README.md.
 * Exits with 1 when a measurement failed: such a run has no result.
 */
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { doubts, Results } from './analysis.ts';
import { measureSubject } from './beside.ts';
import { stopAll, loadCore } from './child.ts';
import { measureEngine } from './engine.ts';
import { findGateway } from './gateway.ts';
import { limitedGateway, openSharedStores, sharedWorkload } from './limited.ts';
import { keptSections } from './kept-sections.ts';
import { inspectMachine, pinMyself } from './machine.ts';
import { startRig, subjectsOf, type MeasureOptions, type Sample } from './measure.ts';
import { findNginx } from './nginx.ts';
import { committedRatios, judge, keepRatios, ratiosOf, type Ratios } from './ratios.ts';
import { renderReport, type ReportInput } from './report.ts';
import { installedMb, measureStart } from './startup.ts';
import type { Subject } from './subject.ts';
import { defaultChunksPerSecond, workloads, type Workload } from './workloads.ts';

const usage = `Usage: npm run bench -- [options]
  --quick             about 2 minutes: 2 rounds, short windows, a colder gateway
  --rounds N          rounds (3; with --quick 2)
  --only ID[,ID…]     only these workloads: ${workloads.map(({ id }) => id).join(', ')}, start, engine
  --chunk-rate N      chunks a second of each stream (${defaultChunksPerSecond})
  --seconds N         length of each measured window
  --engine-model FILE a GGUF file to measure the engine with, besides its own two
  --out FILE          where to write (bench/RESULTS.md)
  --guard             compares ratios to nginx with the committed ones (bench/ratios.json), and fails where
                      one grew by more than 15 %; writes nothing
`;

const full = { warmMs: 1000, longWarmMs: 4000, measureMs: 4000, settleMs: 1000 };
const quick = { warmMs: 500, longWarmMs: 1500, measureMs: 1500, settleMs: 700 };
const startTimesOf = { full: 5, quick: 3 };

const resultsFile = join(import.meta.dirname, 'RESULTS.md');

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    only: { type: 'string' },
    'chunk-rate': { type: 'string' },
    seconds: { type: 'string' },
    'engine-model': { type: 'string' },
    out: { type: 'string', default: resultsFile },
    guard: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function positive(text: string | undefined, otherwise: number): number {
  const value = text === undefined ? otherwise : Number(text);
  if (!(value > 0)) throw new Error(`not a positive number: ${text}`);
  return value;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

async function measureRounds(
  rounds: number,
  chosen: readonly Workload[],
  subjects: readonly Subject[],
  options: MeasureOptions,
): Promise<Results> {
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round++) {
    const rig = await startRig();
    for (const workload of chosen) {
      for (const subject of subjectsOf(workload, subjects)) {
        for (const sample of await measureSubject(rig, workload, subject, options)) {
          samples.push({ round, workload: workload.id, ...sample });
          const { failures, reasons } = sample.measurement;
          const trouble = failures > 0 ? `: FAILED, ${reasons[0]}` : '';
          say(`round ${round}/${rounds}  ${workload.id}  ${sample.subject}${trouble}`);
        }
      }
    }
    await rig.stop();
  }
  return new Results(samples);
}

/** The servers run for as long as somebody is measured on them. */
async function sharedStores(
  gateway: ReturnType<typeof findGateway>,
  chosen: readonly Workload[],
): ReturnType<typeof openSharedStores> {
  const isWanted = chosen.some(({ id }) => id === sharedWorkload);
  if (!isWanted || 'missing' in gateway) return { subjects: [], close: () => Promise.resolve() };
  return openSharedStores(gateway);
}

async function measureStarts(times: number): Promise<ReportInput['starts']> {
  const rig = await startRig();
  try {
    await rig.mock.ask({ kind: 'unary' });
    const starts = [];
    for (const model of ['mock/m', 'local/tiny']) {
      say(`start to first answer  ${model}`);
      starts.push({ model, times: await measureStart(model, rig.mockPort, times) });
    }
    return starts;
  } finally {
    await rig.stop();
  }
}

function tellGuard(ratios: Ratios, results: Results): void {
  const { lines, failed } = judge(committedRatios(), ratios);
  process.stdout.write(`${lines.join('\n')}\n`);
  if (failed || results.failed().length > 0) process.exitCode = 1;
}

async function main(): Promise<void> {
  if (flags.help) {
    process.stdout.write(usage);
    return;
  }
  const wanted = flags.only?.split(',');
  const chosen = workloads.filter(({ id, kind }) =>
    flags.guard && wanted === undefined ? kind === 'cpu' : (wanted?.includes(id) ?? true),
  );
  const machine = await inspectMachine();
  for (const warning of machine.warnings) say(`warning: ${warning}`);
  pinMyself(loadCore);
  const found = { nginx: findNginx(), gateway: findGateway() };
  const subjects: Subject[] = [];
  const missing: string[] = [];
  for (const [name, subject] of Object.entries(found)) {
    if ('missing' in subject) missing.push(`${name} (${subject.missing})`);
    else subjects.push(subject);
  }
  const shared = await sharedStores(found.gateway, chosen);
  if ('missing' in shared) missing.push(`the gateway on shared stores (${shared.missing})`);
  else subjects.push(...shared.subjects);
  if (!('missing' in found.gateway)) subjects.push(limitedGateway(found.gateway));
  for (const line of missing) say(`left out: ${line}`);
  const defaults = flags.quick ? quick : full;
  const durations = {
    ...defaults,
    measureMs: positive(flags.seconds, defaults.measureMs / 1000) * 1000,
  };
  const rounds = positive(flags.rounds, flags.quick ? 2 : 3);
  const chunksPerSecond = positive(flags['chunk-rate'], defaultChunksPerSecond);

  const results = await measureRounds(rounds, chosen, subjects, { durations, chunksPerSecond });
  if ('close' in shared) await shared.close();
  const ratios = ratiosOf(results, chosen);
  if (flags.guard) return tellGuard(ratios, results);
  if (flags.out === resultsFile && !flags.quick) keepRatios(ratios);
  const wantsStart = (wanted?.includes('start') ?? true) && !('missing' in found.gateway);
  const starts = wantsStart
    ? await measureStarts(startTimesOf[flags.quick ? 'quick' : 'full'])
    : [];
  for (const { model, times } of starts) {
    if ('missing' in times) missing.push(`start with ${model} (${times.missing})`);
  }
  const wantsEngine = (wanted?.includes('engine') ?? true) && !('missing' in found.gateway);
  const modelFile = flags['engine-model'];
  const engines = wantsEngine
    ? await measureEngine({
        say,
        rounds,
        quick: flags.quick,
        ...(modelFile === undefined ? {} : { modelFile }),
      })
    : [];
  for (const each of engines) {
    if ('missing' in each) missing.push(`engine with ${each.model.label} (${each.missing})`);
  }
  const report = renderReport({
    command: `npm run bench${flags.quick ? ' -- --quick' : ''}`,
    method: `${rounds} rounds, windows of ${durations.measureMs / 1000} s after a warm-up of ${durations.longWarmMs / 1000} s (nginx ${durations.warmMs / 1000} s), streams paced at ${chunksPerSecond} chunks a second`,
    date: new Date(),
    machine: machine.description,
    commit: machine.commit,
    subjects,
    missing,
    warnings: [...machine.warnings, ...doubts(results, chosen, chunksPerSecond)],
    workloads: chosen,
    results,
    starts,
    engines,
    installMb: installedMb(),
  });
  writeFileSync(flags.out, report + keptSections(flags.out));
  process.stdout.write(`${report}\n`);
  say(`written to ${relative(process.cwd(), flags.out)}`);
  if (results.failed().length > 0) process.exitCode = 1;
}

process.on('SIGINT', () => {
  stopAll();
  process.exit(130);
});
process.on('exit', stopAll);
await main();
