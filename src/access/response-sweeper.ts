/** Removes kept responses whose time is over, and the oldest where they take too much. */
import type { Log } from '../core/runtime.ts';
import type { ResponseRoom, ResponseStore } from '../store/responses.ts';
import { MinuteSweeper, pauseOfSweep } from './minute-sweeper.ts';

const batchRows = 200;

interface ResponseSweeperParts {
  readonly store: Pick<ResponseStore, 'sweep'>;
  readonly log: Log;
  /** The current one: a reload replaces it. */
  readonly room: () => ResponseRoom;
}

export class ResponseSweeper extends MinuteSweeper {
  readonly #parts: ResponseSweeperParts;

  constructor(parts: ResponseSweeperParts) {
    super();
    this.#parts = parts;
  }

  protected async sweep(): Promise<void> {
    const { store, log, room } = this.#parts;
    let rows = 0;
    try {
      while (!this.closed) {
        const removed = await store.sweep(batchRows, room());
        if (removed === 0) break;
        rows += removed;
        await pauseOfSweep();
      }
      if (rows > 0) log.debug('responses_swept', { rows });
    } catch (error) {
      // A store that is away says so itself.
      log.debug('responses_sweep_deferred', { rows, reason: String(error) });
    }
  }
}
