/**
 * G1, G2, G4: a gateway with SQLite under a mixed load for a long time. Measured is its own process; clients
 * and upstream are here.
 */
import { Instance, type InstanceOptions } from '../cluster/instance.ts';
import { isObject } from '../../src/json/value.ts';
import { compare, readLedger, type Comparison } from './ledger.ts';
import { Callers } from './callers.ts';
import { CountingUpstream } from './counting-upstream.ts';
import { slopeOf, type Slope } from './slope.ts';
import type { Held } from './soak-probe.ts';

export interface SoakOptions {
  readonly ms: number;
  /** Calls at the same time. */
  readonly callers: number;
  readonly say?: (line: string) => void;
}

export interface SoakReport extends Comparison {
  readonly options: SoakOptions;
  readonly calls: number;
  readonly samples: readonly Sample[];
  /** MB an hour, without the first third or the first hour. */
  readonly heap: Slope;
  readonly rss: Slope;
  /** Share of a core. */
  readonly cpu: number;
  /** What was open before the load and after it was over. */
  readonly before: Held;
  readonly after: Held;
  /** Ms until nothing more was open than before. */
  readonly settledMs: number | undefined;
}

export interface Sample extends Held {
  /** Ms since the load began. */
  readonly at: number;
}

const mega = 1024 * 1024;
const hourMs = 3_600_000;
/** As G4 has it. */
const settleLimitMs = 60_000;
/** What comes and goes by itself: threads that answer, timers of the pool of connections. */
const ownKinds: ReadonlySet<string> = new Set([
  'Timeout',
  'Immediate',
  'FSReqCallback',
  'TickObject',
]);

export async function soak(options: SoakOptions): Promise<SoakReport> {
  const { ms, callers: count, say = () => undefined } = options;
  const upstream = await CountingUpstream.start({
    faulty: 0.05,
    paceMs: 50,
    longest: 60,
    random: Math.random,
  });
  const gateway = await Instance.start(optionsOf(upstream.port));
  try {
    const paid = await gateway.makeKey({ budget: 1_000_000, per: 'month', rpm: 1_000_000 });
    const free = await gateway.makeKey();
    await warmUp(gateway, [paid.key, free.key], Math.min(8000, ms / 4));
    const before = await sampled(gateway);
    const began = performance.now();
    const callers = new Callers({
      url: () => gateway.url,
      keys: [paid.key, free.key],
      count,
      leaving: 0.2,
      prefix: 'c',
    });
    const samples = await watch(gateway, { began, ms, say });
    await callers.stop();
    const { settledMs, after } = await untilSettled(gateway, before);
    await gateway.stop();
    const rows = readLedger(gateway.directory).filter(({ user }) => !user.startsWith('w'));
    const comparison = compare({ rows, calls: callers.calls, upstream, excused: () => false });
    return {
      options,
      calls: callers.calls.size,
      samples,
      before,
      after,
      settledMs,
      ...comparison,
      ...lines(samples),
    };
  } finally {
    await gateway.kill();
    await upstream.close();
  }
}

function optionsOf(port: number): InstanceOptions {
  const base = `http://127.0.0.1:${port}`;
  const api_key = 'upstream-key';
  return {
    storage: 'sqlite',
    upstream: port,
    prices: { 'up/*': { input: 1, output: 10 }, 'up-messages/*': { input: 1, output: 10 } },
    node: ['--expose-gc', '--import', new URL('soak-probe.ts', import.meta.url).href],
    config: {
      providers: {
        up: { dialect: 'openai-chat', base_url: `${base}/v1`, api_key },
        'up-messages': { dialect: 'anthropic-messages', base_url: base, api_key },
      },
    },
  };
}

/** What is loaded or compiled once is no leak. */
async function warmUp(gateway: Instance, keys: readonly string[], ms: number): Promise<void> {
  const url = (): string => gateway.url;
  const warming = new Callers({ url, keys, count: 20, leaving: 0.2, prefix: 'w' });
  await pause(ms);
  await warming.stop();
  // Connections to the upstream are kept for four seconds.
  await pause(5500);
}

async function watch(
  gateway: Instance,
  {
    began,
    ms,
    say,
  }: { readonly began: number; readonly ms: number; readonly say: (line: string) => void },
): Promise<readonly Sample[]> {
  const every = Math.min(60_000, Math.max(1000, ms / 40));
  const samples: Sample[] = [];
  for (;;) {
    const left = began + ms - performance.now();
    if (left <= 0) return samples;
    await pause(Math.min(every, left));
    const sample: Sample = { ...(await sampled(gateway)), at: performance.now() - began };
    samples.push(sample);
    const { at, heapBytes, rssBytes, loopP99 } = sample;
    say(
      `${Math.round(at / 1000)} s: heap ${(heapBytes / mega).toFixed(1)} MB, resident ${(rssBytes / mega).toFixed(0)} MB, loop p99 ${loopP99.toFixed(1)} ms`,
    );
  }
}

async function untilSettled(
  gateway: Instance,
  before: Held,
): Promise<{ readonly settledMs: number | undefined; readonly after: Held }> {
  const began = performance.now();
  for (;;) {
    await pause(1000);
    const after = await sampled(gateway);
    const live = (await gateway.admin('GET', '/api/status')).json['live_calls'];
    const more = Object.entries(after.resources).filter(
      ([kind, open]) => !ownKinds.has(kind) && open > (before.resources[kind] ?? 0),
    );
    const settledMs = performance.now() - began;
    if (live === 0 && more.length === 0) return { settledMs, after };
    if (settledMs > settleLimitMs) return { settledMs: undefined, after };
  }
}

function lines(samples: readonly Sample[]): Pick<SoakReport, 'heap' | 'rss' | 'cpu'> {
  const last = samples.at(-1)?.at ?? 0;
  const from = Math.min(hourMs, last / 3);
  const later = samples.filter(({ at }) => at >= from);
  const slope = (of: (sample: Sample) => number): Slope =>
    slopeOf(later.map((sample) => ({ x: sample.at / hourMs, y: of(sample) / mega })));
  const [first, final] = [later[0], later.at(-1)];
  const seconds = ((final?.at ?? 0) - (first?.at ?? 0)) / 1000;
  return {
    heap: slope(({ heapBytes }) => heapBytes),
    rss: slope(({ rssBytes }) => rssBytes),
    cpu: seconds > 0 ? ((final?.cpuSeconds ?? 0) - (first?.cpuSeconds ?? 0)) / seconds : 0,
  };
}

async function sampled(gateway: Instance): Promise<Held> {
  const answer = await gateway.ask('sample');
  if (!isHeld(answer)) throw new Error('the probe does not answer');
  return answer;
}

function isHeld(value: unknown): value is Held {
  return isObject(value) && typeof value['heapBytes'] === 'number';
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
