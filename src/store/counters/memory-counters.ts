/**
 * The counters of one process: exact, synchronous, rebuilt from the ledger at start. Reservations need
 * no lease here: the process that would renew it dies with the counter, and the next start settles what
 * the ledger knows of such calls (F81).
 */
import { IdTable } from '../../core/id-table.ts';
import type { Clock } from '../../core/runtime.ts';
import {
  type BudgetReading,
  type Reading,
  grant,
  missingAfter,
  missingSettled,
  refusal,
  unitsEach,
} from './verdict.ts';
import type { Balance, Counters, ReserveRequest, ReserveResult, Spent, Used } from './counters.ts';

interface Slots {
  taken: number;
}

const noBalance: Balance = { settled: 0, open: 0 };

export class MemoryCounters implements Counters {
  readonly #clock: Clock;
  readonly #live = new IdTable<ReserveRequest>();
  /** Slots taken. */
  readonly #slots = new IdleEvictingMap<Slots>(({ taken }) => taken === 0);
  readonly #requests: Rates;
  readonly #tokens: Rates;
  readonly #windows: BudgetWindows;

  constructor(clock: Clock) {
    this.#clock = clock;
    const now = (): number => this.#now();
    this.#requests = new Rates(now);
    this.#tokens = new Rates(now);
    this.#windows = new BudgetWindows(clock);
  }

  /** How many counters and running calls are remembered. */
  get size(): number {
    return (
      this.#live.size +
      this.#slots.size +
      this.#requests.size +
      this.#tokens.size +
      this.#windows.size
    );
  }

  /** Takes over what the ledger has booked, before the first reservation. */
  restore(spent: readonly Spent[]): void {
    const now = this.#now();
    // The latest window of a counter comes last: the ones before it count as over.
    const inOrder = spent.toSorted((a, b) => (a.window < b.window ? -1 : 1));
    for (const { counter, window, nanodollars } of inOrder) {
      this.#windows.open({ counter, window, endsAt: undefined }, now).settled += nanodollars;
    }
  }

  wall(): number {
    return this.#clock.wall();
  }

  reserve(request: ReserveRequest): ReserveResult {
    const now = this.#now();
    const wall = this.#clock.wall();
    const reading = this.#read(request, now);
    if (this.#live.has(request.callId)) return grant(request, reading, { wall, taken: true });
    const refused = refusal(request, reading, wall);
    if (refused !== undefined) return refused;
    this.#take(request, now);
    return grant(request, reading, { wall, taken: false });
  }

  /** Takes without asking whether it fits: a call that other counters have admitted. */
  take(request: ReserveRequest): void {
    if (!this.#live.has(request.callId)) this.#take(request, this.#now());
  }

  #take(request: ReserveRequest, now: number): void {
    this.#live.set(request.callId, request);
    for (const { counter } of request.concurrent) {
      const slots = this.#slots.get(counter);
      if (slots === undefined) this.#slots.add(counter, { taken: 1 });
      else slots.taken += 1;
    }
    for (const { counter, perMinute } of request.requests) {
      this.#requests.take({ counter, perMinute, amount: 1 }, now);
    }
    for (const wanted of request.tokens) this.#tokens.take(wanted, now);
    for (const { counter, window, endsAt, amount } of request.budgets) {
      this.#windows.open({ counter, window, endsAt }, now).open += amount;
    }
  }

  settle(callId: string, used: Used): void {
    const now = this.#now();
    const spent = Math.max(0, used.nanodollars ?? 0);
    const request = this.#end(callId, spent, now);
    if (request === undefined) return;
    const tokens = Math.max(0, used.tokens);
    for (const { counter, perMinute, amount } of request.tokens) {
      this.#tokens.settle({ counter, perMinute, amount: tokens - amount }, now);
    }
  }

  releaseSlots(callId: string): void {
    const request = this.#live.get(callId);
    if (request === undefined) return;
    this.#freeSlots(request);
    this.#live.set(callId, { ...request, concurrent: [] });
  }

  /** Gives everything back, as if the call had not been admitted. */
  undo(callId: string): void {
    const now = this.#now();
    const request = this.#end(callId, 0, now);
    if (request === undefined) return;
    for (const { counter, perMinute } of request.requests) {
      this.#requests.settle({ counter, perMinute, amount: -1 }, now);
    }
    for (const { counter, perMinute, amount } of request.tokens) {
      this.#tokens.settle({ counter, perMinute, amount: -amount }, now);
    }
  }

  balance(counter: string, window: string): Balance {
    const { settled, open } = this.#windows.find(counter, window) ?? noBalance;
    return { settled, open };
  }

  healthy(): boolean {
    return true;
  }

  async close(): Promise<void> {}

  /** Whole ms, so that what flows back is whole as well. */
  #now(): number {
    return Math.floor(this.#clock.now());
  }

  #read(request: ReserveRequest, now: number): Reading {
    return {
      concurrent: request.concurrent.map(({ counter }) => this.#slots.get(counter)?.taken ?? 0),
      requests: request.requests.map(({ counter }) => this.#requests.missing(counter, now)),
      tokens: request.tokens.map(({ counter }) => this.#tokens.missing(counter, now)),
      budgets: request.budgets.map(({ counter, window }): BudgetReading => {
        const { settled, open } = this.#windows.find(counter, window) ?? noBalance;
        return { window, settled, open };
      }),
    };
  }

  /** Gives back slots and reserved money, and books what was spent. */
  #end(callId: string, spent: number, now: number): ReserveRequest | undefined {
    const request = this.#live.delete(callId);
    if (request === undefined) return undefined;
    this.#freeSlots(request);
    for (const { counter, window, endsAt, amount } of request.budgets) {
      const budget = this.#windows.open({ counter, window, endsAt }, now);
      budget.open -= amount;
      budget.settled += spent;
    }
    return request;
  }

  #freeSlots({ concurrent }: ReserveRequest): void {
    for (const { counter } of concurrent) {
      const slots = this.#slots.get(counter);
      if (slots !== undefined) slots.taken -= 1;
    }
  }
}

/** A map that forgets what is idle, a little with each new entry: no timer, no pause, bounded. */
class IdleEvictingMap<T> {
  readonly #entries = new Map<string, T>();
  readonly #isIdle: (entry: T) => boolean;
  #cursor: Iterator<[string, T]>;

  constructor(isIdle: (entry: T) => boolean) {
    this.#isIdle = isIdle;
    this.#cursor = this.#entries.entries();
  }

  get size(): number {
    return this.#entries.size;
  }

  get(name: string): T | undefined {
    return this.#entries.get(name);
  }

  /** Two old entries are examined for each new one, so that idle ones never pile up. */
  add(name: string, entry: T): void {
    this.#look();
    this.#look();
    // Not examined itself: it is idle until its owner has put something into it.
    this.#entries.set(name, entry);
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }

  #look(): void {
    const next = this.#cursor.next();
    if (next.done === true) {
      this.#cursor = this.#entries.entries();
      return;
    }
    const [name, entry] = next.value;
    if (this.#isIdle(entry)) this.#entries.delete(name);
  }
}

// Budgets' windows in memory.

interface BudgetWindow {
  readonly window: string;
  settled: number;
  /** Reserved by running calls. */
  open: number;
  endsAt: number | undefined;
  /** Monotonic ms. */
  usedAt: number;
  /** An earlier window of the same counter. */
  older: BudgetWindow | undefined;
}

/** A window as a reservation names it. */
interface OpenedWindow {
  readonly counter: string;
  readonly window: string;
  /** Undefined = it never ends, or its end is unknown. */
  readonly endsAt: number | undefined;
}

/**
 * How long a window that is over is still known, by the monotonic clock: a wall clock that was wrong
 * for a day and is put right finds what was spent before (G17).
 */
const retainedAfterEndMs = 2 * 86_400_000;

class BudgetWindows {
  readonly #clock: Clock;
  /** By counter: its latest window. */
  readonly #latest: IdleEvictingMap<BudgetWindow>;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#latest = new IdleEvictingMap((budget) => {
      budget.older = this.#needed(budget.older);
      return budget.older === undefined && this.#needed(budget) === undefined;
    });
  }

  /** How many counters are known. */
  get size(): number {
    return this.#latest.size;
  }

  find(counter: string, window: string): BudgetWindow | undefined {
    let budget = this.#latest.get(counter);
    while (budget !== undefined && budget.window !== window) budget = budget.older;
    return budget;
  }

  /**
   * Finds or makes it.
   * @param usedAt monotonic ms, now.
   */
  open({ counter, window, endsAt }: OpenedWindow, usedAt: number): BudgetWindow {
    const found = this.find(counter, window);
    if (found !== undefined) {
      found.usedAt = usedAt;
      found.endsAt ??= endsAt;
      return found;
    }
    const budget: BudgetWindow = { window, settled: 0, open: 0, endsAt, usedAt, older: undefined };
    const latest = this.#latest.get(counter);
    if (latest !== undefined) {
      budget.older = latest;
      // A restored window does not say when it ends; it does once there is another.
      latest.endsAt ??= this.#clock.wall();
    }
    this.#latest.add(counter, budget);
    return budget;
  }

  /** The chain without the windows that are over. */
  #needed(budget: BudgetWindow | undefined): BudgetWindow | undefined {
    if (budget === undefined) return undefined;
    budget.older = this.#needed(budget.older);
    const { open, settled, endsAt, usedAt } = budget;
    if (open > 0) return budget;
    if (settled === 0) return budget.older;
    const over = endsAt !== undefined && this.#clock.wall() >= endsAt;
    return over && this.#clock.now() - usedAt >= retainedAfterEndMs ? budget.older : budget;
  }
}

// Buckets of one kind in memory. A full one is as good as none, and is forgotten.

interface Bucket {
  missing: number;
  /** Whole monotonic ms at which so much was missing. */
  at: number;
  perMinute: number;
}

interface RateChange {
  readonly counter: string;
  readonly perMinute: number;
  /** Requests or tokens that are taken; below 0 = given back. */
  readonly amount: number;
}

class Rates {
  readonly #buckets: IdleEvictingMap<Bucket>;

  /** @param now whole monotonic ms */
  constructor(now: () => number) {
    this.#buckets = new IdleEvictingMap(
      ({ missing, perMinute, at }) => missingAfter(missing, perMinute, now() - at) === 0,
    );
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Missing units. */
  missing(counter: string, now: number): number {
    const bucket = this.#buckets.get(counter);
    return bucket === undefined ? 0 : flow(bucket, now);
  }

  take({ counter, perMinute, amount }: RateChange, now: number): void {
    const bucket = this.#buckets.get(counter);
    if (bucket === undefined) {
      this.#buckets.add(counter, { missing: amount * unitsEach, at: now, perMinute });
      return;
    }
    bucket.missing = flow(bucket, now) + amount * unitsEach;
    bucket.perMinute = perMinute;
  }

  /** Corrects an earlier take: a refund ends at full, debt one bucket below empty. */
  settle({ counter, perMinute, amount }: RateChange, now: number): void {
    if (amount === 0) return;
    let bucket = this.#buckets.get(counter);
    if (bucket === undefined) {
      if (amount < 0) return;
      bucket = { missing: 0, at: now, perMinute };
      this.#buckets.add(counter, bucket);
    }
    bucket.missing = missingSettled(flow(bucket, now), perMinute, amount);
  }
}

/** Lets flow back what has flown back since the last time. */
function flow(bucket: Bucket, now: number): number {
  bucket.missing = missingAfter(bucket.missing, bucket.perMinute, now - bucket.at);
  bucket.at = Math.max(bucket.at, now);
  return bucket.missing;
}
