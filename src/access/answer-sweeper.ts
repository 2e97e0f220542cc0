/**
 * Removes answers by `Idempotency-Key` whose time is over, and makes room where all together take too
 * much: a few at a time with pauses, so that no call waits behind it.
 */
import type { Log } from '../core/runtime.ts';
import type { AnswerStore } from '../store/store.ts';

const batchRows = 500;
const pauseMs = 50;
const everyMs = 60_000;

export interface AnswerSweeperParts {
  readonly store: Pick<AnswerStore, 'sweep'>;
  readonly log: Log;
  /** What all answers may take. */
  readonly totalBytes: () => number;
  /** Default: a timer. */
  readonly pause?: () => Promise<void>;
}

export class AnswerSweeper {
  readonly #parts: AnswerSweeperParts;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(parts: AnswerSweeperParts) {
    this.#parts = parts;
  }

  /** Once a minute from now on. */
  start(): void {
    this.#timer = setInterval(() => void this.run(), everyMs).unref();
  }

  /** Removes all that must go now. Never throws: what failed is tried again in a minute. */
  run(): Promise<void> {
    this.#running ??= this.#sweep().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #sweep(): Promise<void> {
    const { store, log, totalBytes, pause = wait } = this.#parts;
    let rows = 0;
    try {
      while (!this.#closed) {
        const removed = await store.sweep(batchRows, totalBytes());
        if (removed === 0) break;
        rows += removed;
        await pause();
      }
      if (rows > 0) log.debug('idempotency_swept', { rows });
    } catch (error) {
      // A store that is away says so itself.
      log.debug('idempotency_sweep_put_off', { rows, reason: String(error) });
    }
  }
}

function wait(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, pauseMs).unref();
  });
}
