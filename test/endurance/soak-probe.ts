/** Loaded into the gateway of a soak with `--import`: answers each message with what the process holds. */
import { monitorEventLoopDelay } from 'node:perf_hooks';

const loop = monitorEventLoopDelay({ resolution: 10 });
loop.enable();

/** What the process of a gateway holds at one moment, after a full collection. */
export interface Held {
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** How many of each kind are open. */
  readonly resources: { readonly [kind: string]: number };
  /** Ms since the last sample by which turns of the event loop came late. */
  readonly loopP50: number;
  readonly loopP99: number;
  readonly loopMax: number;
  readonly cpuSeconds: number;
}

function held(): Held {
  // 10 ms of every figure are the timer's own.
  const late = (ns: number): number => Math.max(0, ns / 1e6 - 10);
  const delays = {
    loopP50: late(loop.percentile(50)),
    loopP99: late(loop.percentile(99)),
    loopMax: late(loop.max),
  };
  const rssBytes = process.memoryUsage.rss();
  globalThis.gc?.();
  const resources: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) {
    resources[kind] = (resources[kind] ?? 0) + 1;
  }
  const cpu = process.cpuUsage();
  const sample = {
    heapBytes: process.memoryUsage().heapUsed,
    rssBytes,
    resources,
    ...delays,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
  };
  // The collection that this sample cost is not the gateway's.
  setTimeout(() => loop.reset(), 20).unref();
  return sample;
}

process.on('message', () => process.send?.(held()));
process.channel?.unref();
