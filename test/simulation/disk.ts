/** The store of a history: it outlives the processes, takes its time, and fails now and then. */
import { altered, memoryStore } from '../support/memory-store.ts';
import { StoreError } from '../../src/store/store-error.ts';
import type { Store } from '../../src/store/store.ts';
import type { Dice } from './dice.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A write takes so many ms at most. */
export const slowestWrite = 30;

export class Disk {
  readonly rows: Store;
  readonly #time: VirtualTime;
  readonly #dice: Dice;
  #opened = 0;
  #troubleUntil = -1;

  constructor(time: VirtualTime, dice: Dice) {
    this.#time = time;
    this.rows = memoryStore(time);
    this.#dice = dice;
  }

  /** Every write fails for so long. */
  trouble(ms: number): void {
    this.#troubleUntil = this.#time.now() + ms;
  }

  /** Whether writes failed within the last ms, so that nothing can be said of what is written. */
  troubledWithin(ms: number): boolean {
    return this.#time.now() - this.#troubleUntil < ms;
  }

  /** Who opened it last is dead. What is on its way is written or not. */
  abandon(): void {
    this.#opened += 1;
  }

  /** The store as one process has it. */
  open(): Store {
    this.#opened += 1;
    const mine = this.#opened;
    const write = <T>(work: () => Promise<T>): Promise<T> => this.#write(mine, work);
    return altered(this.rows, {
      calls: {
        record: (rows) => write(() => this.rows.calls.record(rows)),
        open: (calls) => write(() => this.rows.calls.open(calls)),
      },
    });
  }

  #write<T>(opener: number, work: () => Promise<T>): Promise<T> {
    const time = this.#time;
    const ms = this.#dice.int(0, slowestWrite);
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    time.after(ms, () => {
      // The process that waited is gone: its last write may have come through.
      if (this.#opened !== opener) {
        if (this.#dice.chance(0.5)) void work();
        return;
      }
      if (time.now() < this.#troubleUntil) reject(new StoreError('full', 'no space, simulated'));
      else work().then(resolve, reject);
    });
    return promise;
  }
}
