/**
 * Removes expired answers by `Idempotency-Key`, and the oldest ones above the size limit: a few at a time with
 * pauses, so that no call waits.
 */
import type { Log } from '../core/runtime.ts';
import type { AnswerStore } from '../store/store.ts';
import { MinuteSweeper, pauseOfSweep } from './minute-sweeper.ts';

const batchRows = 500;

export interface AnswerSweeperParts {
  readonly store: Pick<AnswerStore, 'sweep'>;
  readonly log: Log;
  /** Total size of all answers. */
  readonly totalBytes: () => number;
  /** Default: a timer. */
  readonly pause?: () => Promise<void>;
}

export class AnswerSweeper extends MinuteSweeper {
  readonly #parts: AnswerSweeperParts;

  constructor(parts: AnswerSweeperParts) {
    super();
    this.#parts = parts;
  }

  protected async sweep(): Promise<void> {
    const { store, log, totalBytes, pause = pauseOfSweep } = this.#parts;
    let rows = 0;
    try {
      while (!this.closed) {
        const removed = await store.sweep(batchRows, totalBytes());
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
