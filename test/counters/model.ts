/** What counters do, written as plainly as it can be: the judge of the real ones. */
import type { ReserveRequest, Used } from '../../src/store/counters/counters.ts';

interface Level {
  /** Of 60,000ths that are missing. */
  missing: bigint;
  rate: bigint;
}

/** Time is passed on to every level at once; nothing is forgotten. */
export class Model {
  readonly #levels = new Map<string, Level>();
  readonly #live = new Map<string, ReserveRequest>();
  readonly #spent = new Map<string, number>();

  pass(ms: number): void {
    for (const level of this.#levels.values()) {
      const left = level.missing - level.rate * BigInt(ms);
      level.missing = left > 0n ? left : 0n;
    }
  }

  /** `granted`, or which kind refuses and where. */
  reserve(request: ReserveRequest): string {
    for (const [i, { counter, most }] of request.concurrent.entries()) {
      let taken = 0;
      for (const each of this.#live.values()) {
        if (each.concurrent.some((held) => held.counter === counter)) taken += 1;
      }
      if (taken >= most) return `concurrent ${i}`;
    }
    for (const [i, { counter, perMinute }] of request.requests.entries()) {
      if (!this.#fits(`r ${counter}`, perMinute, 1)) return `requests ${i}`;
    }
    for (const [i, { counter, perMinute, amount }] of request.tokens.entries()) {
      if (!this.#fits(`t ${counter}`, perMinute, amount)) return `tokens ${i}`;
    }
    for (const [i, { counter, window, nanodollars, amount }] of request.budgets.entries()) {
      const { settled, open } = this.balance(counter, window);
      if (settled + open + amount > nanodollars) return `budget ${i}`;
    }
    for (const { counter, perMinute } of request.requests) this.#add(`r ${counter}`, perMinute, 1);
    for (const { counter, perMinute, amount } of request.tokens) {
      this.#add(`t ${counter}`, perMinute, amount);
    }
    this.#live.set(request.callId, request);
    return 'granted';
  }

  settle(callId: string, used: Used): void {
    const request = this.#live.get(callId);
    if (request === undefined) return;
    this.#live.delete(callId);
    for (const { counter, perMinute, amount } of request.tokens) {
      const level = this.#level(`t ${counter}`, perMinute);
      const most = 2n * BigInt(perMinute) * 60_000n;
      const next = level.missing + BigInt(used.tokens - amount) * 60_000n;
      level.missing = next < 0n ? 0n : next > most ? most : next;
    }
    for (const { counter, window } of request.budgets) {
      const name = `${counter} ${window}`;
      this.#spent.set(name, (this.#spent.get(name) ?? 0) + (used.nanodollars ?? 0));
    }
  }

  balance(counter: string, window: string): { settled: number; open: number } {
    let open = 0;
    for (const { budgets } of this.#live.values()) {
      for (const each of budgets) {
        if (each.counter === counter && each.window === window) open += each.amount;
      }
    }
    return { settled: this.#spent.get(`${counter} ${window}`) ?? 0, open };
  }

  #level(name: string, perMinute: number): Level {
    let level = this.#levels.get(name);
    if (level === undefined) {
      level = { missing: 0n, rate: BigInt(perMinute) };
      this.#levels.set(name, level);
    }
    return level;
  }

  #fits(name: string, perMinute: number, amount: number): boolean {
    const { missing } = this.#level(name, perMinute);
    return missing + BigInt(amount) * 60_000n <= BigInt(perMinute) * 60_000n;
  }

  #add(name: string, perMinute: number, amount: number): void {
    this.#level(name, perMinute).missing += BigInt(amount) * 60_000n;
  }
}
