/** What the operating system and the event loop say of this process, a few times a second. */
import { totalmem } from 'node:os';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { EventLoopBudget } from '../../core/event-loop-budget.ts';

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
const lookEveryMs = 250;
/** Finer than the delays that matter; each turn of it costs a microsecond. */
const resolutionMs = 10;

/** Its timer keeps nothing alive. */
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

/** As it was where no file can be opened to read it from, since no descriptor is left (F92). Costs some microseconds. */
function rssOfProcess(): number {
  try {
    lastRssBytes = process.memoryUsage.rss();
  } catch {
    // The next look may tell.
  }
  return lastRssBytes;
}

/** This process. @param defer what it puts off to later turns of its event loop. */
export function loadOfProcess(defer: Pick<EventLoopBudget, 'waitedMs'>): LoadSource {
  return Object.assign((tell: (sample: LoadSample) => void) => watchProcess(defer, tell), {
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

// How hard the process is pressed, in steps (G7): from the second on memory alone decides, since loop
// delay is what `call-slots.ts` answers. A step is left a little below where it was entered, so that
// it does not flap.

/** 0 = nothing; 1 = no keep-alive, no large bodies; 2 = no new calls; 3 = slow readers are cut. */
export type Step = 0 | 1 | 2 | 3;

export interface Situation extends LoadSample {
  /** What the process may use. */
  readonly memoryBytes: number;
  /** Whether no call runs: then there is nothing that refusing calls could free. */
  readonly idle: boolean;
  /** Monotonic ms. */
  readonly now: number;
}

/** Shares of the memory from which on each step holds. */
const shares = [0.85, 0.92, 0.97] as const;
/** How far below its share a step is left. */
const slack = 0.03;
/** The usual turn of the loop takes longer than this… */
const lateMs = 200;
/** …for so long: the first step. */
const lateForMs = 1000;

export class PressureLevel {
  #step: Step = 0;
  #share = 0;
  #lateSince: number | undefined;

  get step(): Step {
    return this.#step;
  }

  /** Used part of the memory, by the worse of resident memory and heap. */
  get share(): number {
    return this.#share;
  }

  /** Looks at a sample; true when the step is another one now. */
  update(situation: Situation): boolean {
    const { rssBytes, heapShare, memoryBytes, idle } = situation;
    this.#share = Math.max(rssBytes / memoryBytes, heapShare);
    const wanted = Math.max(this.#stepOfMemory(), this.#isLate(situation) ? 1 : 0);
    // Resident memory may never come down by itself: who serves nobody always takes a call.
    const step = asStep(idle ? Math.min(wanted, 1) : wanted);
    const changed = step !== this.#step;
    this.#step = step;
    return changed;
  }

  #stepOfMemory(): number {
    return shares.filter((share, i) => this.#share >= share - (this.#step > i ? slack : 0)).length;
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
