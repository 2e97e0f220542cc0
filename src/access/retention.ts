/**
 * Removes expired calls: a thousand rows at a time with pauses, so that no call waits and memory stays bounded.
 */
import type { Clock, Log } from '../core/runtime.ts';
import type { CallStore } from '../store/store.ts';

const batchRows = 1000;
const pauseMs = 50;
const firstAfterMs = 60_000;
const everyMs = 3_600_000;

export interface RetentionParts {
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
  readonly #parts: RetentionParts;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(parts: RetentionParts) {
    this.#parts = parts;
  }

  /** Once an hour from now on, the first time in a minute, after the work of the start. */
  start(): void {
    this.#next(firstAfterMs);
  }

  /** Removes everything that has expired. Never throws: failures are retried in an hour. */
  async run(): Promise<void> {
    const { store, clock, log, keepMs, keepHoursMs, pause = wait } = this.#parts;
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
      void this.run().finally(() => this.#next(everyMs));
    }, delayMs).unref();
  }
}

function wait(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, pauseMs).unref();
  });
}
