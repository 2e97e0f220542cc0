/**
 * Removes what was kept of calls when its time is over, and the oldest where all of it takes too much: some
 * at a time with pauses, so that no call waits behind it.
 */
import type { Clock, Log } from '../core/runtime.ts';
import type { ContentStore, ContentToRemove } from '../store/contents.ts';

const batchRows = 200;
const pauseMs = 50;
const everyMs = 60_000;

export interface ContentSweeperParts {
  readonly store: Pick<ContentStore, 'remove' | 'bytes'>;
  readonly clock: Clock;
  readonly log: Log;
  /** The current ones: a reload replaces them. */
  readonly limits: () => { readonly keepMs: number; readonly totalBytes: number };
  /** Default: a timer. */
  readonly pause?: () => Promise<void>;
}

export class ContentSweeper {
  readonly #parts: ContentSweeperParts;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(parts: ContentSweeperParts) {
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
    const { store, clock, log, limits } = this.#parts;
    const { keepMs, totalBytes } = limits();
    try {
      let rows = await this.#remove({ before: clock.wall() - keepMs });
      const excess = (await store.bytes()) - totalBytes;
      if (excess > 0) rows += await this.#remove({ bytes: excess });
      if (rows > 0) log.debug('contents_swept', { rows });
    } catch (error) {
      // A store that is away says so itself.
      log.debug('contents_sweep_put_off', { reason: String(error) });
    }
  }

  async #remove({ bytes, ...which }: ContentToRemove): Promise<number> {
    const { store, pause = wait } = this.#parts;
    let rows = 0;
    let left = bytes ?? Infinity;
    while (!this.#closed && left > 0) {
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

function wait(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, pauseMs).unref();
  });
}
