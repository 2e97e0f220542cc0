/** The prices of a configuration and of those before it: a call goes by the ones that held when it began. */
import type { Clock } from '../core/runtime.ts';
import type { PriceTable } from './prices.ts';

/** Former tables that are kept. Of a call that outlived more changes than this, the oldest ones are used. */
const maxFormer = 16;

interface Held {
  readonly table: PriceTable;
  /** Monotonic ms. */
  readonly since: number;
}

export class PriceHistory {
  readonly #clock: Pick<Clock, 'now'>;
  #current: Held;
  /** The newest first. */
  #former: readonly Held[] = [];

  constructor(table: PriceTable, clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
    this.#current = { table, since: Number.NEGATIVE_INFINITY };
  }

  get current(): PriceTable {
    return this.#current.table;
  }

  /** Calls that begin from here on go by this table. */
  replace(table: PriceTable): void {
    this.#former = [this.#current, ...this.#former].slice(0, maxFormer);
    this.#current = { table, since: this.#clock.now() };
  }

  /** @param startedAt monotonic ms */
  at(startedAt: number): PriceTable {
    if (startedAt >= this.#current.since) return this.#current.table;
    const held = this.#former.find(({ since }) => startedAt >= since) ?? this.#former.at(-1);
    return (held ?? this.#current).table;
  }
}
