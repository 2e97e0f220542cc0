/**
 * What a call may try after a failure. Untried targets come first, without a wait (G13); then targets
 * with a transient failure are tried again (R2), each after its wait, within the retry budget and the call's deadline
 * (R4). Which failures may be retried is `mayFallBack` and `repeatOf`.
 */
import { type ErrorCode, GatewayError, type Repeat, transientCodes } from '../../core/errors.ts';
import { StrictRefusal } from '../../core/notes.ts';
import type { RetryRules, Target } from '../../core/provider.ts';
import type { Call } from '../../core/call.ts';
import type { Gateway } from '../gateway.ts';
import { isUntrusted, nameOf } from './health.ts';

/** Upstream requests of one call at most, over all targets; a request that `strict` refuses is not sent (G12). */
export const maxAttempts = 3;

/** A call does not wait longer; the answer then names the wait (R2). */
const maxWaitMs = 5000;
const firstBackoffMs = 250;
const maxBackoffMs = 8000;

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
  /** Untried targets, in order. */
  readonly #unasked: Target[];
  #again = 0;
  #failure: GatewayError | undefined;

  /** @param order the targets of the call; the first one was tried. */
  constructor(gateway: Gateway, call: Call, order: readonly Target[]) {
    this.#gateway = gateway;
    this.#call = call;
    this.#unasked = order.slice(1);
  }

  /** The error for the client when nothing is left to try. */
  get failure(): GatewayError {
    return this.#failure ?? new GatewayError('model_not_found', 'The model has no target.');
  }

  note(target: Target, error: GatewayError, how: FailedTry): void {
    const at = this.#gateway.clock.now();
    const before = this.#failed.findIndex((each) => each.target === target);
    const times = (this.#failed[before]?.times ?? 0) + 1;
    if (before !== -1) this.#failed.splice(before, 1);
    this.#failed.push({ target, error, how, times, at });
    this.#failure = moreSpecific(this.#failure, error);
  }

  /** The next attempt after the last noted failure; undefined when there is none. */
  next(): NextTry | undefined {
    const last = this.#failed.at(-1);
    const { retry } = this.#call.route;
    // Either of two hedged requests may have failed for good.
    if (!this.#failed.every((each) => this.#mayGoOn(each, retry))) return undefined;
    if (last === undefined) return undefined;
    // The route prefers no answer to one that may be billed twice (R5).
    if (last.how.maybeBilled && retry?.afterSent === false) return undefined;
    return this.#fresh(last) ?? this.#repeated();
  }

  #mayGoOn({ target, error }: Failed, rules: RetryRules | undefined): boolean {
    if (mayFallBack(error, rules)) return true;
    return error.reason === 'content_filter' && target.provider.options?.onContentFilter === 'next';
  }

  /**
   * The target of a hedged secondary request while one runs at `running`: another target if there is one, else
   * another credential. It takes from the retry budget of its provider (R4).
   */
  secondary(running: Target): Target | undefined {
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

  /** An untried target. Another credential helps only where the failure was the credential's. */
  #fresh({ target: failed, error }: Failed): NextTry | undefined {
    const { health, retryBudget, clock } = this.#gateway;
    const ofCredential = error.code === 'rate_limited' || error.code === 'upstream_auth';
    for (;;) {
      const index = this.#unasked.findIndex(
        (target) => ofCredential || nameOf(target) !== nameOf(failed),
      );
      const [target] = index === -1 ? [] : this.#unasked.splice(index, 1);
      if (target === undefined) return undefined;
      // The target failed with another credential, for a reason of its own.
      if (
        this.#failed.some(
          ({ target: failed, error }) =>
            nameOf(failed) === nameOf(target) &&
            error.code !== 'rate_limited' &&
            error.code !== 'upstream_auth',
        ) ||
        !health.isReady(target)
      )
        continue;
      const { id } = target.provider;
      // Another credential of a provider that just refused one counts as a retry (G12).
      const again = nameOf(target) === nameOf(failed) && health.isAvoided(target);
      if (again && !retryBudget.take(id, clock.now())) continue;
      health.enter(target);
      if (!again) retryBudget.called(id, clock.now());
      return { target, waitMs: 0 };
    }
  }

  #repeated(): NextTry | undefined {
    const { retryBudget, clock, random } = this.#gateway;
    const now = clock.now();
    const jitter = random() * Math.min(maxBackoffMs, firstBackoffMs * 2 ** this.#again);
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

  /** Ms until the target may be tried again; undefined when it may not. */
  #waitFor(
    { target, error, how, times, at }: Failed,
    { now, jitter }: { readonly now: number; readonly jitter: number },
  ): number | undefined {
    const repeat = repeatOf(error, how);
    if (repeat === 'never' || (repeat === 'once' && times > 1)) return undefined;
    if (this.#gateway.health.isOut(target)) return undefined;
    const asked = error.retryAfterMs;
    if (asked !== undefined && asked > maxWaitMs) return undefined;
    const waitMs = asked === undefined ? jitter : Math.max(0, at + asked - now) + jitter;
    const deadline = this.#call.startedAt + target.timeouts.totalMs;
    return now + waitMs < deadline ? waitMs : undefined;
  }
}

/** The failure that helps the client more: a transient one rather than one that stays. */
function moreSpecific(before: GatewayError | undefined, error: GatewayError): GatewayError {
  if (before === undefined) return error;
  if (error instanceof StrictRefusal) return before;
  // A transient failure of one target is worth another call.
  if (transientCodes.has(before.code) && !transientCodes.has(error.code)) return before;
  // The answer names the shortest of several waits.
  const sooner = (before.retryAfterMs ?? Infinity) < (error.retryAfterMs ?? Infinity);
  return before.code === error.code && sooner ? before : error;
}

/** The conditions of a retry besides the error. */
export interface FailedTry {
  /** HTTP status of the upstream; 0 when none came. */
  readonly status: number;
  /** A stream was requested. */
  readonly streamed: boolean;
  /** It was sent, and no answer says whether the vendor worked on it (R5). */
  readonly maybeBilled: boolean;
}

/** Whether another target may be tried after this failure (R3). */
export function mayFallBack(error: GatewayError, rules: RetryRules = {}): boolean {
  if (error.code === 'context_overflow') return rules.contextOverflow === true;
  return error.retryable || error.code === 'model_not_found';
}

const transient: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'rate_limited',
  'overloaded',
  'upstream_unavailable',
  'timeout',
]);

/** Statuses of transient failures (R2), and 409. */
const repeated: ReadonlySet<number> = new Set([408, 409, 429, 500, 502, 503, 504, 529]);

/** Whether the same target may be tried once more (R2). */
export function repeatOf(
  error: GatewayError,
  { status, streamed }: Pick<FailedTry, 'status' | 'streamed'>,
): Repeat {
  if (error.repeat !== undefined) return error.repeat;
  if (!error.retryable || !transient.has(error.code)) return 'never';
  const answered = error.upstream?.status ?? 0;
  if (answered >= 400) {
    if (repeated.has(answered)) return 'may';
    // Not a status of HTTP (F30).
    return answered >= 600 ? 'once' : 'never';
  }
  if (error.cause !== undefined) return repeatOfConnection(error, status);
  // An error inside a 200 counts as that error. A silent stream is requested once more; a document had all
  // its time.
  if (error.code !== 'timeout' || answered !== 0) return 'may';
  return streamed ? 'once' : 'never';
}

function repeatOfConnection(error: GatewayError, status: number): Repeat {
  // A connection that timed out will time out again. One that broke after the headers was a stream that began:
  // another target is more likely to answer (R1).
  if (error.code === 'timeout' || status !== 0) return 'never';
  return isUntrusted(error) ? 'never' : 'may';
}

/** Calls and retries are counted in two windows: the current one and the one before it. */
const halfMs = 10_000;
const share = 0.2;
/** Always allowed, or a gateway with few calls would have no retries. */
const floor = 3;

interface Counts {
  /** When the running half began, monotonic ms. */
  since: number;
  calls: number;
  retries: number;
  callsBefore: number;
  retriesBefore: number;
}

/**
 * Limits retries to a provider to a fifth of its calls of the last 10 to 20 seconds (R4, G12), so that a failing
 * provider does not get more load.
 */
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
