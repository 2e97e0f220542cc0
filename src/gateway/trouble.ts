/**
 * What is known against one thing that calls depend on: a target, a credential, or both together. A
 * breaker (R6): failures in a row take it out, one call at a time finds out whether it is back.
 */
import type { ErrorCode } from '../core/errors.ts';

/** So many failures in a row take it out. */
const failuresToOpen = 5;
/** How long it is out at first; doubled each time it fails when it is tried again. */
const firstOutMs = 5000;
const longestOutMs = 60_000;

export class Trouble {
  /** Failures in a row. */
  failures = 0;
  /** Monotonic ms until which it is out; undefined = it is not. */
  outUntil: number | undefined;
  /** Monotonic ms until which the provider wants no calls; 0 = it said nothing. */
  coolUntil = 0;
  /** Monotonic ms until which its like is preferred. */
  avoidUntil = 0;
  /** One call is finding out whether it is back. */
  probing = false;
  lastError: ErrorCode = 'internal';
  /** When it was taken out last, monotonic ms. */
  #outAt = Number.NEGATIVE_INFINITY;
  /** How long it is out this time, in ms. */
  #outMs = 0;

  /** Whether a call may be sent: it is in, or it is time to find out. */
  isReady(now: number): boolean {
    if (this.coolUntil > now) return false;
    return this.outUntil === undefined || (this.outUntil <= now && !this.probing);
  }

  /** One more failure. @returns for how long it is taken out by it, ms; undefined = it stays. */
  count(code: ErrorCode, now: number): number | undefined {
    // Calls that were under way when it was taken out do not take it out for longer.
    if (this.outUntil !== undefined && !this.probing) return undefined;
    this.failures += 1;
    this.lastError = code;
    if (this.failures < failuresToOpen) return undefined;
    const ms = Math.min(longestOutMs, this.#outMs === 0 ? firstOutMs : this.#outMs * 2);
    this.takeOut(code, { now, ms });
    return ms;
  }

  takeOut(code: ErrorCode, { now, ms }: { readonly now: number; readonly ms: number }): void {
    this.outUntil = now + ms;
    this.#outAt = now;
    this.#outMs = ms;
    this.probing = false;
    this.lastError = code;
  }

  /** A credential that its provider does not take. */
  get isRefused(): boolean {
    return this.outUntil !== undefined && this.lastError === 'upstream_auth';
  }

  /** Whether it was taken out after that moment, monotonic ms, and is out. */
  isOutSince(moment: number): boolean {
    return this.outUntil !== undefined && this.#outAt > moment;
  }

  /** It does as it should. @returns whether it was out. */
  mend(): boolean {
    const wasOut = this.outUntil !== undefined;
    this.failures = 0;
    this.outUntil = undefined;
    this.#outMs = 0;
    this.probing = false;
    return wasOut;
  }

  /** Whether nothing is known against it any more. */
  isOver(now: number): boolean {
    const waits = this.coolUntil > now || this.avoidUntil > now;
    return this.failures === 0 && this.outUntil === undefined && !waits;
  }
}
