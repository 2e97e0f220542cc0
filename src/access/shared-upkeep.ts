/**
 * Maintenance that gateways on one database do for each other: one instance settles the calls of an instance
 * that died (F81, Q2) and ends its budget leases, and each reads the total spending.
 */
import type { Clock, Log } from '../core/runtime.ts';
import { leaseMs } from '../store/counters/counters.ts';
import type { LeaseExpiry } from '../store/leases/lease-expiry.ts';
import type { CallStore, Spent } from '../store/store.ts';
import { overEverywhere } from './windows.ts';

export interface SharedUpkeepDeps {
  readonly store: Pick<CallStore, 'settleOrphans' | 'spentPage'>;
  /** Absent if no other instance shares the budgets. */
  readonly expiry?: Pick<LeaseExpiry, 'look'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Since when the store has been available, on the monotonic clock; undefined while it is not. */
  upSince(): number | undefined;
  /** Total spending of all gateways by the ledger, in portions. */
  onSpent(spent: readonly Spent[]): void;
}

const sweepEveryMs = 5000;
const readEveryMs = 60_000;
/** Windows per page; calls are served between pages. */
const windowsOfPage = 1000;

export class SharedUpkeep {
  readonly #deps: SharedUpkeepDeps;
  readonly #timers: readonly NodeJS.Timeout[];
  #busy: Promise<void> = Promise.resolve();
  /** Queued work; one entry of a kind is enough. */
  readonly #waiting = new Set<string>();
  #closed = false;

  constructor(deps: SharedUpkeepDeps) {
    this.#deps = deps;
    this.#timers = [
      setInterval(() => this.#next('sweep'), sweepEveryMs),
      setInterval(() => this.#next('readSpent'), readEveryMs),
    ];
  }

  /**
   * Ends the leases of dead instances, and settles calls without a heartbeat for the length of a lease.
   * @throws StoreError
   */
  async sweep(): Promise<void> {
    try {
      await this.#deps.expiry?.look();
    } finally {
      // Leases that cannot be ended hold up no calls.
      await this.#settleOrphans();
    }
  }

  /** Waits until the store has been up for the length of a lease, since live instances could not report before. */
  async #settleOrphans(): Promise<void> {
    const { store, clock, log, upSince } = this.#deps;
    const since = upSince();
    if (since === undefined || clock.now() - since < leaseMs) return;
    const rows = await store.settleOrphans(clock.wall() - leaseMs);
    if (rows.length > 0) log.warn('calls_recovered', { calls: rows.length });
  }

  /** Reports the spending of all budgets by the ledger. @throws StoreError */
  async readSpent(): Promise<void> {
    const { store, clock, onSpent } = this.#deps;
    const endingAfter = overEverywhere(clock.wall());
    let after: Spent | undefined;
    do {
      const page = { limit: windowsOfPage, ...(after === undefined ? {} : { after }) };
      const spent = await store.spentPage(endingAfter, page);
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
      // The unavailable store reports itself; the next run continues.
      this.#deps.log.debug('upkeep_deferred', { reason: String(error) });
    }
  }
}
