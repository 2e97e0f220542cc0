/** The real counters, watched: after each change every budget must hold (Q1), and at the end nothing is held. */
import type {
  Balance,
  BudgetItem,
  Counters,
  ReserveRequest,
  ReserveResult,
  Used,
} from '../../src/store/counters/counters.ts';
import type { Sabotage } from './history.ts';
import type { World } from './instance.ts';

export class CheckedCounters implements Counters {
  readonly #counters: Counters;
  readonly #complain: (what: string) => void;
  readonly #sabotage: Sabotage | undefined;
  readonly #budgets = new Map<string, BudgetItem>();
  readonly #live = new Map<string, ReserveRequest>();
  readonly #places = new Set<string>();

  constructor(counters: Counters, { complain, sabotage }: Pick<World, 'complain' | 'sabotage'>) {
    this.#counters = counters;
    this.#complain = complain;
    this.#sabotage = sabotage;
  }

  wall(): number {
    return this.#counters.wall();
  }

  reserve(request: ReserveRequest): ReserveResult | Promise<ReserveResult> {
    for (const { counter } of request.concurrent) this.#places.add(counter);
    for (const each of request.budgets) this.#budgets.set(`${each.counter} ${each.window}`, each);
    const generous = (each: BudgetItem): BudgetItem => ({ ...each, nanodollars: 1e12 });
    const passes = this.#sabotage === 'a budget that is passed';
    const result = this.#counters.reserve(
      passes ? { ...request, budgets: request.budgets.map(generous) } : request,
    );
    if (result instanceof Promise) throw new Error('counters of one process need no promise');
    if (result.granted) this.#live.set(request.callId, request);
    this.#check(`the reservation of ${request.callId}`);
    return result;
  }

  settle(callId: string, used: Used): void {
    if (this.#sabotage === 'a settlement that is lost') return;
    const request = this.#live.get(callId);
    this.#live.delete(callId);
    const reserved = Math.max(0, ...(request?.budgets ?? []).map(({ amount }) => amount));
    const more = this.#live.get(`${callId}+`)?.budgets[0]?.amount ?? 0;
    if (request !== undefined && (used.nanodollars ?? 0) > reserved + more) {
      if (request.budgets.length > 0) {
        this.#complain(`${callId} cost ${used.nanodollars} of ${reserved + more} reserved`);
      }
    }
    this.#counters.settle(callId, used);
    this.#check(`the settlement of ${callId}`);
  }

  releaseSlots(callId: string): void {
    this.#counters.releaseSlots(callId);
    this.#check(`the leave of ${callId}`);
  }

  balance(counter: string, window: string): Balance | Promise<Balance> {
    return this.#counters.balance(counter, window);
  }

  healthy(): boolean {
    return this.#counters.healthy();
  }

  close(): Promise<void> {
    return this.#counters.close();
  }

  /** What each budget's window has spent. @throws through `complain` what is still held. */
  async spent(): Promise<ReadonlyMap<string, number>> {
    for (const callId of this.#live.keys()) this.#complain(`${callId} still holds its share`);
    const spent = new Map<string, number>();
    for (const [name, { counter, window }] of this.#budgets) {
      const { settled, open } = await this.#counters.balance(counter, window);
      if (open !== 0) this.#complain(`${name}: ${open} are still reserved`);
      spent.set(name, settled);
    }
    for (const counter of this.#places) {
      const callId = `probe ${counter}`;
      const concurrent = [{ counter, most: 1 }];
      const probe = { callId, concurrent, requests: [], tokens: [], budgets: [] };
      const result = await this.#counters.reserve(probe);
      if (!result.granted) this.#complain(`a place of ${counter} was not given back`);
      this.#counters.settle(callId, { tokens: 0, nanodollars: 0 });
    }
    return spent;
  }

  #check(when: string): void {
    for (const [name, { counter, window, nanodollars }] of this.#budgets) {
      const balance = this.#counters.balance(counter, window);
      if (balance instanceof Promise) throw new Error('counters of one process need no promise');
      const { settled, open } = balance;
      if (settled + open > nanodollars) {
        this.#complain(
          `${name} after ${when}: ${settled} spent and ${open} held of ${nanodollars}`,
        );
      }
    }
  }
}
