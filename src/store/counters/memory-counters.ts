/**
 * The counters of one process: exact, synchronous, rebuilt from the ledger at start. Reservations need
 * no lease here: the process that would renew it dies with the counter, and the next start settles what
 * the ledger knows of such calls (F81).
 */
import { IdTable } from '../../core/id-table.ts';
import type { Clock } from '../../core/runtime.ts';
import type { Balance, Counters, Draw, DrawResult, Spent, Used } from './counters.ts';
import { Purses } from './purses.ts';
import { Rates } from './rates.ts';
import { Shelf } from './shelf.ts';
import { grant, refusal, type BudgetReading, type Reading } from './verdict.ts';

interface Places {
  taken: number;
}

const noPurse: Balance = { settled: 0, open: 0 };

export class MemoryCounters implements Counters {
  readonly #clock: Clock;
  readonly #live = new IdTable<Draw>();
  /** Places taken. */
  readonly #places = new Shelf<Places>(({ taken }) => taken === 0);
  readonly #requests: Rates;
  readonly #tokens: Rates;
  readonly #purses: Purses;

  constructor(clock: Clock) {
    this.#clock = clock;
    const now = (): number => this.#now();
    this.#requests = new Rates(now);
    this.#tokens = new Rates(now);
    this.#purses = new Purses(clock);
  }

  /** How many counters and running calls are remembered. */
  get size(): number {
    return (
      this.#live.size +
      this.#places.size +
      this.#requests.size +
      this.#tokens.size +
      this.#purses.size
    );
  }

  /** Takes over what the ledger has booked, before the first draw. */
  restore(spent: Iterable<Spent>): void {
    const now = this.#now();
    for (const { counter, window, nanodollars } of spent) {
      this.#purses.open({ counter, window, endsAt: undefined }, now).settled += nanodollars;
    }
  }

  wall(): number {
    return this.#clock.wall();
  }

  draw(draw: Draw): DrawResult {
    const now = this.#now();
    const wall = this.#clock.wall();
    const reading = this.#read(draw, now);
    if (this.#live.has(draw.callId)) return grant(draw, reading, { wall, taken: true });
    const refused = refusal(draw, reading, wall);
    if (refused !== undefined) return refused;
    this.#take(draw, now);
    return grant(draw, reading, { wall, taken: false });
  }

  /** Takes without asking whether it fits: a call that other counters have admitted. */
  take(draw: Draw): void {
    if (!this.#live.has(draw.callId)) this.#take(draw, this.#now());
  }

  #take(draw: Draw, now: number): void {
    this.#live.set(draw.callId, draw);
    for (const { counter } of draw.concurrent) {
      const places = this.#places.get(counter);
      if (places === undefined) this.#places.add(counter, { taken: 1 });
      else places.taken += 1;
    }
    for (const { counter, perMinute } of draw.requests) {
      this.#requests.take({ counter, perMinute, amount: 1 }, now);
    }
    for (const wanted of draw.tokens) this.#tokens.take(wanted, now);
    for (const { counter, window, endsAt, amount } of draw.budgets) {
      this.#purses.open({ counter, window, endsAt }, now).open += amount;
    }
  }

  settle(callId: string, used: Used): void {
    const now = this.#now();
    const spent = Math.max(0, used.nanodollars ?? 0);
    const draw = this.#end(callId, spent, now);
    if (draw === undefined) return;
    const tokens = Math.max(0, used.tokens);
    for (const { counter, perMinute, amount } of draw.tokens) {
      this.#tokens.settle({ counter, perMinute, amount: tokens - amount }, now);
    }
  }

  vacate(callId: string): void {
    const draw = this.#live.get(callId);
    if (draw === undefined) return;
    this.#freePlaces(draw);
    this.#live.set(callId, { ...draw, concurrent: [] });
  }

  /** Gives everything back, as if the call had not been admitted. */
  undo(callId: string): void {
    const now = this.#now();
    const draw = this.#end(callId, 0, now);
    if (draw === undefined) return;
    for (const { counter, perMinute } of draw.requests) {
      this.#requests.settle({ counter, perMinute, amount: -1 }, now);
    }
    for (const { counter, perMinute, amount } of draw.tokens) {
      this.#tokens.settle({ counter, perMinute, amount: -amount }, now);
    }
  }

  balance(counter: string, window: string): Balance {
    const { settled, open } = this.#purses.find(counter, window) ?? noPurse;
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

  #read(draw: Draw, now: number): Reading {
    return {
      concurrent: draw.concurrent.map(({ counter }) => this.#places.get(counter)?.taken ?? 0),
      requests: draw.requests.map(({ counter }) => this.#requests.missing(counter, now)),
      tokens: draw.tokens.map(({ counter }) => this.#tokens.missing(counter, now)),
      budgets: draw.budgets.map(({ counter, window }): BudgetReading => {
        const { settled, open } = this.#purses.find(counter, window) ?? noPurse;
        return { window, settled, open };
      }),
    };
  }

  /** Gives back places and reserved money, and books what was spent. */
  #end(callId: string, spent: number, now: number): Draw | undefined {
    const draw = this.#live.delete(callId);
    if (draw === undefined) return undefined;
    this.#freePlaces(draw);
    for (const { counter, window, endsAt, amount } of draw.budgets) {
      const purse = this.#purses.open({ counter, window, endsAt }, now);
      purse.open -= amount;
      purse.settled += spent;
    }
    return draw;
  }

  #freePlaces({ concurrent }: Draw): void {
    for (const { counter } of concurrent) {
      const places = this.#places.get(counter);
      if (places !== undefined) places.taken -= 1;
    }
  }
}
