/**
 * What is known of targets that are in trouble (R6): a breaker for each, and the waits that providers
 * ask for. A healthy target has no entry, so that a gateway without trouble compares one number a call.
 */
import { GatewayError, type ErrorCode } from '../core/errors.ts';
import type { Target } from '../core/provider.ts';
import type { Clock, Log } from '../core/runtime.ts';

/** So many failures in a row take a target out. */
const failuresToOpen = 5;
/** How long it is out at first; doubled each time it fails when it is tried again. */
const firstOutMs = 5000;
const longestOutMs = 60_000;
/** How long a target is out whose credential is dead (R3). */
const deadCredentialMs = 10 * 60_000;
/** How long a provider's own wait is kept at most. */
const longestCoolingMs = 60_000;
/** Clients choose model names: what is known of the oldest is forgotten. */
const maxTargets = 1000;

interface Entry {
  /** Failures in a row. */
  failures: number;
  /** Monotonic ms until which it is out; undefined = it is not. */
  outUntil: number | undefined;
  /** How long it is out this time, in ms. */
  outMs: number;
  /** One call is finding out whether it is back. */
  probing: boolean;
  /** Monotonic ms until which the provider wants no calls; 0 = it said nothing. */
  coolUntil: number;
  lastError: ErrorCode;
}

export interface TargetHealthOptions {
  readonly clock: Clock;
  readonly log: Log;
}

export class TargetHealth {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #entries = new Map<string, Entry>();

  constructor({ clock, log }: TargetHealthOptions) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Nothing is wrong with any target. */
  get calm(): boolean {
    return this.#entries.size === 0;
  }

  /** Whether a call may be sent there: it is in, or it is time to find out. */
  isReady(target: Target): boolean {
    const entry = this.#entries.get(nameOf(target));
    if (entry === undefined) return true;
    const now = this.#clock.now();
    if (entry.coolUntil > now) return false;
    return entry.outUntil === undefined || (entry.outUntil <= now && !entry.probing);
  }

  /** The same for a call that is sent there now: of those that find out there is one at a time (G13). */
  enter(target: Target): boolean {
    if (this.calm) return true;
    if (!this.isReady(target)) return false;
    const entry = this.#entries.get(nameOf(target));
    if (entry?.outUntil !== undefined) entry.probing = true;
    return true;
  }

  /** Whether calls go elsewhere as long as there is an elsewhere. */
  isOut(target: Target): boolean {
    return this.#entries.get(nameOf(target))?.outUntil !== undefined;
  }

  /** Where to send a call all the same when no target is ready; undefined when all are cooling down. */
  leastBad(targets: readonly Target[]): Target | undefined {
    const now = this.#clock.now();
    let best: Target | undefined;
    let bestUntil = Number.POSITIVE_INFINITY;
    for (const target of targets) {
      const entry = this.#entries.get(nameOf(target));
      const until = entry?.outUntil ?? 0;
      if ((entry?.coolUntil ?? 0) > now || until >= bestUntil) continue;
      best = target;
      bestUntil = until;
    }
    return best;
  }

  /** The answer while all targets are cooling down: which, until when, and the shortest wait (H2). */
  allCooling(targets: readonly Target[], random: () => number): GatewayError {
    const now = this.#clock.now();
    let shortest = Number.POSITIVE_INFINITY;
    const told = targets.map((target) => {
      const name = nameOf(target);
      const wait = Math.max(0, (this.#entries.get(name)?.coolUntil ?? now) - now);
      shortest = Math.min(shortest, wait);
      return `${name} until ${this.#wallText(now + wait)}`;
    });
    // Clients that were refused together must not come back together.
    const retryAfterMs = Math.min(longestCoolingMs, Math.ceil(shortest + random() * 1000));
    const why = `No target of this model takes calls now: ${told.join(', ')}. Retry then.`;
    return new GatewayError('rate_limited', why, { retryAfterMs });
  }

  /** An answer has begun: whoever was to find out has found out, and need not read it to its end. */
  answered(target: Target): void {
    if (!this.calm && this.isOut(target)) this.succeeded(target);
  }

  /** The target answered as it should, or refused for a reason that lies in the request. */
  succeeded(target: Target): void {
    if (this.calm) return;
    const name = nameOf(target);
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    if (entry.outUntil !== undefined) this.#log.info('target back', { target: name });
    entry.failures = 0;
    entry.outUntil = undefined;
    entry.outMs = 0;
    entry.probing = false;
    // A call that was under way before says nothing against the wait.
    if (entry.coolUntil <= this.#clock.now()) this.#entries.delete(name);
  }

  /** What a failure says of the target (R6); most say nothing. */
  failed(target: Target, error: GatewayError): void {
    const { code, retryAfterMs } = error;
    if (code === 'rate_limited' && retryAfterMs !== undefined) this.#cool(target, retryAfterMs);
    if (isDeadCredential(error)) this.#takeOut(target, code, deadCredentialMs);
    else if (speaksAgainstTarget(error)) this.#count(target, code);
    else if (error.upstream === undefined) this.release(target);
    else this.succeeded(target);
  }

  /** The call that was to find out ended without finding out. */
  release(target: Target): void {
    if (this.calm) return;
    const entry = this.#entries.get(nameOf(target));
    if (entry !== undefined) entry.probing = false;
  }

  /** Forgets everything: the configuration changed, and with it what the names mean. */
  forget(): void {
    this.#entries.clear();
  }

  /**
   * The state of a target in words; undefined when nothing is wrong with it.
   * @param name `provider/model`.
   */
  describe(name: string): string | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined) return undefined;
    const now = this.#clock.now();
    if (entry.coolUntil > now) return `cooling down until ${this.#wallText(entry.coolUntil)}`;
    if (entry.outUntil === undefined) {
      return entry.failures === 0 ? undefined : `failing (${entry.failures} in a row)`;
    }
    if (entry.probing) return `being tried again (${entry.lastError})`;
    if (entry.outUntil <= now) return `to be tried again (${entry.lastError})`;
    return `out until ${this.#wallText(entry.outUntil)} (${entry.lastError})`;
  }

  #count(target: Target, code: ErrorCode): void {
    const entry = this.#entry(target);
    // Calls that were under way when it was taken out do not take it out for longer.
    if (entry.outUntil !== undefined && !entry.probing) return;
    entry.failures += 1;
    entry.lastError = code;
    if (entry.failures < failuresToOpen) return;
    const next = entry.outMs === 0 ? firstOutMs : entry.outMs * 2;
    this.#takeOut(target, code, Math.min(longestOutMs, next));
  }

  #takeOut(target: Target, code: ErrorCode, ms: number): void {
    const entry = this.#entry(target);
    entry.outUntil = this.#clock.now() + ms;
    entry.outMs = ms;
    entry.probing = false;
    entry.lastError = code;
    const { failures } = entry;
    this.#log.warn('target out', { target: nameOf(target), error: code, failures, ms });
  }

  #cool(target: Target, waitMs: number): void {
    const entry = this.#entry(target);
    const now = this.#clock.now();
    const ms = Math.min(longestCoolingMs, waitMs);
    const known = entry.coolUntil > now;
    entry.coolUntil = Math.max(entry.coolUntil, now + ms);
    if (!known) this.#log.warn('target cooling down', { target: nameOf(target), ms });
  }

  #entry(target: Target): Entry {
    const name = nameOf(target);
    const known = this.#entries.get(name);
    if (known !== undefined) return known;
    const entry: Entry = {
      failures: 0,
      outUntil: undefined,
      outMs: 0,
      probing: false,
      coolUntil: 0,
      lastError: 'internal',
    };
    const [oldest] = this.#entries.keys();
    if (this.#entries.size >= maxTargets && oldest !== undefined) this.#entries.delete(oldest);
    this.#entries.set(name, entry);
    return entry;
  }

  #wallText(monotonic: number): string {
    const wall = this.#clock.wall() + (monotonic - this.#clock.now());
    return new Date(Math.ceil(wall / 1000) * 1000).toISOString().replace('.000Z', 'Z');
  }
}

function nameOf({ provider, model }: Target): string {
  return `${provider.id}/${model}`;
}

/** A 403 may be about this one request: a model of another plan, a prompt that a filter refused. */
function isDeadCredential({ code, upstream }: GatewayError): boolean {
  return code === 'upstream_auth' && upstream?.status !== 403;
}

const counted: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'upstream_unavailable',
  'upstream_invalid',
  'overloaded',
  'timeout',
  'stream_interrupted',
]);

/** Connect errors, 5xx, timeouts, invalid answers; no 4xx, and not the call's own time limit (R6). */
function speaksAgainstTarget({ code, upstream, retryable }: GatewayError): boolean {
  if (!counted.has(code) || !retryable) return false;
  const status = upstream?.status ?? 0;
  return status < 400 || status >= 500 || status === 408;
}
