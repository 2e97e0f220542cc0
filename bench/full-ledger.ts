/**
 * Whether limits cost the same with a full book: the limited gateway on an empty data directory beside the
 * same one on 500,000 keys and ten million rows, in turn within each round.
 * Usage: node bench/full-ledger.ts [folder, default a new one that is removed] [--keys N] [--rows N]
 *        [--rounds N] [--seconds N] [--write]
 * A folder that has a book is measured as it is; `--write` puts the figures into RESULTS.md.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cpuPerRequest, Results, type Summary } from './analysis.ts';
import { loadCore, stopAll } from './child.ts';
import { findGateway } from './gateway.ts';
import { putSection } from './saved-sections.ts';
import { limitedGateway, limitedOn } from './limited.ts';
import { inspectMachine, pinMyself } from './machine.ts';
import { fillCalls, fillKeys } from './many-rows.ts';
import { measureOne, startRig, type Sample } from './measure.ts';
import { workloads } from './workloads.ts';

const { values: flags, positionals } = parseArgs({
  options: {
    keys: { type: 'string', default: '500000' },
    rows: { type: 'string', default: '10000000' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '4' },
    write: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const [given] = positionals;
const folder = given ?? mkdtempSync(join(tmpdir(), 'gateway-full-'));
const rounds = Number(flags.rounds);
const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** Rows first: keys are added to the book that they make. */
async function fill(): Promise<void> {
  const path = join(folder, 'gateway.db');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (existsSync(path)) return say(`${path} is measured as it is`);
  say(`${flags.rows} rows and ${flags.keys} keys are written to ${path}`);
  fillCalls(path, Number(flags.rows));
  await fillKeys(path, Number(flags.keys));
}

async function measure(): Promise<void> {
  const gateway = findGateway();
  const workload = workloads.find(({ id }) => id === 'limits');
  if ('missing' in gateway || workload === undefined) throw new Error('there is no gateway');
  const machine = await inspectMachine();
  for (const warning of machine.warnings) say(`warning: ${warning}`);
  pinMyself(loadCore);
  const empty = limitedGateway(gateway);
  const full = limitedOn(gateway, folder);
  const durations = {
    warmMs: 1000,
    longWarmMs: 4000,
    measureMs: Number(flags.seconds) * 1000,
    settleMs: 0,
  };
  const samples: Sample[] = [];
  for (let round = 1; round <= rounds; round++) {
    const rig = await startRig();
    // The first of a round finds colder helper processes: they take turns in that, too.
    for (const subject of round % 2 === 0 ? [full, empty] : [empty, full]) {
      const options = { durations, chunksPerSecond: 1 };
      const measurement = await measureOne(rig, workload, subject, options);
      samples.push({ round, workload: workload.id, subject: subject.name, measurement });
      const trouble = measurement.failures > 0 ? `: FAILED, ${measurement.reasons[0]}` : '';
      say(`round ${round}/${rounds}  ${subject.name}${trouble}`);
    }
    await rig.stop();
  }
  const results = new Results(samples);
  const figure = (summary: Summary | undefined): string =>
    summary === undefined
      ? 'no result'
      : `${summary.median.toFixed(1)} (${summary.min.toFixed(1)} – ${summary.max.toFixed(1)})`;
  const of = (name: string): string => figure(results.summary(workload.id, name, cpuPerRequest));
  const one = { workload: workload.id, subject: full.name };
  const other = { workload: workload.id, subject: empty.name };
  const added = results.paired(one, other, cpuPerRequest, (a, b) => a - b);
  const lines = [
    '## Limits with a full book',
    '',
    `Written by \`node bench/full-ledger.ts --write\` on ${new Date().toISOString().slice(0, 10)}, commit ${machine.commit}: ${rounds} rounds of the workload \`limits\` with a limited key, on an empty data directory and on ${flags.keys} keys and ${flags.rows} rows. ${machine.description}.`,
    '',
    '| µs of CPU a request | median (least – most) |',
    '| --- | --- |',
    `| empty | ${of(empty.name)} |`,
    `| full | ${of(full.name)} |`,
    `| full less empty, within a round | ${figure(added)} |`,
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  // What could not be measured takes the place of no figure.
  if (results.failed().length > 0) process.exitCode = 1;
  else if (flags.write) putSection('full-book', lines.join('\n'));
}

process.on('exit', stopAll);
try {
  await fill();
  await measure();
} finally {
  if (given === undefined) rmSync(folder, { recursive: true, force: true });
}
