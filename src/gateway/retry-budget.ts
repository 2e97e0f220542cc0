/**
 * How often the same provider may be asked again (R4, G12): at most a fifth of the calls it got in the
 * last seconds, so that a provider that fails is not also asked more. Counted per provider.
 */

/** Calls and retries are counted in two halves: the running one and the one before it. */
const halfMs = 10_000;
const share = 0.2;
/** So many are always allowed, or a gateway with few calls would have none. */
const floor = 3;

interface Counts {
  /** When the running half began, monotonic ms. */
  since: number;
  calls: number;
  retries: number;
  callsBefore: number;
  retriesBefore: number;
}

export class RetryBudget {
  readonly #byProvider = new Map<string, Counts>();

  /** A call that goes to the provider for the first time. @param now monotonic ms. */
  called(provider: string, now: number): void {
    this.#counts(provider, now).calls += 1;
  }

  /** Takes one retry; false when there is none left. @param now monotonic ms. */
  take(provider: string, now: number): boolean {
    const counts = this.#counts(provider, now);
    const allowed = Math.max(floor, share * (counts.calls + counts.callsBefore));
    if (counts.retries + counts.retriesBefore >= Math.floor(allowed)) return false;
    counts.retries += 1;
    return true;
  }

  #counts(provider: string, now: number): Counts {
    const counts = this.#byProvider.get(provider);
    if (counts === undefined) {
      const fresh = { since: now, calls: 0, retries: 0, callsBefore: 0, retriesBefore: 0 };
      this.#byProvider.set(provider, fresh);
      return fresh;
    }
    const age = now - counts.since;
    if (age >= halfMs) {
      const next = age < 2 * halfMs;
      counts.callsBefore = next ? counts.calls : 0;
      counts.retriesBefore = next ? counts.retries : 0;
      counts.calls = 0;
      counts.retries = 0;
      counts.since = now;
    }
    return counts;
  }
}
