/**
 * Claims of which nobody knows whether the store has them: it was asked, and its answer did not come. Nothing
 * was begun for them, and whoever asked was refused; a claim that stands all the same would have every
 * further sending wait for its lease (E17). So it is given up again and again until a lease would be over: what was
 * asked may be done behind the first of these.
 */
import type { Clock } from '../core/runtime.ts';
import type { AnswerStore, OwnClaim } from '../store/answers.ts';
import { leaseMs } from '../store/lease.ts';

interface Abandoned {
  readonly claim: OwnClaim;
  readonly since: number;
}

export class AbandonedClaims {
  readonly #store: Pick<AnswerStore, 'release'>;
  readonly #clock: Pick<Clock, 'now'>;
  #claims: readonly Abandoned[] = [];

  constructor(store: Pick<AnswerStore, 'release'>, clock: Pick<Clock, 'now'>) {
    this.#store = store;
    this.#clock = clock;
  }

  get size(): number {
    return this.#claims.length;
  }

  /** Gives it up for the first time in the background. */
  add(claim: OwnClaim): void {
    this.#claims = [...this.#claims, { claim, since: this.#clock.now() }];
    void this.#release([claim]);
  }

  /** Gives up those under this id; false when there are none. Never throws. */
  async giveUp(id: string): Promise<boolean> {
    const claims = this.#claims.map(({ claim }) => claim).filter((claim) => claim.id === id);
    await this.#release(claims);
    return claims.length > 0;
  }

  /** Gives up all of them, those of which the lease is over for the last time. Never throws. */
  async giveUpAll(): Promise<void> {
    const claims = this.#claims;
    const now = this.#clock.now();
    this.#claims = claims.filter(({ since }) => now - since < leaseMs);
    await this.#release(claims.map(({ claim }) => claim));
  }

  async #release(claims: readonly OwnClaim[]): Promise<void> {
    // A store that is away is asked again; at the end the lease runs out.
    await Promise.allSettled(claims.map((claim) => this.#store.release(claim)));
  }
}
