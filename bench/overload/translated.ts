/** G1: a thousand translated streams of twenty events a second, for minutes. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';
import { Callers, translatedCall, type Outcome } from './client.ts';
import { floodKey, openStage, sleep, startUpstream, type Figure, type Stage } from './stage.ts';
import type { StreamsWanted } from './streams.ts';

/** Streams that go to an upstream of their own without a gateway: what is not the gateway's of a delay. */
const direct = 20;

/** Opens streams, half of them in each direction; all outcomes when they have ended. */
async function openAll(callers: Callers, { count, rate }: StreamsWanted): Promise<Outcomes> {
  const model = `hold-${rate}`;
  const calls = [
    translatedCall('openai-chat', floodKey, model),
    translatedCall('anthropic-messages', floodKey, model),
  ];
  const streams: Promise<Outcome>[] = [];
  while (streams.length < count) {
    for (const call of calls) streams.push(callers.send(call));
    await sleep(4);
  }
  return { ended: Promise.all(streams) };
}

interface Outcomes {
  readonly ended: Promise<readonly Outcome[]>;
}

function recorder(histogram: RecordableHistogram): (ms: number) => void {
  return (ms) => histogram.record(Math.max(1, Math.round(ms * 1000)));
}

export async function translatedStreams(
  seconds: number,
  say: (line: string) => void,
  wanted: StreamsWanted,
): Promise<Figure[]> {
  const stage = await openStage({ streams: wanted.count });
  const beside = await startUpstream();
  const delays = { through: createHistogram(), direct: createHistogram() };
  const callers = new Callers(stage.port, recorder(delays.through));
  const directCallers = new Callers(beside.port, recorder(delays.direct));
  try {
    const through = await openAll(callers, wanted);
    const compared = await openAll(directCallers, { count: direct, rate: wanted.rate });
    for (let i = 0; i < 300 && (await liveCalls(stage)) < wanted.count; i++) await sleep(100);
    const open = await liveCalls(stage);
    delays.through.reset();
    delays.direct.reset();
    const [cpu, at] = [stage.cpuSeconds(), performance.now()];
    for (let left = seconds; left > 0; left -= 60) {
      await sleep(Math.min(left, 60) * 1000);
      say(`  ${await liveCalls(stage)} open, ${stage.memory().nowMb.toFixed(0)} MB`);
    }
    const share = (stage.cpuSeconds() - cpu) / ((performance.now() - at) / 1000);
    const loop = stage.loop();
    const ms = (histogram: RecordableHistogram): number => histogram.percentile(99) / 1000;
    const added = ms(delays.through) - ms(delays.direct);
    const events = delays.through.count;
    await Promise.all([stage.endStreams(), beside.end()]);
    const ended = await through.ended;
    await compared.ended;
    await sleep(1500);
    const [usage, counted] = [await stage.usage(), await stage.counted()];
    const whole = ended.filter((outcome) => outcome.status === 200 && outcome.whole).length;
    const { peakMb } = stage.memory();
    return [
      {
        what: `open at once, each ${wanted.rate} events a second, half of them chat from messages`,
        value: String(open),
        bound: String(wanted.count),
        kept: open === wanted.count,
      },
      { what: 'events that arrived meanwhile', value: `${events} in ${seconds} s` },
      {
        what: 'failures',
        value: [String(ended.length - whole), ...sayings(ended)].join('; '),
        bound: '0',
        kept: whole === wanted.count,
      },
      {
        what: 'highest resident memory',
        value: `${peakMb.toFixed(0)} MB`,
        bound: '≤ 400 MB',
        kept: peakMb <= 400,
      },
      {
        what: 'CPU, of one core',
        value: `${(100 * share).toFixed(0)} %`,
        bound: '≤ 75 %',
        kept: share <= 0.75,
      },
      {
        what: 'delay of an event, p99 (without a gateway)',
        value: `${ms(delays.through).toFixed(1)} ms (${ms(delays.direct).toFixed(1)})`,
        bound: '≤ 25 ms more',
        kept: added <= 25,
      },
      {
        what: 'delay of the event loop, p99 (longest)',
        value: `${loop.p99Ms.toFixed(1)} ms (${loop.maxMs.toFixed(0)})`,
        bound: '≤ 50 ms',
        kept: loop.p99Ms <= 50,
      },
      ...booked(usage, counted),
    ];
  } finally {
    callers.close();
    directCallers.close();
    await stage.stop();
    await beside.stop();
  }
}

/** What the answers said that were none, and how many of them said it. */
function sayings(ended: readonly Outcome[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { status, whole, says } of ended) {
    if (status === 200 && whole) continue;
    const error = tryParseObject(says)?.['error'];
    const message = isObject(error) ? String(error['message']) : 'cut off';
    const saying = `${status} ${message}`;
    counts.set(saying, (counts.get(saying) ?? 0) + 1);
  }
  return [...counts].map(([saying, times]) => `${times} × ${saying}`);
}

async function liveCalls(stage: Stage): Promise<number> {
  return Number((await stage.status())['live_calls']);
}

interface Sums {
  readonly calls: number;
  readonly tokens: number;
}

/** What the ledger has beside what the upstream counted. */
export function booked(ledger: Sums, upstream: Sums): readonly Figure[] {
  return [
    {
      what: 'rows in the ledger, calls that the upstream answered',
      value: `${ledger.calls}, ${upstream.calls}`,
      bound: 'equal',
      kept: ledger.calls === upstream.calls,
    },
    {
      what: 'tokens in the ledger, tokens that the upstream reported',
      value: `${ledger.tokens}, ${upstream.tokens}`,
      bound: 'equal',
      kept: ledger.tokens === upstream.tokens,
    },
  ];
}
