/**
 * Bounds how much of one turn of the event loop goes to bytes that upstreams send (G6). Without a bound an overloaded
 * loop handles all of them before it accepts connections, and a refusal takes as long as all admitted work. Deferred
 * work runs in order, a part of it in each turn; how long it waits is how late the gateway is.
 */

/** Work that may run in a later turn. */
export interface Deferrable {
  runDeferred(): void;
}

export interface EventLoopBudgetOptions {
  /** Monotonic ms. */
  readonly now?: () => number;
  /** Calls back after this turn has polled the sockets. */
  readonly behind?: (callback: () => void) => void;
}

/** Per turn. A refusal takes one or two turns and is promised within 50 ms. */
const budgetMs = 4;
/** A piece of work takes some 50 µs, so the clock is read once for several of them. */
const piecesPerClockRead = 8;
/** Entries of finished work are removed from the queue together. */
const maxFinished = 1024;

/** The part of the budget that code with deferrable work needs. */
export type DefersWork = Pick<EventLoopBudget, 'exhausted' | 'defer'>;

interface Waiting {
  readonly work: Deferrable;
  readonly since: number;
}

export class EventLoopBudget {
  readonly #now: () => number;
  readonly #behind: (callback: () => void) => void;
  #waiting: Waiting[] = [];
  /** How many entries at the head of the queue are finished. */
  #finished = 0;
  /** Pieces of work since the clock was read. */
  #pieces = 0;
  /** When this turn's first piece of work began; undefined before it. */
  #begun: number | undefined;
  #exhausted = false;
  /** Whether a callback that runs deferred work is scheduled. */
  #scheduled = false;

  constructor({
    now = () => performance.now(),
    behind = setImmediate,
  }: EventLoopBudgetOptions = {}) {
    this.#now = now;
    this.#behind = behind;
  }

  /** Whether the next piece of work must be deferred; read before each piece. */
  get exhausted(): boolean {
    if (this.#exhausted || this.#waiting.length > 0) return true;
    this.#pieces += 1;
    if (this.#pieces < piecesPerClockRead) return false;
    this.#pieces = 0;
    const now = this.#now();
    if (this.#begun === undefined) {
      this.#begun = now;
      this.#behind(() => this.#endTurn());
    }
    this.#exhausted = now - this.#begun >= budgetMs;
    return this.#exhausted;
  }

  /** Runs the work in one of the next turns, after all work that was deferred before it. */
  defer(work: Deferrable): void {
    this.#waiting.push({ work, since: this.#now() });
    this.#schedule();
  }

  /** How many ms the oldest deferred work has waited; 0 without any. */
  get waitedMs(): number {
    const next = this.#waiting[this.#finished];
    return next === undefined ? 0 : this.#now() - next.since;
  }

  #endTurn(): void {
    this.#begun = undefined;
    this.#exhausted = false;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#behind(() => this.#resume());
  }

  /** A piece that throws does not stop the others (F94). */
  #resume(): void {
    this.#scheduled = false;
    try {
      this.#work();
    } finally {
      this.#removeFinished();
      if (this.#waiting.length > 0) this.#schedule();
    }
  }

  #work(): void {
    const until = this.#now() + budgetMs;
    do {
      const next = this.#waiting[this.#finished];
      if (next === undefined) return;
      this.#finished += 1;
      next.work.runDeferred();
    } while (this.#now() < until);
  }

  #removeFinished(): void {
    if (this.#finished < Math.min(this.#waiting.length, maxFinished)) return;
    this.#waiting.splice(0, this.#finished);
    this.#finished = 0;
  }
}
