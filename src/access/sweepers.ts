import type { Clock, Log } from '../core/runtime.ts';
import type {
  ContentStore,
  ContentToRemove,
  ResponseRoom,
  ResponseStore,
} from '../store/sealed.ts';
import type { AnswerStore, CallStore } from '../store/store.ts';

/** Work on the store that runs once a minute, a few rows at a time with pauses, so that no call waits. */

const pauseMs = 50;
const everyMs = 60_000;

abstract class MinuteSweeper {
  /** No further rows: it is being closed. */
  protected closed = false;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  /** Removes everything that has expired. Never throws: failures are retried in a minute. */
  protected abstract sweep(): Promise<void>;

  /** Once a minute from now on. */
  start(): void {
    this.#timer = setInterval(() => void this.run(), everyMs).unref();
  }

  /** Runs one sweep, or joins the running one. Never throws. */
  run(): Promise<void> {
    this.#running ??= this.sweep().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async close(): Promise<void> {
    this.closed = true;
    clearInterval(this.#timer);
    await this.#running;
  }
}

/** The time between two pieces of a sweep. */
function pauseOfSweep(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, pauseMs).unref();
  });
}

// Removes expired answers by `Idempotency-Key`, and the oldest ones above the size limit: a few at a time with
// pauses, so that no call waits.

const answerRows = 500;

interface AnswerSweeperDeps {
  readonly store: Pick<AnswerStore, 'sweep'>;
  readonly log: Log;
  /** Total size of all answers. */
  readonly totalBytes: () => number;
  /** Default: a timer. */
  readonly pause?: () => Promise<void>;
}

export class AnswerSweeper extends MinuteSweeper {
  readonly #deps: AnswerSweeperDeps;

  constructor(deps: AnswerSweeperDeps) {
    super();
    this.#deps = deps;
  }

  protected async sweep(): Promise<void> {
    const { store, log, totalBytes, pause = pauseOfSweep } = this.#deps;
    let rows = 0;
    try {
      while (!this.closed) {
        const removed = await store.sweep(answerRows, totalBytes());
        if (removed === 0) break;
        rows += removed;
        await pause();
      }
      if (rows > 0) log.debug('idempotency_swept', { rows });
    } catch (error) {
      // An unavailable store reports itself.
      log.debug('idempotency_sweep_deferred', { rows, reason: String(error) });
    }
  }
}

// Removes expired content of calls, and the oldest above the size limit: some at a time with pauses, so that no
// call waits.

const contentRows = 200;

interface ContentSweeperDeps {
  readonly store: Pick<ContentStore, 'remove' | 'bytes'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The current ones: a reload replaces them. */
  readonly limits: () => { readonly keepMs: number; readonly totalBytes: number };
  /** Default: a timer. */
  readonly pause?: () => Promise<void>;
}

export class ContentSweeper extends MinuteSweeper {
  readonly #deps: ContentSweeperDeps;

  constructor(deps: ContentSweeperDeps) {
    super();
    this.#deps = deps;
  }

  protected async sweep(): Promise<void> {
    const { store, clock, log, limits } = this.#deps;
    const { keepMs, totalBytes } = limits();
    try {
      let rows = await this.#remove({ before: clock.wall() - keepMs });
      const excess = (await store.bytes()) - totalBytes;
      if (excess > 0) rows += await this.#remove({ bytes: excess });
      if (rows > 0) log.debug('contents_swept', { rows });
    } catch (error) {
      // An unavailable store reports itself.
      log.debug('contents_sweep_deferred', { reason: String(error) });
    }
  }

  async #remove(which: ContentToRemove): Promise<number> {
    const { store, pause = pauseOfSweep } = this.#deps;
    let rows = 0;
    let left = which.bytes ?? Infinity;
    while (!this.closed && left > 0) {
      const removed = await store.remove(
        which.bytes === undefined ? which : { bytes: left },
        contentRows,
      );
      if (removed.rows === 0) break;
      rows += removed.rows;
      left -= removed.bytes;
      await pause();
    }
    return rows;
  }
}

// Removes expired stored responses, and the oldest above the size limit.

/** A pass beyond the limits may read the square of this many rows, and calls wait for a write of SQLite. */
const responseRows = 100;

interface ResponseSweeperDeps {
  readonly store: Pick<ResponseStore, 'sweep'>;
  readonly log: Log;
  /** The current one: a reload replaces it. */
  readonly room: () => ResponseRoom;
}

export class ResponseSweeper extends MinuteSweeper {
  readonly #deps: ResponseSweeperDeps;

  constructor(deps: ResponseSweeperDeps) {
    super();
    this.#deps = deps;
  }

  protected async sweep(): Promise<void> {
    const { store, log, room } = this.#deps;
    let rows = 0;
    try {
      while (!this.closed) {
        const removed = await store.sweep(responseRows, room());
        if (removed === 0) break;
        rows += removed;
        await pauseOfSweep();
      }
      if (rows > 0) log.debug('responses_swept', { rows });
    } catch (error) {
      // An unavailable store reports itself.
      log.debug('responses_sweep_deferred', { rows, reason: String(error) });
    }
  }
}

// Removes expired calls: a thousand rows at a time with pauses, so that no call waits and memory stays bounded.

const batchRows = 1000;
const rowsPauseMs = 50;
const firstAfterMs = 60_000;
const rowsEveryMs = 3_600_000;

interface RetentionDeps {
  readonly store: Pick<CallStore, 'prune'>;
  readonly clock: Clock;
  readonly log: Log;
  /** How long calls are kept; Infinity = for ever. */
  readonly keepMs: number;
  /** How long hourly sums are kept. */
  readonly keepHoursMs: number;
  /** Default: a timer. */
  readonly pause?: () => Promise<void>;
}

export class RetentionTask {
  readonly #deps: RetentionDeps;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(deps: RetentionDeps) {
    this.#deps = deps;
  }

  /** Once an hour from now on, the first time in a minute, after the work of the start. */
  start(): void {
    this.#next(firstAfterMs);
  }

  /** Removes everything that has expired. Never throws: failures are retried in an hour. */
  async run(): Promise<void> {
    const { store, clock, log, keepMs, keepHoursMs, pause = wait } = this.#deps;
    const now = clock.wall();
    const retention = {
      callsBefore: Math.max(0, now - keepMs),
      hoursBefore: Math.max(0, now - keepHoursMs),
    };
    let rows = 0;
    try {
      for (;;) {
        if (this.#closed) return;
        const pruned = await store.prune(retention, batchRows);
        rows += pruned;
        if (pruned < batchRows) break;
        await pause();
      }
      if (rows > 0) log.info('calls_pruned', { rows });
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      log.error('prune_failed', { rows, reason });
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #next(delayMs: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => {
      void this.run().finally(() => this.#next(rowsEveryMs));
    }, delayMs).unref();
  }
}

function wait(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, rowsPauseMs).unref();
  });
}
