/** What the operating system and the event loop say of this process, a few times a second. */
import { totalmem } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { TurnShare } from '../../core/turn-share.ts';

/** One look at the process. */
export interface LoadSample {
  readonly rssBytes: number;
  /** Used part of the largest heap that the process may have, 0 to 1. */
  readonly heapShare: number;
  /**
   * How late the event loop is, in ms: how much longer than nothing its usual turn took since the last look, or how
   * long what was put off to later turns has waited by now.
   */
  readonly delayMs: number;
  /** Part of that time in which the event loop had something to do, 0 to 1. */
  readonly busy: number;
}

/** Tells samples until the result is called. Tests tell their own. */
export interface LoadSource {
  (tell: (sample: LoadSample) => void): () => void;
  /** What the process uses at this moment; absent = nobody knows more than the last look. */
  readonly rssBytes?: () => number;
}

/** As often as Envoy's overload manager looks. */
export const lookEveryMs = 250;
/** Finer than the delays that matter; each turn of it costs a microsecond. */
const resolutionMs = 10;

/** Its timer keeps nothing alive. */
function watchProcess(
  putOff: Pick<TurnShare, 'waitedMs'>,
  tell: (sample: LoadSample) => void,
): () => void {
  const turns = monitorEventLoopDelay({ resolution: resolutionMs });
  turns.enable();
  let lookedAt = performance.now();
  let used = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.now();
    // The middle, not the mean: one long collection is no overload. Without a whole turn in between,
    // the lateness of this very timer tells.
    const usual = turns.count > 1 ? turns.percentile(50) / 1e6 - resolutionMs : 0;
    const late = turns.count > 1 ? 0 : now - lookedAt - lookEveryMs;
    turns.reset();
    lookedAt = now;
    const before = used;
    used = performance.eventLoopUtilization();
    const { used_heap_size: heap, heap_size_limit: most } = getHeapStatistics();
    tell({
      rssBytes: rssOfProcess(),
      heapShare: heap / most,
      delayMs: Math.max(0, usual, late, putOff.waitedMs),
      busy: performance.eventLoopUtilization(used, before).utilization,
    });
  }, lookEveryMs).unref();
  return () => {
    clearInterval(timer);
    turns.disable();
  };
}

let lastRssBytes = 0;

/** As it was where no file can be opened to read it from, since no descriptor is left (F92). Costs some microseconds. */
function rssOfProcess(): number {
  try {
    lastRssBytes = process.memoryUsage.rss();
  } catch {
    // The next look may tell.
  }
  return lastRssBytes;
}

/** This process. @param putOff what it puts off to later turns of its event loop. */
export function loadOfProcess(putOff: Pick<TurnShare, 'waitedMs'>): LoadSource {
  return Object.assign((tell: (sample: LoadSample) => void) => watchProcess(putOff, tell), {
    rssBytes: rssOfProcess,
  });
}

/** What this process may use: its control group's bound, or else the machine's memory. */
export function memoryOfProcess(): number {
  const bound = process.constrainedMemory();
  const total = totalmem();
  return bound > 0 && bound < total ? bound : total;
}

/** The largest heap that V8 allows itself. */
export function heapOfProcess(): number {
  return getHeapStatistics().heap_size_limit;
}

type Collector = (how?: object) => void;

let collector: Collector | undefined;

/**
 * Collects garbage now. V8 knows its own bound and not `limits.memory`, and a process that refuses
 * calls allocates nothing: left alone it would stay full of garbage.
 * @param thorough also gives the system back what is free, and moves what lies in between: V8 keeps it
 * otherwise, and resident memory would stay high for ever.
 */
export function collectGarbage(thorough: boolean): void {
  if (collector === undefined) {
    setFlagsFromString('--expose-gc');
    const found: unknown = runInNewContext('gc');
    collector = isCollector(found) ? found : () => undefined;
  }
  if (thorough) collector({ type: 'major', execution: 'sync', flavor: 'last-resort' });
  else collector();
}

function isCollector(found: unknown): found is Collector {
  return typeof found === 'function';
}
