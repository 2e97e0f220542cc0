/**
 * What several gateways on one database do for each other, each of them now and then: the first one that comes
 * settles the calls of an instance that died (F81, Q2) and ends its leases of budgets; and each reads what all
 * together have spent.
 */
import type { Clock, Log } from '../core/runtime.ts';
import { leaseMs } from '../store/counters/lease.ts';
import type { LeaseExpiry } from '../store/counters/lease-expiry.ts';
import type { CallStore, Spent } from '../store/store.ts';

export interface SharedUpkeepParts {
  readonly store: Pick<CallStore, 'settleOrphans' | 'spentPage'>;
  /** Absent where no other instance shares the budgets. */
  readonly expiry?: Pick<LeaseExpiry, 'look'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Since when the store answers, on the monotonic clock; undefined while it does not. */
  upSince(): number | undefined;
  /** What all gateways together have spent, by the ledger; told in portions. */
  onSpent(spent: readonly Spent[]): void;
}

const sweepEveryMs = 5000;
const readEveryMs = 60_000;
/** Read at once; calls go on in between. */
const windowsOfPage = 1000;

export class SharedUpkeep {
  readonly #parts: SharedUpkeepParts;
  readonly #timers: readonly NodeJS.Timeout[];
  #busy: Promise<void> = Promise.resolve();
  /** Work that waits for its turn: one of a kind is enough. */
  readonly #waiting = new Set<string>();
  #closed = false;

  constructor(parts: SharedUpkeepParts) {
    this.#parts = parts;
    this.#timers = [
      setInterval(() => this.#next('sweep'), sweepEveryMs),
      setInterval(() => this.#next('readSpent'), readEveryMs),
    ];
  }

  /**
   * Settles calls that nobody has told of for a lease. Not before the store has been there for as long:
   * until then the living could not tell.
   * @throws StoreError
   */
  async sweep(): Promise<void> {
    const { store, expiry, clock, log, upSince } = this.#parts;
    const ended = (await expiry?.look()) ?? [];
    for (const [instance, nanodollars] of ended) {
      log.warn('budget_leases_expired', { instance, nanodollars });
    }
    const since = upSince();
    if (since === undefined || clock.now() - since < leaseMs) return;
    const rows = await store.settleOrphans(clock.wall() - leaseMs);
    if (rows.length > 0) log.warn('calls_recovered', { calls: rows.length });
  }

  /** Tells what all budgets have spent by the ledger. @throws StoreError */
  async readSpent(): Promise<void> {
    const { store, clock, onSpent } = this.#parts;
    const now = clock.wall();
    let after: Spent | undefined;
    do {
      const page = { limit: windowsOfPage, ...(after === undefined ? {} : { after }) };
      const spent = await store.spentPage(now, page);
      onSpent(spent);
      after = spent.length === windowsOfPage ? spent.at(-1) : undefined;
    } while (after !== undefined && !this.#closed);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#busy;
  }

  #next(work: 'sweep' | 'readSpent'): void {
    if (this.#waiting.has(work)) return;
    this.#waiting.add(work);
    this.#busy = this.#inTurn(this.#busy, work);
  }

  async #inTurn(before: Promise<void>, work: 'sweep' | 'readSpent'): Promise<void> {
    await before;
    this.#waiting.delete(work);
    if (this.#closed) return;
    try {
      await this[work]();
    } catch (error) {
      // The store is away, and says so itself; the next time finds what is left.
      this.#parts.log.debug('upkeep_put_off', { reason: String(error) });
    }
  }
}
