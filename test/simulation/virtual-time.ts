/**
 * Time that passes only when nothing is left to do. Timers of Node's globals are taken over while it is
 * installed, so that whatever the gateway waits for is waited for here and is seen when it is left over.
 */
import type { Clock } from '../../src/core/runtime.ts';

const globals = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
};
const realImmediate = globals.setImmediate;

/** The wall clock of every history begins here: a Saturday. */
const epoch = Date.UTC(2026, 10, 21, 12);

interface Entry {
  at: number;
  order: number;
  readonly run: () => void;
  /** Set for the gateway's own timers; what the world does is no timer of it. */
  readonly timer: Timer | undefined;
  live: boolean;
}

export class VirtualTime implements Clock {
  #now = 0;
  #order = 0;
  readonly #heap: Entry[] = [];
  #timers = 0;
  readonly #settle: () => Promise<void>;

  /** @param settle how to wait until all is done that needs no time */
  constructor(settle: () => Promise<void> = settleStreams) {
    this.#settle = settle;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return epoch + Math.floor(this.#now);
  }

  /** How many timers of the gateway run. */
  get timers(): number {
    return this.#timers;
  }

  /** Something that the world does later. */
  after(ms: number, run: () => void): () => void {
    const entry = this.#add(ms, run, undefined);
    return () => {
      entry.live = false;
    };
  }

  /** For the gateway's waits. */
  readonly later = (ms: number, run: () => void): (() => void) => {
    const timer = this.start(ms, run, undefined);
    return () => timer.close();
  };

  start(ms: number, run: () => void, every: number | undefined): Timer {
    return new Timer(this, { ms, run, every });
  }

  arm(timer: Timer, ms: number, run: () => void): Entry {
    this.#timers += 1;
    return this.#add(ms, run, timer);
  }

  disarm(entry: Entry): void {
    if (!entry.live) return;
    entry.live = false;
    this.#timers -= 1;
  }

  /** All timers are gone, as those of a process that was killed. */
  forgetTimers(): void {
    for (const entry of this.#heap) if (entry.timer !== undefined) this.disarm(entry);
  }

  /**
   * Does what is due, one thing after the other, until nothing is left or the time has come.
   * @throws Error when something goes on for ever.
   */
  async run(until: number, maxSteps = 200_000): Promise<void> {
    for (let step = 0; ; step++) {
      const entry = this.#pop(until);
      if (entry === undefined) break;
      if (step > maxSteps) throw new Error(`still busy after ${maxSteps} steps`);
      this.#now = Math.max(this.#now, entry.at);
      entry.run();
      await this.#settle();
    }
    if (until !== Number.POSITIVE_INFINITY) this.#now = Math.max(this.#now, until);
  }

  /** The time takes over the process's timers; the result gives them back. */
  install(): () => void {
    const clear = (timer?: unknown): void => {
      if (timer instanceof Timer) timer.close();
      else if (timer !== undefined) globals.clearTimeout(timer as NodeJS.Timeout);
    };
    const replaced: object = {
      setTimeout: (run: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) =>
        this.start(ms, () => run(...args), undefined),
      setInterval: (run: (...args: unknown[]) => void, ms = 1, ...args: unknown[]) =>
        this.start(ms, () => run(...args), Math.max(1, ms)),
      setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) =>
        this.start(0, () => run(...args), undefined),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    };
    current.time = this;
    Object.assign(globalThis, replaced);
    return () => {
      Object.assign(globalThis, globals);
    };
  }

  #add(ms: number, run: () => void, timer: Timer | undefined): Entry {
    this.#order += 1;
    const at = this.#now + (Number.isFinite(ms) && ms > 0 ? ms : 0);
    const entry: Entry = { at, order: this.#order, run, timer, live: true };
    this.#heap.push(entry);
    this.#up(this.#heap.length - 1);
    return entry;
  }

  /** The next live entry that is due. */
  #pop(until: number): Entry | undefined {
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || (first.live && first.at > until)) return undefined;
      const last = this.#heap.pop();
      if (last !== undefined && this.#heap.length > 0) {
        this.#heap[0] = last;
        this.#down();
      }
      if (!first.live) continue;
      if (first.timer === undefined) first.live = false;
      else this.disarm(first);
      return first;
    }
  }

  #up(from: number): void {
    for (let at = from; at > 0;) {
      const parent = (at - 1) >> 1;
      if (!this.#swapIfLess(at, parent)) return;
      at = parent;
    }
  }

  #down(): void {
    for (let at = 0; ;) {
      const left = 2 * at + 1;
      const right = left + 1;
      let least = at;
      if (this.#less(left, least)) least = left;
      if (this.#less(right, least)) least = right;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #swapIfLess(at: number, parent: number): boolean {
    if (!this.#less(at, parent)) return false;
    this.#swap(at, parent);
    return true;
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return;
    this.#heap[one] = b;
    this.#heap[other] = a;
  }

  #less(one: number, other: number): boolean {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return false;
    return a.at < b.at || (a.at === b.at && a.order < b.order);
  }
}

/** undici keeps one timer for all its connections, over all histories: it goes by the current one's time. */
const current: { time?: VirtualTime } = {};

interface Waiting {
  readonly ms: number;
  readonly run: () => void;
  /** Of an interval. */
  readonly every: number | undefined;
}

/** Looks like Node's. */
class Timer {
  readonly #waiting: Waiting;
  #time: VirtualTime;
  #entry: Entry | undefined;

  constructor(time: VirtualTime, waiting: Waiting) {
    this.#time = time;
    this.#waiting = waiting;
    this.#arm(waiting.ms);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    this.close();
    this.#time = current.time ?? this.#time;
    this.#arm(this.#waiting.ms);
    return this;
  }

  close(): this {
    if (this.#entry !== undefined) this.#time.disarm(this.#entry);
    this.#entry = undefined;
    return this;
  }

  #arm(ms: number): void {
    const { run, every } = this.#waiting;
    this.#entry = this.#time.arm(this, ms, () => {
      this.#entry = undefined;
      if (every !== undefined) this.#arm(every);
      run();
    });
  }
}

/** Until promises and streams have done all they can without time passing: a turn of the event loop. */
function settleStreams(): Promise<void> {
  return new Promise((resolve) => {
    realImmediate(resolve);
  });
}

/** Until promises have done all they can. Node empties the queue of promises before it runs the next tick. */
export function settlePromises(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
