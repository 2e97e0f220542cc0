/**
 * What several gateways on one book do for each other, each of them now and then: whoever comes first
 * settles the calls of one that died (F81, Q2); and each compares the counters with the ledger (Q2).
 */
import type { Clock, Log } from '../core/runtime.ts';
import type { CallRow, CallStore, Spent } from '../store/store.ts';
import type { Counters, Drift } from '../store/counters.ts';
import { leaseMs } from '../store/lease.ts';

export interface SharedUpkeepParts {
  readonly store: Pick<CallStore, 'settleOrphans' | 'spentPage'>;
  readonly counters: Pick<
    Counters,
    'settle' | 'settledIn' | 'repair' | 'healthy' | 'abandoned' | 'booked'
  >;
  /** Records calls that nobody else will (`PostgresStore.recordLost`); absent where there are no others. */
  readonly recordLost?: (rows: readonly CallRow[]) => Promise<ReadonlyMap<string, number>>;
  readonly clock: Clock;
  readonly log: Log;
  /** Since when the store answers, on the monotonic clock; undefined while it does not. */
  upSince(): number | undefined;
  /** What all gateways together have spent, by the ledger; told in portions. */
  onSpent(spent: readonly Spent[]): void;
}

const sweepEveryMs = 5000;
const compareEveryMs = 60_000;
/** Read and compared at once; calls go on in between. */
const windowsOfPage = 1000;

/**
 * A difference counts once two looks found the same: calls that just end are in one and not the other.
 * What the ledger has and the counter has not is put right then; what only the counter has may still be
 * on its way to the ledger, from a gateway that could not write for a while.
 */
const looksOfLess = 2;
const looksOfMore = 5;

interface SeenDrift {
  readonly nanodollars: number;
  readonly looks: number;
}

export class SharedUpkeep {
  readonly #parts: SharedUpkeepParts;
  readonly #timers: readonly NodeJS.Timeout[];
  #drifts: ReadonlyMap<string, SeenDrift> = new Map();
  #busy: Promise<void> = Promise.resolve();
  /** Work that waits for its turn: one of a kind is enough. */
  readonly #waiting = new Set<string>();
  #closed = false;

  constructor(parts: SharedUpkeepParts) {
    this.#parts = parts;
    this.#timers = [
      setInterval(() => this.#next('sweep'), sweepEveryMs),
      setInterval(() => this.#next('compare'), compareEveryMs),
    ];
  }

  /**
   * Settles calls that nobody has told of for a lease. Not before the store has been there for as long:
   * until then the living could not tell.
   * @throws StoreError
   */
  async sweep(): Promise<void> {
    const { store, counters, clock, log, upSince } = this.#parts;
    const since = upSince();
    if (since === undefined || clock.now() - since < leaseMs) return;
    const rows = await store.settleOrphans(clock.wall() - leaseMs);
    if (rows.length > 0) log.warn('calls_recovered', { calls: rows.length });
    for (const row of rows) counters.settle(row.id, usedBy(row));
    await this.#bookLost();
  }

  /** Calls that a dead gateway told nobody of are booked with what they held (Q1). */
  async #bookLost(): Promise<void> {
    const { counters, log, recordLost } = this.#parts;
    if (recordLost === undefined || !counters.healthy()) return;
    const lost = (await counters.abandoned?.()) ?? [];
    if (lost.length === 0) return;
    const costs = await recordLost(lost);
    for (const [id, nanodollars] of costs) await counters.booked?.(id, nanodollars);
    log.warn('calls_booked_as_held', { calls: costs.size });
  }

  /** Tells budgets whose counter is not what the ledger says, and puts them right. @throws StoreError */
  async compare(): Promise<void> {
    const { store, counters, clock, onSpent } = this.#parts;
    const drifts = new Map<string, SeenDrift>();
    const now = clock.wall();
    let looked = counters.healthy();
    let after: Spent | undefined;
    do {
      const page = { limit: windowsOfPage, ...(after === undefined ? {} : { after }) };
      const spent = await store.spentPage(now, page);
      onSpent(spent);
      looked &&= counters.healthy();
      if (looked) await this.#comparePage(spent, drifts);
      after = spent.length === windowsOfPage ? spent.at(-1) : undefined;
    } while (after !== undefined && !this.#closed);
    if (looked) this.#drifts = drifts;
  }

  async #comparePage(spent: readonly Spent[], drifts: Map<string, SeenDrift>): Promise<void> {
    const counted = await this.#parts.counters.settledIn(spent);
    if (counted === undefined) return;
    for (const [i, { counter, window, nanodollars: booked }] of spent.entries()) {
      const settled = counted[i] ?? 0;
      if (settled === booked) continue;
      const name = `${counter} ${window}`;
      const before = this.#drifts.get(name);
      const nanodollars = settled - booked;
      const looks = before?.nanodollars === nanodollars ? before.looks + 1 : 1;
      drifts.set(name, { nanodollars, looks });
      if (looks > 1) await this.#drifted({ counter, window, settled, booked }, looks);
    }
  }

  async #drifted(drift: Drift, looks: number): Promise<void> {
    const { counters, log } = this.#parts;
    const { counter, window, settled, booked } = drift;
    const repaired = looks >= (settled < booked ? looksOfLess : looksOfMore);
    log.error('budget_drift', { counter, window, nanodollars: settled - booked, repaired });
    if (repaired) await counters.repair(drift);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    await this.#busy;
  }

  #next(work: 'sweep' | 'compare'): void {
    if (this.#waiting.has(work)) return;
    this.#waiting.add(work);
    this.#busy = this.#inTurn(this.#busy, work);
  }

  async #inTurn(before: Promise<void>, work: 'sweep' | 'compare'): Promise<void> {
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

function usedBy({ charged, cost }: CallRow): { tokens: number; nanodollars: number | undefined } {
  const { freshInputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = charged;
  const tokens = freshInputTokens + cacheReadTokens + cacheWriteTokens;
  return { tokens: tokens + (charged.outputTokens ?? 0), nanodollars: cost?.total };
}
