/**
 * The health of targets (R6): a circuit breaker each for a target (no connection, 5xx, timeouts), for a
 * credential (refused by its provider) and for the pair of both (rate limit used up, 429). A healthy target
 * has no entry, so a gateway without failures compares one number a call.
 */
import { type ErrorCode, GatewayError } from '../../core/errors.ts';
import type { Target } from '../../core/provider.ts';
import type { Clock, Log } from '../../core/runtime.ts';

/** How long a refused credential stays out (R3). */
const deadCredentialMs = 10 * 60_000;
/** Maximum wait that a provider can impose. */
const maxCoolingMs = 60_000;
/** Maximum reported wait: times far beyond it are not dates. */
const maxCooldownMs = 366 * 86_400_000;
/** How long another credential is preferred to one that refused only this one call. */
const avoidMs = 10_000;
/** Minimum interval of logging the same TLS failure. */
const tellAgainMs = 60_000;
/** Clients choose model names: the oldest entry is dropped. */
const maxEntries = 1000;

/** A credential that its provider refuses: the operator must act. */
export interface DeadCredential {
  readonly provider: string;
  /** Absent if the provider has only one. */
  readonly credential?: string;
  readonly error: ErrorCode;
  /** HTTP status of the refusal. */
  readonly status: number | undefined;
  readonly retryAfterMs: number;
}

/** The state of a target, of a credential, or of the pair. */
export interface HealthReading {
  /** `provider/model`, or the provider alone if a credential is out for all its models. */
  readonly target: string;
  /** '' if the provider has only one. */
  readonly credential: string;
  readonly state: 'closed' | 'half_open' | 'open';
  /** The provider requested a pause. */
  readonly cooling: boolean;
}

/** A target or a credential was taken out or recovered. */
export interface TargetChange {
  readonly provider: string;
  /** Absent = it concerns a credential. */
  readonly model?: string;
  /** Absent if the provider has only one. */
  readonly credential?: string;
  /** Why and for how long; absent = it recovered. */
  readonly out?: { readonly error: ErrorCode; readonly failures: number; readonly ms: number };
}

export interface TargetHealthOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Notified of refused credentials, in addition to the log. */
  readonly alert?: (dead: DeadCredential) => void;
  /** Notified when something is taken out or recovers; for credentials only the latter. */
  readonly changed?: (change: TargetChange) => void;
}

/** What `describe` says of a target that answered its last call. The other states begin with `degraded` or `down`. */
export const healthy = 'healthy';
/** What the commands, the admin API and the dashboard say of a target that was not called yet, or only refused. */
export const neverCalled = 'unknown';

export class TargetHealth {
  readonly #options: TargetHealthOptions;
  readonly #entries = new Map<string, FailureState>();
  /** Targets that answered, by the names of entries. */
  readonly #answered = new Set<string>();
  /** When a provider's TLS failure was last logged, monotonic ms. */
  readonly #untrustedAt = new Map<string, number>();

  constructor(options: TargetHealthOptions) {
    this.#options = options;
  }

  /** No target has a failure state. */
  get calm(): boolean {
    return this.#entries.size === 0;
  }

  /** Whether a call may be sent there: it is in, or a probe is due. */
  isReady(target: Target): boolean {
    if (this.calm) return true;
    const now = this.#now;
    return this.#of(target).every((state) => state.isReady(now));
  }

  /**
   * A call is sent there now; where the breaker is open it is the probe, of which one runs at a time (G13). False, and
   * nothing changes, if the target is not ready.
   */
  enter(target: Target): boolean {
    if (this.calm) return true;
    if (!this.isReady(target)) return false;
    for (const state of this.#of(target)) state.probing = state.outUntil !== undefined;
    return true;
  }

  /** Whether calls go elsewhere if there is another target. */
  isOut(target: Target): boolean {
    if (this.calm) return false;
    return this.#of(target).some(({ outUntil }) => outUntil !== undefined);
  }

  /** Whether another credential of the same target is preferred. */
  isAvoided(target: Target): boolean {
    if (this.calm) return false;
    const now = this.#now;
    return this.#of(target).some(({ avoidUntil }) => avoidUntil > now);
  }

  /**
   * The target to use although none is ready; undefined when all are cooling down, or all except those with a
   * refused key: then waiting is better.
   */
  soonestBack(targets: readonly Target[]): Target | undefined {
    const now = this.#now;
    const waits = targets.some((target) => this.#isCooling(target));
    let best: Target | undefined;
    let bestUntil = Number.POSITIVE_INFINITY;
    for (const target of targets) {
      const states = this.#of(target);
      const until = Math.max(0, ...states.map(({ outUntil = 0 }) => outUntil));
      if (until >= bestUntil || states.some(({ coolUntil }) => coolUntil > now)) continue;
      if (waits && states.some((state) => state.isRefused)) continue;
      best = target;
      bestUntil = until;
    }
    return best;
  }

  /** The error while all targets are cooling down: which, until when, and the shortest wait. */
  allCooling(targets: readonly Target[], random: () => number): GatewayError {
    const now = this.#now;
    const waits = new Map<string, number>();
    for (const target of targets) {
      if (!this.#isCooling(target)) continue;
      const until = Math.max(now, ...this.#of(target).map(({ askedUntil }) => askedUntil));
      const name = nameOf(target);
      // Of several credentials, the one that is free first.
      waits.set(name, Math.min(waits.get(name) ?? Number.POSITIVE_INFINITY, until - now));
    }
    const until = [...waits].map(([name, wait]) => `${name} until ${this.#wallText(now + wait)}`);
    const shortest = Math.min(...waits.values());
    // Clients that were refused together must not return together. The recorded wait may be longer than the one
    // that clients get, so that all get the same answer as the call that met it.
    const retryAfterMs =
      shortest > maxCoolingMs
        ? shortest
        : Math.min(maxCoolingMs, Math.ceil(shortest + random() * 1000));
    const why = `Rate limit: no target of this model accepts calls now: ${until.join(', ')}. Retry then.`;
    return new GatewayError('rate_limited', why, { retryAfterMs });
  }

  #isCooling(target: Target): boolean {
    const now = this.#now;
    return this.#of(target).some(({ coolUntil }) => coolUntil > now);
  }

  /** An answer has begun: the probe has its result and need not read to the end. */
  answered(target: Target): void {
    if (!this.calm && this.isOut(target)) this.succeeded(target);
  }

  /**
   * The target answered correctly.
   * @param since start of the answer, monotonic ms: a long successful stream does not close a breaker that
   * opened after its start. Absent = now.
   */
  succeeded(target: Target, since?: number): void {
    this.#note(nameOf(target));
    if (target.credential !== undefined) this.#note(pairOf(target));
    this.#worked(target, since);
  }

  /** It answered, if only with a refusal for a reason in the request. */
  #worked(target: Target, since?: number): void {
    if (this.calm) return;
    this.#repair(nameOf(target), since);
    this.#repair(credentialOf(target), since);
    this.#repair(pairOf(target), since);
  }

  /** Records failures that are the target's fault (R6). Most are not. */
  failed(target: Target, error: GatewayError): void {
    if (isUntrusted(error)) this.#tellUntrusted(target, error);
    if (error.code === 'rate_limited' || error.code === 'upstream_auth') {
      // A rate limit or a permission: another credential may have neither problem.
      const { code, retryAfterMs } = error;
      if (retryAfterMs !== undefined && (code === 'rate_limited' || isShort(error))) {
        this.#cool(target, retryAfterMs);
      } else if (target.credential !== undefined) {
        const state = this.#entry(pairOf(target));
        state.avoidUntil = this.#now + avoidMs;
      }
    }
    if (isDeadCredential(error)) this.#kill(target, error);
    else if (speaksAgainstTarget(error)) this.#count(target, error.code);
    else if (error.upstream === undefined) this.release(target);
    else this.#worked(target);
  }

  /** The probe ended without a result. */
  release(target: Target): void {
    if (this.calm) return;
    for (const state of this.#of(target)) state.probing = false;
  }

  /** Drops all state: the configuration changed, and with it the meaning of names. */
  forget(): void {
    for (const [name, { outUntil }] of this.#entries) {
      if (outUntil !== undefined) this.#options.changed?.(changeOf(name));
    }
    this.#entries.clear();
    this.#answered.clear();
    this.#untrustedAt.clear();
  }

  /**
   * The state of a target: `healthy`, `degraded: …` (it gets fewer calls) or `down: …`; undefined when it
   * gave no answer yet.
   * @param name `provider/model`.
   * @param credential the state of the target with this one of its credentials.
   */
  describe(name: string, credential?: string): string | undefined {
    return describeBy((each) => this.#descriptionOf(each), name, credential);
  }

  /** The same of all targets that were called, by the names that `describeBy` uses. */
  descriptions(): ReadonlyMap<string, string> {
    const descriptions = new Map([...this.#answered].map((name) => [name, healthy]));
    for (const name of this.#entries.keys()) {
      const description = this.#descriptionOf(name);
      if (description !== undefined) descriptions.set(name, description);
    }
    return descriptions;
  }

  /**
   * The worst state of a provider, its models and credentials, as `describe` words it; undefined when it gave no answer
   * yet.
   */
  ofProvider(id: string): string | undefined {
    return describeProvider(this.descriptions(), id);
  }

  #descriptionOf(name: string): string | undefined {
    const state = this.#entries.get(name);
    const failure = state === undefined ? undefined : this.#describeState(state);
    return failure ?? (this.#answered.has(name) ? healthy : undefined);
  }

  #note(name: string): void {
    if (this.#answered.has(name)) return;
    const [oldest] = this.#answered;
    if (this.#answered.size >= maxEntries && oldest !== undefined) this.#answered.delete(oldest);
    this.#answered.add(name);
  }

  /** All entries. */
  readings(): readonly HealthReading[] {
    const now = this.#now;
    return [...this.#entries].map(([name, { outUntil, probing, coolUntil }]) => {
      const [target = '', credential = ''] = name.split('\n');
      const isOut = outUntil !== undefined;
      const state = !isOut ? 'closed' : probing || outUntil <= now ? 'half_open' : 'open';
      return { target, credential, state, cooling: coolUntil > now };
    });
  }

  #describeState(state: FailureState): string | undefined {
    const { coolUntil, outUntil, failures, probing, lastError, avoidUntil } = state;
    const now = this.#now;
    if (coolUntil > now) return `degraded: rate limited until ${this.#wallText(coolUntil)}`;
    if (outUntil === undefined) {
      if (failures > 0) return `degraded: ${failures} failed in a row (${lastError})`;
      if (avoidUntil <= now) return undefined;
      return `degraded: another credential is preferred until ${this.#wallText(avoidUntil)}`;
    }
    if (probing) return `down: a call is trying it (${lastError})`;
    if (outUntil <= now) return `down: the next call tries it (${lastError})`;
    return `down: until ${this.#wallText(outUntil)} (${lastError})`;
  }

  /** Only the operator can fix this; logged at most once a minute. */
  #tellUntrusted({ provider }: Target, { message, detail, cause }: GatewayError): void {
    const warnedAt = this.#untrustedAt.get(provider.id);
    if (warnedAt !== undefined && this.#now - warnedAt < tellAgainMs) return;
    this.#untrustedAt.set(provider.id, this.#now);
    const reason = cause instanceof Error ? cause.message : undefined;
    this.#options.log.error('upstream_not_trusted', {
      provider: provider.id,
      message: detail ?? message,
      reason,
    });
  }

  #kill(target: Target, { code, upstream }: GatewayError): void {
    const state = this.#entry(credentialOf(target));
    const known = state.outUntil !== undefined && !state.probing;
    state.takeOut(code, { now: this.#now, ms: deadCredentialMs });
    // It has answered, so the target is reachable.
    this.#repair(nameOf(target));
    if (known) return;
    const { credential, provider } = target;
    const status = upstream?.status;
    this.#options.log.error('credential_out', {
      provider: provider.id,
      ...(credential === undefined ? {} : { credential }),
      health: 'down',
      error: code,
      status,
      ms: deadCredentialMs,
    });
    const which = { provider: provider.id, ...(credential === undefined ? {} : { credential }) };
    this.#options.alert?.({ ...which, error: code, status, retryAfterMs: deadCredentialMs });
  }

  #count(target: Target, code: ErrorCode): void {
    const name = nameOf(target);
    const state = this.#entry(name);
    const ms = state.count(code, this.#now);
    // The probe says nothing about the credential.
    for (const other of this.#of(target)) if (other !== state) other.probing = false;
    if (ms === undefined) return;
    const { failures } = state;
    this.#options.log.warn('target_out', {
      target: name,
      health: 'down',
      error: code,
      failures,
      ms,
    });
    this.#options.changed?.({ ...changeOf(name), out: { error: code, failures, ms } });
  }

  #cool(target: Target, waitMs: number): void {
    const state = this.#entry(pairOf(target));
    const now = this.#now;
    const ms = Math.min(maxCoolingMs, waitMs);
    const known = state.coolUntil > now;
    state.coolUntil = Math.max(state.coolUntil, now + ms);
    state.askedUntil = Math.max(
      known ? state.askedUntil : 0,
      now + Math.min(maxCooldownMs, waitMs),
    );
    if (known) return;
    const { credential } = target;
    this.#options.log.warn('target_cooling_down', {
      target: nameOf(target),
      ...(credential === undefined ? {} : { credential }),
      health: 'degraded',
      ms,
    });
  }

  #repair(name: string, since = Number.POSITIVE_INFINITY): void {
    const state = this.#entries.get(name);
    if (state === undefined || state.isOutSince(since)) return;
    if (state.recover()) {
      this.#options.log.info('target_recovered', {
        target: name.replace('\n', ' '),
        health: healthy,
      });
      this.#options.changed?.(changeOf(name));
    }
    // A call that began earlier does not end a wait that the provider requested.
    if (state.isOver(this.#now)) this.#entries.delete(name);
  }

  #of(target: Target): readonly FailureState[] {
    const found: FailureState[] = [];
    for (const name of [nameOf(target), credentialOf(target), pairOf(target)]) {
      const state = this.#entries.get(name);
      if (state !== undefined && !found.includes(state)) found.push(state);
    }
    return found;
  }

  #entry(name: string): FailureState {
    const known = this.#entries.get(name);
    if (known !== undefined) return known;
    const state = new FailureState();
    const [oldest] = this.#entries.keys();
    if (this.#entries.size >= maxEntries && oldest !== undefined) this.#entries.delete(oldest);
    this.#entries.set(name, state);
    return state;
  }

  get #now(): number {
    return this.#options.clock.now();
  }

  #wallText(monotonic: number): string {
    const { clock } = this.#options;
    const wall = clock.wall() + (monotonic - clock.now());
    return new Date(Math.ceil(wall / 1000) * 1000).toISOString().replace('.000Z', 'Z');
  }
}

/** Trouble before `healthy`; undefined when nothing is known. */
export function worstOf(descriptions: readonly (string | undefined)[]): string | undefined {
  return (
    descriptions.find((each) => each !== undefined && each !== healthy) ??
    descriptions.find((each) => each)
  );
}

/** The state of a target, as `TargetHealth.describe`, from the words of single entries. */
export function describeBy(
  descriptionOf: (entry: string) => string | undefined,
  name: string,
  credential?: string,
): string | undefined {
  const provider = name.slice(0, name.indexOf('/'));
  const own = [credentialName(provider, credential), pairName(name, credential)].map(descriptionOf);
  const ofTarget = descriptionOf(name);
  // An answer with another credential says nothing about this one.
  return worstOf(credential !== undefined && ofTarget === healthy ? own : [...own, ofTarget]);
}

/** The state of a provider, as `TargetHealth.ofProvider`, from the words of single entries. */
export function describeProvider(
  descriptions: ReadonlyMap<string, string>,
  id: string,
): string | undefined {
  const own = [...descriptions].filter(([name]) => changeOf(name).provider === id);
  const [worst, ...others] = own
    .filter(([, description]) => description !== healthy)
    .toSorted(([, a], [, b]) => Number(b.startsWith('down')) - Number(a.startsWith('down')));
  if (worst === undefined) return own.length === 0 ? undefined : healthy;
  const [name, description] = worst;
  const { model, credential } = changeOf(name);
  const of = [
    ...(model === undefined ? [] : [`model ${model}`]),
    ...(credential === undefined ? [] : [`credential ${credential}`]),
    ...(others.length === 0 ? [] : [`and ${others.length} more`]),
  ];
  return [description, ...of].join(', ');
}

/** A name is asked for several times a call, and a target serves many. */
const names = new WeakMap<Target, string>();

/** `provider/model`: the target with any credential. */
export function nameOf(target: Target): string {
  let name = names.get(target);
  if (name === undefined) {
    name = `${target.provider.id}/${target.model}`;
    names.set(target, name);
  }
  return name;
}

/** The name of an entry: provider ids and credential names contain no slash. */
function changeOf(name: string): TargetChange {
  const [of = '', credential] = name.split('\n');
  const slash = of.indexOf('/');
  return {
    provider: slash === -1 ? of : of.slice(0, slash),
    ...(slash === -1 ? {} : { model: of.slice(slash + 1) }),
    ...(credential === undefined ? {} : { credential }),
  };
}

/** For a provider with only one credential, the name of the provider. */
function credentialOf({ provider, credential }: Target): string {
  return credentialName(provider.id, credential);
}

function credentialName(provider: string, credential: string | undefined): string {
  return credential === undefined ? provider : `${provider}\n${credential}`;
}

/** Providers count limits by model and credential; with one credential that is the target. */
function pairOf(target: Target): string {
  return pairName(nameOf(target), target.credential);
}

function pairName(name: string, credential: string | undefined): string {
  return credential === undefined ? name : `${name}\n${credential}`;
}

/**
 * A 403 may concern this request only: a model of another plan, a prompt that a filter refused. So may a 402,
 * when the balance is too low for this many tokens.
 */
function isDeadCredential(error: GatewayError): boolean {
  const { code, upstream, ofRequest } = error;
  return code === 'upstream_auth' && upstream?.status !== 403 && !ofRequest && !isShort(error);
}

/** Money that becomes available again by itself: a 402 with a wait, as while running calls hold the balance. */
function isShort({ upstream, retryAfterMs }: GatewayError): boolean {
  return upstream?.status === 402 && retryAfterMs !== undefined;
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

/** TLS is missing or not trusted: a retry does not help, the operator must act. */
export function isUntrusted({ cause }: GatewayError): boolean {
  const code =
    typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : '';
  return /^(CERT_|ERR_TLS_|ERR_SSL_|EPROTO|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/.test(code);
}

/** Failures in a row that open the breaker. */
const failuresToOpen = 5;
/** How long the breaker is open at first; doubled each time a probe fails. */
const firstOutMs = 5000;
const maxOutMs = 60_000;

/**
 * The circuit breaker of a target, a credential or the pair of both (R6). Failures in a row open it; then
 * one call at a time probes whether it works again.
 */
class FailureState {
  /** Failures in a row. */
  failures = 0;
  /** Monotonic ms until which the breaker is open; undefined = closed. */
  outUntil: number | undefined;
  /** Monotonic ms at the end of the provider's requested pause; 0 = none. */
  coolUntil = 0;
  /** Monotonic ms until which the provider asked to wait, which may exceed the applied wait. */
  askedUntil = 0;
  /** Monotonic ms until which other credentials are preferred. */
  avoidUntil = 0;
  /** A call is probing it. */
  probing = false;
  lastError: ErrorCode = 'internal';
  /** When the breaker opened last, monotonic ms. */
  #outAt = Number.NEGATIVE_INFINITY;
  /** How long it is open this time, ms. */
  #outMs = 0;

  /** Whether a call may be sent: the breaker is closed, or a probe is due. */
  isReady(now: number): boolean {
    if (this.coolUntil > now) return false;
    return this.outUntil === undefined || (this.outUntil <= now && !this.probing);
  }

  /** Counts a failure. @returns how long it opens the breaker, ms; undefined = it stays closed. */
  count(code: ErrorCode, now: number): number | undefined {
    // Calls that were running when the breaker opened do not prolong it.
    if (this.outUntil !== undefined && !this.probing) return undefined;
    this.failures += 1;
    this.lastError = code;
    if (this.failures < failuresToOpen) return undefined;
    const ms = Math.min(maxOutMs, this.#outMs === 0 ? firstOutMs : this.#outMs * 2);
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

  /** Whether the provider refuses the credential. */
  get isRefused(): boolean {
    return this.outUntil !== undefined && this.lastError === 'upstream_auth';
  }

  /** Whether the breaker is open and opened after this moment, monotonic ms. */
  isOutSince(moment: number): boolean {
    return this.outUntil !== undefined && this.#outAt > moment;
  }

  /** Closes the breaker. @returns whether it was open. */
  recover(): boolean {
    const wasOut = this.outUntil !== undefined;
    this.failures = 0;
    this.outUntil = undefined;
    this.#outMs = 0;
    this.probing = false;
    return wasOut;
  }

  /** Whether the entry can be dropped. */
  isOver(now: number): boolean {
    const waits = this.coolUntil > now || this.avoidUntil > now;
    return this.failures === 0 && this.outUntil === undefined && !waits;
  }
}
