/** Samples of memory and event loop of this process, several times a second. */
import { totalmem } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { EventLoopBudget } from '../../core/event-loop-budget.ts';

/** One sample of the process. */
export interface LoadSample {
  readonly rssBytes: number;
  /** Used share of the maximum heap, 0 to 1. */
  readonly heapShare: number;
  /**
   * Delay of the event loop, in ms: the median turn since the last sample beyond the timer's resolution, or the
   * age of deferred work.
   */
  readonly delayMs: number;
  /** Share of the time in which the event loop was busy, 0 to 1. */
  readonly busy: number;
}

/** Delivers samples until the returned function is called. Tests deliver their own. */
export interface LoadSource {
  (tell: (sample: LoadSample) => void): () => void;
  /** Current resident memory of the process; absent = only the last sample is known. */
  readonly rssBytes?: () => number;
}

/** The same interval as Envoy's overload manager. */
const lookEveryMs = 250;
/** Finer than the relevant delays; each of its ticks costs a microsecond. */
const resolutionMs = 10;

/** The timer does not keep the process alive. */
function watchProcess(
  defer: Pick<EventLoopBudget, 'waitedMs'>,
  tell: (sample: LoadSample) => void,
): () => void {
  const turns = monitorEventLoopDelay({ resolution: resolutionMs });
  turns.enable();
  let lookedAt = performance.now();
  let used = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const now = performance.now();
    // The median, not the mean: one long garbage collection is not overload. Without a whole turn in between,
    // the lateness of this timer counts.
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
      delayMs: Math.max(0, usual, late, defer.waitedMs),
      busy: performance.eventLoopUtilization(used, before).utilization,
    });
  }, lookEveryMs).unref();
  return () => {
    clearInterval(timer);
    turns.disable();
  };
}

let lastRssBytes = 0;

/** The previous value if no file descriptor is left to read it (F92). Costs some microseconds. */
function rssOfProcess(): number {
  try {
    lastRssBytes = process.memoryUsage.rss();
  } catch {
    // The next sample may succeed.
  }
  return lastRssBytes;
}

/** Samples this process. @param defer the work that it defers to later turns of its event loop. */
export function loadOfProcess(defer: Pick<EventLoopBudget, 'waitedMs'>): LoadSource {
  return Object.assign((tell: (sample: LoadSample) => void) => watchProcess(defer, tell), {
    rssBytes: rssOfProcess,
  });
}

/** Memory limit of this process: its control group's, or else the machine's memory. */
export function memoryOfProcess(): number {
  const bound = process.constrainedMemory();
  const total = totalmem();
  return bound > 0 && bound < total ? bound : total;
}

/** The maximum heap of V8. */
export function heapOfProcess(): number {
  return getHeapStatistics().heap_size_limit;
}

type Collector = (how: object) => void;

let collector: Collector | undefined;

/**
 * What is collected. `young`: the young generation, in some milliseconds, which also shrinks it. `full`: all garbage.
 * `compact`: the heap is compacted, too, and free memory returned to the system; it takes up to a second.
 */
export type Collection = 'young' | 'full' | 'compact';

const waysToCollect: { readonly [C in Collection]: object } = {
  young: { type: 'minor' },
  full: { type: 'major' },
  compact: { type: 'major', execution: 'sync', flavor: 'last-resort' },
};

/**
 * Collects garbage now. V8 knows its own heap limit but not `limits.memory`, and a process that refuses calls
 * allocates nothing and would stay full of garbage. Without `compact` V8 keeps free memory, and resident memory stays
 * high.
 */
export function collectGarbage(collection: Collection): void {
  if (collector === undefined) {
    setFlagsFromString('--expose-gc');
    const found: unknown = runInNewContext('gc');
    // V8 takes saved code (scripts/program/run.cjs) only with the flags under which it was saved.
    setFlagsFromString('--no-expose-gc');
    collector = isCollector(found) ? found : () => undefined;
  }
  collector(waysToCollect[collection]);
}

/**
 * Collects all garbage once, in some 20 ms. Until its first full collection, V8 lowers the limit of the old
 * generation with each collection of the young one. The full collection would then come in the first seconds of calls,
 * in steps of up to several milliseconds.
 */
export function collectGarbageOfStart(): void {
  collectGarbage('full');
}

function isCollector(found: unknown): found is Collector {
  return typeof found === 'function';
}

// Pressure levels of the process (G7): from the second one on memory alone decides, since `overload.ts`
// answers loop delay. A level is left slightly below its threshold, so that it does not flap.

/** 0 = none; 1 = no keep-alive, no large bodies; 2 = no new calls; 3 = slow readers are cut. */
export type Step = 0 | 1 | 2 | 3;

export interface Situation extends LoadSample {
  /** Memory limit of the process. */
  readonly memoryBytes: number;
  /** Whether no call runs: then refusing calls frees nothing. */
  readonly idle: boolean;
  /** Monotonic ms. */
  readonly now: number;
}

/** Memory shares at which each level begins. */
const shares = [0.85, 0.92, 0.97] as const;
/** How far below its threshold a level is left. */
const slack = 0.03;
/** The event loop is late above this delay… */
const lateMs = 200;
/** …for this long: the first level. */
const lateForMs = 1000;

export class PressureLevel {
  #step: Step = 0;
  #share = 0;
  #lateSince: number | undefined;

  get step(): Step {
    return this.#step;
  }

  /** Used share of the memory: the higher of resident memory and heap. */
  get share(): number {
    return this.#share;
  }

  /** Evaluates a sample; true when the level changed. */
  update(situation: Situation): boolean {
    const { rssBytes, heapShare, memoryBytes, idle } = situation;
    this.#share = Math.max(rssBytes / memoryBytes, heapShare);
    const wanted = Math.max(
      shares.filter((share, i) => this.#share >= share - (this.#step > i ? slack : 0)).length,
      this.#isLate(situation) ? 1 : 0,
    );
    // Resident memory may never fall by itself: an idle process always accepts a call.
    const step = asStep(idle ? Math.min(wanted, 1) : wanted);
    const changed = step !== this.#step;
    this.#step = step;
    return changed;
  }

  #isLate({ delayMs, now }: Situation): boolean {
    if (delayMs <= lateMs) this.#lateSince = undefined;
    else this.#lateSince ??= now;
    return this.#lateSince !== undefined && now - this.#lateSince >= lateForMs;
  }
}

function asStep(value: number): Step {
  return value === 1 || value === 2 || value === 3 ? value : 0;
}

/**
 * Runs work that is due for thousands of connections at once, a part of it in each turn of the event loop
 * (G10), so that other requests are served in between. Half-open heads that arrive together also time out
 * together.
 */
const budgetMs = 2;

export class DeferredWork {
  #waiting: (() => void)[] = [];
  #next = 0;

  /** Runs the work soon, in the order of `add` calls. */
  add(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(() => this.#turn());
  }

  #turn(): void {
    const until = performance.now() + budgetMs;
    while (this.#next < this.#waiting.length && performance.now() < until) {
      this.#waiting[this.#next]?.();
      this.#next += 1;
    }
    if (this.#next < this.#waiting.length) {
      setImmediate(() => this.#turn());
      return;
    }
    this.#waiting = [];
    this.#next = 0;
  }
}
