/**
 * What worker processes cost and bring: `node bench/workers.ts [rounds]`. One gateway of one process and one
 * with workers in turns, saturated with small calls, on all cores of the machine. Load and mock take CPU of the
 * same cores: on two of them there is no room to scale, and the CPU of a call is what tells.
 */
import { everyCore } from './child.ts';
import { findGateway, startGateway } from './gateway.ts';
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

const connections = 32;

async function measure(rig: Rig, workers: number): Promise<Round> {
  const gateway = findGateway();
  if ('missing' in gateway) throw new Error(gateway.missing);
  await rig.mock.ask({ kind: 'unary' });
  const config = `workers: ${workers}\nlimits: { streams: 6000 }\n`;
  const running = await startGateway({ mockPort: rig.mockPort, core: everyCore.name, config });
  const { port, pid = 0 } = running;
  const order: Order = {
    kind: 'closed',
    connections,
    body: { kind: 'unary', bytes: 1400 },
    warmMs: 4000,
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

const rounds = Number(process.argv[2] ?? 3);
const counts = [1, 2];
const results = new Map<number, Round[]>(counts.map((count) => [count, []]));
const rig = await startRig();
for (let i = 0; i < rounds; i++) {
  for (const count of counts) results.get(count)?.push(await measure(rig, count));
}
await rig.stop();
process.stdout.write(`${everyCore.count} cores, load and mock on one of them; ${rounds} rounds\n`);
for (const [count, measured] of results) {
  const perSecond = median(measured.map((round) => round.perSecond)).toFixed(0);
  const us = median(measured.map((round) => round.usOfCall)).toFixed(0);
  const parent = (100 * median(measured.map((round) => round.parentShare))).toFixed(0);
  const share = count === 1 ? '' : `, ${parent} % of it in the parent`;
  process.stdout.write(`workers ${count}: ${perSecond} calls/s, ${us} us of CPU a call${share}\n`);
}
