/**
 * What worker processes cost and bring: `node bench/workers.ts [--rounds N] [--write]`. Gateways of one process, of two
 * workers, of four and so on up to the cores of the machine, in turns, each with all of these, as fast as they can. Load
 * and mock take CPU of one of the cores: on two of them there is no room to scale for short calls, of which they take as
 * much as the gateway; of long ones they take little. `--write` puts the figures into RESULTS.md.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { everyCore } from './child.ts';
import { findGateway, startGateway } from './gateway.ts';
import { putSection } from './saved-sections.ts';
import { inspectMachine } from './machine.ts';
import { startRig, type Rig } from './measure.ts';
import { cpuUs, processTree } from './process-cpu.ts';
import { isMeasurement, type Order } from './protocol.ts';

interface Round {
  readonly perSecond: number;
  /** Of all processes of the gateway. */
  readonly usOfCall: number;
  /** Part of it that the parent has. */
  readonly parentShare: number;
}

interface Size {
  readonly label: string;
  readonly bytes: number;
  readonly connections: number;
}

const sizes: readonly Size[] = [
  { label: '1.4 KB', bytes: 1400, connections: 32 },
  { label: '1 MB', bytes: 1_000_000, connections: 16 },
];

async function measure(rig: Rig, { bytes, connections }: Size, workers: number): Promise<Round> {
  const gateway = findGateway();
  if ('missing' in gateway) throw new Error(gateway.missing);
  await rig.mock.ask({ kind: 'unary' });
  const config = `workers: ${workers}\nlimits: { streams: 6000 }\n`;
  const running = await startGateway({ mockPort: rig.mockPort, core: everyCore.name, config });
  const { port, pid = 0 } = running;
  const order: Order = {
    kind: 'closed',
    connections,
    body: { kind: 'unary', bytes },
    warmMs: 8000,
    measureMs: 5000,
    target: {
      port,
      pid,
      dialect: 'openai-chat',
      model: gateway.models['openai-chat'],
      key: gateway.key,
      mockPid: rig.mock.pid,
    },
  };
  try {
    const before = [cpuUs([pid]), cpuUs(processTree(pid))];
    const measured = await rig.load.ask(order);
    if (!isMeasurement(measured) || measured.failures > 0) throw new Error('calls failed');
    const [own = 0, all = 0] = [cpuUs([pid]), cpuUs(processTree(pid))].map(
      (us, i) => us - (before[i] ?? 0),
    );
    return {
      perSecond: (measured.requests * 1000) / measured.wallMs,
      usOfCall: measured.subjectUs / measured.requests,
      parentShare: own / all,
    };
  } finally {
    await running.stop();
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

/** 1, 2, 4 and so on: as many as there are cores, two at least. */
function workerCounts(cores: number): readonly number[] {
  const counts = [1, 2];
  for (let count = 4; count <= cores; count *= 2) counts.push(count);
  return counts;
}

function range(values: readonly number[], show: (value: number) => string): string {
  return `${show(median(values))} (${show(Math.min(...values))}–${show(Math.max(...values))})`;
}

function rowOf({ label }: Size, count: number, measured: readonly Round[]): string {
  const whole = (value: number): string => value.toFixed(0);
  const perSecond = measured.map((round) => round.perSecond);
  const alone = results.get(keyOf(label, 1))?.map((round) => round.perSecond) ?? [];
  const times = perSecond.map((value, i) => value / (alone[i] ?? value));
  const shares = measured.map((round) => 100 * round.parentShare);
  const cells = [
    label,
    count === 1 ? 'one process' : `${count} workers`,
    range(perSecond, whole),
    count === 1 ? '–' : `${range(times, (value) => value.toFixed(2))} ×`,
    range(
      measured.map((round) => round.usOfCall),
      whole,
    ),
    count === 1 ? '–' : `${whole(median(shares))} %`,
  ];
  return `| ${cells.join(' | ')} |`;
}

const { values: flags } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, write: { type: 'boolean', default: false } },
});
const rounds = Number(flags.rounds);
const counts = workerCounts(availableParallelism());
const keyOf = (label: string, count: number): string => `${label} ${count}`;
const results = new Map<string, Round[]>();
const machine = await inspectMachine();
const rig = await startRig();
for (let i = 0; i < rounds; i++) {
  for (const size of sizes) {
    for (const count of counts) {
      const key = keyOf(size.label, count);
      const measured = await measure(rig, size, count);
      results.set(key, [...(results.get(key) ?? []), measured]);
    }
  }
}
await rig.stop();
const lines = [
  '## Workers',
  '',
  `Written by \`node bench/workers.ts --rounds ${rounds} --write\` on ${new Date().toISOString().slice(0, 10)}, ${machine.description}; source at ${machine.commit}: unary relay, as fast as ${sizes.map(({ connections }) => connections).join(' and ')} callers can, on all cores, of which load and mock share one. Median (least–most) of ${rounds} rounds in turns.`,
  '',
  ...machine.warnings.map((warning) => `- Warning: ${warning}`),
  ...(machine.warnings.length > 0 ? [''] : []),
  '| body | gateway | calls a second | beside one process | CPU µs of a call, all processes | of it in the parent |',
  '| --- | --- | --- | --- | --- | --- |',
  ...sizes.flatMap((size) =>
    counts.map((count) => rowOf(size, count, results.get(keyOf(size.label, count)) ?? [])),
  ),
];
process.stdout.write(`${lines.join('\n')}\n`);
if (flags.write) putSection('workers', lines.join('\n'));
