/**
 * What a call may still try after its first failure; made only then. Targets that were not asked yet
 * come first and cost no wait (G13); then those that failed for a moment are asked again (R2), each in
 * its time, while the retry budget and the call's deadline allow it (R4).
 */
import { GatewayError } from '../core/errors.ts';
import { StrictRefusal } from '../core/notes.ts';
import type { Target } from '../core/provider.ts';
import type { Call, Gateway } from './call.ts';
import { nameOf } from './health.ts';
import { mayFallBack, repeatOf, type FailedTry } from './repeatable.ts';

/** Longer waits are the client's (R2). */
const longestWaitMs = 5000;
const firstBackoffMs = 250;
const longestBackoffMs = 8000;

export interface NextTry {
  readonly target: Target;
  readonly waitMs: number;
}

interface Failed {
  readonly target: Target;
  readonly error: GatewayError;
  readonly how: FailedTry;
  readonly times: number;
  /** Monotonic ms. */
  readonly at: number;
}

export class Retries {
  readonly #gateway: Gateway;
  readonly #call: Call;
  readonly #failed: Failed[] = [];
  /** Targets that were not asked yet, in order. */
  readonly #unasked: Target[];
  #again = 0;
  #failure: GatewayError | undefined;

  /** @param order the targets of the call, of which the first was tried. */
  constructor(gateway: Gateway, call: Call, order: readonly Target[]) {
    this.#gateway = gateway;
    this.#call = call;
    this.#unasked = order.slice(1);
  }

  /** What the client is told when nothing is left. */
  get failure(): GatewayError {
    return this.#failure ?? new GatewayError('model_not_found', 'The model has no target.');
  }

  note(target: Target, error: GatewayError, how: FailedTry): void {
    const at = this.#gateway.clock.now();
    const before = this.#failed.findIndex((each) => each.target === target);
    const times = (this.#failed[before]?.times ?? 0) + 1;
    if (before !== -1) this.#failed.splice(before, 1);
    this.#failed.push({ target, error, how, times, at });
    this.#failure = moreTelling(this.#failure, error);
  }

  /** The next try after the failure that was noted last; undefined when there is none. */
  next(): NextTry | undefined {
    const last = this.#failed.at(-1);
    const { retry } = this.#call.route;
    // Of two that ran beside each other, either may have told that it is of no use.
    if (!this.#failed.every(({ error }) => mayFallBack(error, retry))) return undefined;
    if (last === undefined) return undefined;
    // Whoever forbids it wants no answer rather than two that are billed (R5).
    if (last.how.maybeBilled && retry?.afterSent === false) return undefined;
    return this.#fresh(last) ?? this.#repeated();
  }

  /**
   * Where a second request may go beside the one that runs there: another target if there is one, else
   * another credential. To its provider it is one of those that it did not have to get (R4).
   */
  beside(running: Target): Target | undefined {
    const { health, retryBudget, clock } = this.#gateway;
    const mayTake = (target: Target): boolean => health.isReady(target) && !health.isOut(target);
    const able = this.#unasked.filter(mayTake);
    const target = able.find((each) => nameOf(each) !== nameOf(running)) ?? able[0];
    if (target === undefined || !retryBudget.take(target.provider.id, clock.now()))
      return undefined;
    health.enter(target);
    this.#unasked.splice(this.#unasked.indexOf(target), 1);
    return target;
  }

  /** What was refused to one credential is not refused to another; what a target lacks, all lack. */
  #fresh({ target: failed, error }: Failed): NextTry | undefined {
    const { health, retryBudget, clock } = this.#gateway;
    const ofCredential = error.code === 'rate_limited' || error.code === 'upstream_auth';
    for (;;) {
      const place = this.#unasked.findIndex(
        (target) => ofCredential || nameOf(target) !== nameOf(failed),
      );
      const [target] = place === -1 ? [] : this.#unasked.splice(place, 1);
      if (target === undefined) return undefined;
      if (this.#isGivenUp(target) || !health.isReady(target)) continue;
      const { id } = target.provider;
      // Where all the keys of a provider were just refused, another one of them is a retry (G12).
      const again = nameOf(target) === nameOf(failed) && health.isAvoided(target);
      if (again && !retryBudget.take(id, clock.now())) continue;
      health.enter(target);
      if (!again) retryBudget.called(id, clock.now());
      return { target, waitMs: 0 };
    }
  }

  /** With another credential it failed for a reason that is the target's own. */
  #isGivenUp(target: Target): boolean {
    return this.#failed.some(
      ({ target: failed, error }) =>
        nameOf(failed) === nameOf(target) &&
        error.code !== 'rate_limited' &&
        error.code !== 'upstream_auth',
    );
  }

  #repeated(): NextTry | undefined {
    const { retryBudget, clock, random } = this.#gateway;
    const now = clock.now();
    const jitter = random() * Math.min(longestBackoffMs, firstBackoffMs * 2 ** this.#again);
    let best: NextTry | undefined;
    for (const failed of this.#failed) {
      const waitMs = this.#waitFor(failed, { now, jitter });
      if (waitMs === undefined || (best !== undefined && best.waitMs <= waitMs)) continue;
      best = { target: failed.target, waitMs };
    }
    if (best === undefined || !retryBudget.take(best.target.provider.id, now)) return undefined;
    this.#again += 1;
    return best;
  }

  /** In ms until the target may be asked again; undefined when it may not. */
  #waitFor(
    { target, error, how, times, at }: Failed,
    { now, jitter }: { readonly now: number; readonly jitter: number },
  ): number | undefined {
    const repeat = repeatOf(error, how);
    if (repeat === 'never' || (repeat === 'once' && times > 1)) return undefined;
    if (this.#gateway.health.isOut(target)) return undefined;
    const asked = error.retryAfterMs;
    if (asked !== undefined && asked > longestWaitMs) return undefined;
    const waitMs = asked === undefined ? jitter : Math.max(0, at + asked - now) + jitter;
    const deadline = this.#call.startedAt + target.timeouts.totalMs;
    return now + waitMs < deadline ? waitMs : undefined;
  }
}

/** Where another target only failed for now, its failure tells more than a strict refusal. */
function moreTelling(before: GatewayError | undefined, error: GatewayError): GatewayError {
  if (before === undefined) return error;
  if (error instanceof StrictRefusal) return before;
  // Of several targets that ask to wait, the client hears of the shortest wait (F15).
  const sooner = (before.retryAfterMs ?? Infinity) < (error.retryAfterMs ?? Infinity);
  return before.code === error.code && sooner ? before : error;
}
