/**
 * Removes expired content of calls, and the oldest above the size limit: some at a time with pauses, so that no
 * call waits.
 */
import type { Clock, Log } from '../core/runtime.ts';
import type { ContentStore, ContentToRemove } from '../store/contents.ts';
import { MinuteSweeper, pauseOfSweep } from './minute-sweeper.ts';

const batchRows = 200;

export interface ContentSweeperParts {
  readonly store: Pick<ContentStore, 'remove' | 'bytes'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The current ones: a reload replaces them. */
  readonly limits: () => { readonly keepMs: number; readonly totalBytes: number };
  /** Default: a timer. */
  readonly pause?: () => Promise<void>;
}

export class ContentSweeper extends MinuteSweeper {
  readonly #parts: ContentSweeperParts;

  constructor(parts: ContentSweeperParts) {
    super();
    this.#parts = parts;
  }

  protected async sweep(): Promise<void> {
    const { store, clock, log, limits } = this.#parts;
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

  async #remove({ bytes, ...which }: ContentToRemove): Promise<number> {
    const { store, pause = pauseOfSweep } = this.#parts;
    let rows = 0;
    let left = bytes ?? Infinity;
    while (!this.closed && left > 0) {
      const removed = await store.remove(
        { ...which, ...(bytes === undefined ? {} : { bytes: left }) },
        batchRows,
      );
      if (removed.rows === 0) break;
      rows += removed.rows;
      left -= removed.bytes;
      await pause();
    }
    return rows;
  }
}
