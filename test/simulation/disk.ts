/** The store of a history: it outlives the processes, takes its time, and fails now and then. */
import { MemoryStore } from '../../src/store/memory.ts';
import { StoreError } from '../../src/store/store-error.ts';
import type { CallRow, OpenCall, Store } from '../../src/store/store.ts';
import type { Dice } from './dice.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A write takes so many ms at most. */
export const slowestWrite = 30;

export class Disk {
  readonly rows = new MemoryStore();
  readonly #time: VirtualTime;
  readonly #dice: Dice;
  #opened = 0;
  #troubleUntil = -1;

  constructor(time: VirtualTime, dice: Dice) {
    this.#time = time;
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
    const store: Store = Object.create(this.rows, {
      recordCalls: {
        value: (rows: readonly CallRow[]) => write(() => this.rows.recordCalls(rows)),
      },
      openCalls: {
        value: (calls: readonly OpenCall[]) => write(() => this.rows.openCalls(calls)),
      },
    }) as Store;
    return bound(store, this.rows);
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

/** Methods that are not overridden are those of the store itself. */
function bound(store: Store, original: MemoryStore): Store {
  return new Proxy(store, {
    get: (target, name) => {
      const own: unknown = Reflect.getOwnPropertyDescriptor(target, name)?.value;
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(original, name);
      return typeof value === 'function' ? value.bind(original) : value;
    },
  });
}
