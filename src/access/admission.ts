/**
 * Admission: reserves what a call may use from the limits and budgets of its key, the key's team and its tags,
 * all or nothing, in one reservation. A key without limits reserves nothing.
 */
import { GatewayError } from '../core/errors.ts';
import { type ModelNames, modelNames } from '../core/model-names.ts';
import { dollarsText } from '../core/money.ts';
import { type CommonPolicy, LimitError, type Standings } from '../core/policy.ts';
import type { Route } from '../core/provider.ts';
import type { Clock } from '../core/runtime.ts';
import type { BudgetWindow } from '../store/calls.ts';
import type {
  Counters,
  ReserveRequest,
  ReserveResult,
  ReservedCall,
  Refused,
} from '../store/counters/counters.ts';
import type { BudgetWatch } from './budget-watch.ts';
import { CallGrant, tightest } from './call-grant.ts';
import { type HeldBudget, type HeldLimit, HeldLimits } from './held-limits.ts';
import type { Learned, Overruns } from './overruns.ts';
import type { HeldPolicy, Holder, PolicySource } from './policies.ts';
import { PreviewCounters, type PreviewedLimit } from './preview-counters.ts';
import type { PriceTable } from './prices.ts';
import type { Principal } from './keys/principal.ts';
import { type RequestedSize, Reservation, pricesOf } from './reservation.ts';

export interface AdmissionDeps {
  readonly counters: Counters;
  /** The gateway's own clock, for times in headers. Shared counters use their server's clock. */
  readonly clock: Pick<Clock, 'wall'>;
  /** Source of the policies of tags that the client names. */
  readonly policies: PolicySource;
  /** The current prices: a reload replaces them. */
  readonly prices: () => Pick<PriceTable, 'find' | 'otherwise'>;
  /** A number in [0, 1), for jitter. */
  readonly random: () => number;
  /** The cost of calls beyond their reservations. */
  readonly overruns: Overruns;
  /** Notified of budgets that refuse. */
  readonly watch?: Pick<BudgetWatch, 'refused'>;
  /** Called for a tag with limits that the key may not set, so that it did not count. */
  readonly notCounted?: (tag: string, keyId: string) => void;
  /** Called for each refusal with the kind of the limit and its holder. */
  readonly refused?: (kind: Refused['kind'], holder: HeldPolicy['holder']['kind']) => void;
}

/** A call to be admitted. */
export interface AdmissionRequest {
  readonly id: string;
  readonly principal: Principal;
  /** Tags that the client names, in addition to the key's own. */
  readonly tags: readonly string[];
  /** As the client wrote it. */
  readonly model: string;
  readonly route: Route;
  /** Used if a limit applies to certain models. */
  readonly registry: RouteNaming;
  /** Dialect of the client. */
  readonly endpoint?: string;
  /** Absent = it costs nothing and takes no tokens (a count of tokens). */
  readonly size?: RequestedSize;
  /** Whether the output limit may be lowered to what is left of a budget; absent = no. */
  readonly mayShrink?: boolean;
  /** The output is not lowered below this number of tokens; absent = 0. */
  readonly minOutput?: number;
}

/** Knows all names of the models that a route can answer with. */
export interface RouteNaming {
  names(route: Route): ModelNames;
}

/** A client's model name may be a megabyte. */
const maxNameLength = 256;

/** Minimum answer length. A shorter answer is of no use to a client. */
export const minOutputTokens = 256;

/** The reservation that a call would make. */
export interface AdmissionPreview {
  /** Absent if nothing limits the call, or a limit refuses it. */
  readonly grant?: CallGrant;
  readonly refusal?: GatewayError;
  readonly limits: readonly PreviewedLimit[];
}

export class Admission {
  readonly #deps: AdmissionDeps;
  readonly #held = new WeakMap<readonly HeldPolicy[], HeldLimits>();

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
  }

  /**
   * The grant of the call, or undefined for a call without limits. Returned synchronously whenever no other
   * process has to answer.
   * @throws GatewayError (also as a rejection) `rate_limited`, `budget_exhausted`, `store_unavailable`, or
   * `invalid_request` for a model without a price if a budget applies.
   */
  admit(call: AdmissionRequest): CallGrant | undefined | Promise<CallGrant> {
    const held = this.#limitsOf(call, this.#deps.notCounted);
    if (call.size === undefined ? held.countless : held.none) return undefined;
    return new Admitting(this.#deps, call, held).run();
  }

  /**
   * The reservation that `admit` would make, without making it: the same code on read-only counters. Rates and
   * concurrency count as free. Never rejects for a limit: what refuses is in `refusal`.
   * @throws StoreError when the counters are unavailable.
   */
  async preview(call: AdmissionRequest): Promise<AdmissionPreview> {
    const held = this.#limitsOf(call);
    if (call.size === undefined ? held.countless : held.none) return { limits: [] };
    const { counters, clock, policies, prices, random, overruns } = this.#deps;
    const preview = new PreviewCounters(counters);
    try {
      const look = { overruns: overruns.lookOnly, counters: preview };
      const deps = { clock, policies, prices, random, ...look };
      const grant = await new Admitting(deps, call, held).run();
      return { grant, limits: preview.limits(held) };
    } catch (error) {
      if (error instanceof GatewayError) return { refusal: error, limits: preview.limits(held) };
      throw error;
    }
  }

  #limitsOf(call: AdmissionRequest, notCounted?: AdmissionDeps['notCounted']): HeldLimits {
    const { principal, tags } = call;
    const own = principal.policies();
    const more = tags.length === 0 ? [] : this.#ofTags(call, notCounted);
    if (more.length > 0) return ofModel(HeldLimits.of([...own, ...more]), call);
    let held = this.#held.get(own);
    if (held === undefined) {
      held = HeldLimits.of(own);
      this.#held.set(own, held);
    }
    return ofModel(held, call);
  }

  /**
   * Of the tags that the client names, only those count that the key may set. A key must not use up the limits
   * of other tags or learn that they exist.
   */
  #ofTags(
    { tags, principal }: AdmissionRequest,
    notCounted: AdmissionDeps['notCounted'],
  ): readonly HeldPolicy[] {
    const { policies } = this.#deps;
    return tags.flatMap((name) => {
      const policy = principal.tags.includes(name) ? undefined : policies.find('tag', name);
      if (policy === undefined) return [];
      if (mayName(principal, policy)) return [{ holder: { kind: 'tag' as const, name }, policy }];
      notCounted?.(name, principal.keyId);
      return [];
    });
  }
}

function mayName({ keyId, team }: Principal, { namedBy }: CommonPolicy): boolean {
  if (namedBy === undefined) return false;
  const { keys, teams } = namedBy;
  if (keys.includes('*') || keys.includes(keyId)) return true;
  return team !== undefined && (teams.includes('*') || teams.includes(team));
}

function ofModel(held: HeldLimits, call: AdmissionRequest): HeldLimits {
  if (held.sameForAll) return held;
  const names = call.registry.names(call.route);
  const others = call.size?.others();
  return held.of(others === undefined ? names : modelNames([...names.own, ...others.names]));
}

const noTokens: ReserveRequest['tokens'] = [];
const noMoney: ReserveRequest['budgets'] = [];

const unsized: RequestedSize = {
  targets: [],
  maxOutputTokens: 0,
  choices: 1,
  promptAtMost: () => 0,
  promptExactly: async () => undefined,
  cacheWrites: () => 'none',
  images: () => 0,
  searches: () => undefined,
  media: () => false,
  others: () => undefined,
  raised: () => undefined,
  serviceTier: () => undefined,
  expensiveBy: () => undefined,
};

interface AdmittingDeps extends Omit<AdmissionDeps, 'overruns'> {
  readonly overruns: Learned;
}

/** The reservations of one call: repeated with less if a budget refuses. */
class Admitting {
  readonly #deps: AdmittingDeps;
  readonly #call: AdmissionRequest;
  readonly #held: HeldLimits;
  readonly #now: number;
  readonly #reservation: Reservation;
  #counted = false;
  /** Each budget may make the answer smaller once. */
  #shrinks: number;
  /**
   * Budget windows of its last reservation. They stay valid for this reservation although the next ones may begin
   * meanwhile.
   */
  #windows: readonly BudgetWindow[] = [];

  constructor(deps: AdmittingDeps, call: AdmissionRequest, held: HeldLimits) {
    this.#deps = deps;
    this.#call = call;
    this.#held = held;
    this.#now = deps.counters.wall();
    const { size } = call;
    const paid = size !== undefined && held.budgets.length > 0;
    const prices = paid ? pricesOf(deps.prices(), size.targets, this.#now) : [];
    const learned = paid ? deps.overruns.extraFor(held.budgets, size.targets) : 0;
    this.#reservation = new Reservation(size ?? unsized, prices, learned);
    if (paid) this.#reservation.assertPriced();
    this.#shrinks = call.mayShrink === true ? held.budgets.length + 1 : 0;
  }

  run(): CallGrant | Promise<CallGrant> {
    // An estimate is not enough to say that the prompt never fits if an exact count is possible.
    if (!this.#counted && this.#seemsTooLarge()) {
      this.#counted = true;
      return this.#reservation.countExactly().then(() => this.run());
    }
    const request = this.#reserve();
    let result: ReserveResult | Promise<ReserveResult>;
    try {
      result = this.#deps.counters.reserve(request);
    } catch (error) {
      throw unavailable(error);
    }
    if (!(result instanceof Promise)) return this.#take(request, result);
    return result.then(
      (answered) => this.#take(request, answered),
      (error: unknown) => {
        throw unavailable(error);
      },
    );
  }

  /** Whether the estimate of the prompt alone exceeds a token limit; an estimate is rarely twice the count. */
  #seemsTooLarge(): boolean {
    if (this.#call.size === undefined) return false;
    return this.#held.tokens.some(({ limit }) => {
      const { prompt } = this.#reservation;
      return prompt > limit.amount && prompt <= 2 * limit.amount;
    });
  }

  #reserve(): ReserveRequest {
    const { slots, rates, tokens, budgets } = this.#held;
    const reservation = this.#reservation;
    const sized = this.#call.size !== undefined;
    if (sized) this.#windows = this.#held.windows(this.#now);
    // A call without cost is served even on an exhausted budget.
    const paid = sized && !reservation.free && budgets.length > 0;
    const request: { -readonly [K in keyof ReserveRequest]: ReserveRequest[K] } = {
      callId: this.#call.id,
      concurrent: slots,
      requests: rates,
      tokens: !sized
        ? noTokens
        : tokens.map((held) => {
            const perMinute = held.limit.amount;
            // More than the bucket: the counters refuse it and report the state of all limits.
            const amount = reservation.tokensFrom(perMinute) ?? reservation.prompt;
            return { counter: held.counter, perMinute, amount };
          }),
      budgets: !paid
        ? noMoney
        : budgets.map((held) => {
            const { counter, window, endsAt } = held.window(this.#now);
            const { nanodollars } = held.budget;
            return { counter, window, endsAt, nanodollars, amount: reservation.cost() };
          }),
    };
    if (paid) request.about = this.#about();
    return request;
  }

  #about(): ReservedCall {
    const { principal, tags, endpoint = '', model } = this.#call;
    const { keyId, team, tags: own } = principal;
    const about: ReservedCall = {
      keyId,
      tags: tags.length === 0 ? own : [...own, ...tags],
      endpoint,
      model: model.slice(0, maxNameLength),
      startedAt: Math.floor(this.#now),
    };
    return team === undefined ? about : { ...about, team };
  }

  #take(request: ReserveRequest, result: ReserveResult): CallGrant | Promise<CallGrant> {
    if (result.granted) {
      const { counters, clock, overruns } = this.#deps;
      const paid = this.#call.size !== undefined && this.#held.budgets.length > 0;
      const deps = {
        counters,
        request,
        granted: result,
        reservation: this.#reservation,
        now: this.#now,
        answeredAt: clock.wall(),
        held: paid ? this.#held.budgets : [],
        windows: this.#windows,
        overruns,
      };
      return new CallGrant(deps, paid ? this.#capNote() : undefined);
    }
    return result.kind === 'budget' ? this.#retry(result) : this.#refuse(result);
  }

  /** A budget refused: first drop the second request, then count the prompt exactly, then lower the output. */
  #retry(refused: Refused): CallGrant | Promise<CallGrant> {
    if (this.#reservation.dropHedge()) return this.run();
    if (!this.#counted && this.#mayFit(refused)) {
      this.#counted = true;
      return this.#retryExactly(refused);
    }
    return this.#retrySmaller(refused);
  }

  async #retryExactly(refused: Refused): Promise<CallGrant> {
    const helped = await this.#reservation.countExactly();
    return helped ? this.run() : this.#retrySmaller(refused);
  }

  #retrySmaller(refused: Refused): CallGrant | Promise<CallGrant> {
    const { minOutput: least = 0 } = this.#call;
    if (this.#shrinks > 0 && this.#reservation.shrink(refused.state.remaining, least)) {
      this.#shrinks -= 1;
      return this.run();
    }
    return this.#refuse(refused);
  }

  /**
   * Whether an exact count may help: an estimate is rarely twice the count, and an exhausted budget fits
   * nothing.
   */
  #mayFit({ state }: Refused): boolean {
    const shrunk = this.#shrinks > 0 ? (this.#call.minOutput ?? 0) : this.#reservation.output;
    const least = Math.min(shrunk, this.#reservation.output);
    return state.remaining > 0 && this.#reservation.cost(least) <= 2 * state.remaining;
  }

  #refuse(refused: Refused): never {
    const { kind, index } = refused;
    const { random, clock } = this.#deps;
    const [reservation, answeredAt] = [this.#reservation, clock.wall()];
    const facts = { refused, reservation, random, now: this.#now, answeredAt };
    if (kind === 'budget') {
      const budget = this.#held.budgets[index];
      if (budget !== undefined) {
        const window = this.#windows[index] ?? budget.window(this.#now);
        this.#deps.watch?.refused(budget, { at: this.#now, window });
        this.#deps.refused?.(kind, budget.holder.kind);
        throw budgetRefusal(budget, facts);
      }
    } else {
      const never = this.#neverFits();
      const limit = never ?? this.#held[kind][index];
      if (limit !== undefined) {
        this.#deps.refused?.(kind, limit.holder.kind);
        throw never === undefined ? rateRefusal(limit, facts) : neverFits(never, facts);
      }
    }
    throw new GatewayError('rate_limited', 'A limit of this key is reached; try again later.');
  }

  /** The first limit whose whole bucket is smaller than the prompt. */
  #neverFits(): HeldLimit | undefined {
    if (this.#call.size === undefined) return undefined;
    const reservation = this.#reservation;
    return this.#held.tokens.find(
      ({ limit }) => reservation.tokensFrom(limit.amount) === undefined,
    );
  }

  #capNote(): string | undefined {
    const { output, lowered, origin, free } = this.#reservation;
    if (free) return undefined;
    if (lowered) return `lowered to ${output}: the budget does not allow more`;
    if (origin !== 'default') return undefined;
    return `set to ${output}: a budget applies, and the model's own limit is unknown`;
  }
}

function unavailable(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const why = 'The counters for the limits of this key are unavailable; try again soon.';
  return new GatewayError('store_unavailable', why, { cause: error });
}

// The error for a call that a limit or a budget refuses: which one, whose, how much, and when it is free again
// (E8, E9).

/** Random addition to the wait of a refused caller, so that not all retry at once. */
const jitterMs = 500;
/** Above this, the answer asks clients not to retry (E8). */
const maxWaitMs = 60_000;

interface RefusalFacts {
  readonly refused: Pick<Refused, 'state' | 'waitMs' | 'open' | 'requests' | 'tokens'>;
  readonly reservation: Reservation;
  /** Ms since the epoch, by the clock of the counters. */
  readonly now: number;
  /** The same moment by the gateway's own clock, which headers use. */
  readonly answeredAt: number;
  /** In [0, 1). */
  random(): number;
}

/** A rate limit is exhausted. */
function rateRefusal(held: HeldLimit, facts: RefusalFacts): GatewayError {
  const { waitMs } = facts.refused;
  const retryAfterMs =
    waitMs === undefined ? undefined : jittered(waitMs, facts.random() * jitterMs);
  return new LimitError('rate_limited', rateText(held, facts), {
    standings: standingsOf(held, facts),
    limit: held.counter,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Jitter alone never makes a wait too long. */
function jittered(waitMs: number, jitter: number): number {
  const later = Math.ceil(waitMs + jitter);
  return waitMs <= maxWaitMs ? Math.min(later, maxWaitMs) : later;
}

/** The limit that refused; of the other kinds the one that will refuse first. */
function standingsOf(
  held: HeldLimit | undefined,
  { refused, answeredAt }: RefusalFacts,
): Standings {
  const { limit, remaining, resetMs } = refused.state;
  const own = { limit, remaining, fullAt: answeredAt + resetMs };
  const kind = held?.limit.kind;
  const requests = kind === 'requests' ? own : tightest(refused.requests, answeredAt);
  const tokens = kind === 'tokens' ? own : tightest(refused.tokens, answeredAt);
  return {
    ...(requests === undefined ? {} : { requests }),
    ...(tokens === undefined ? {} : { tokens }),
  };
}

function rateText(held: HeldLimit, { refused, reservation }: RefusalFacts): string {
  const { amount, kind } = held.limit;
  const { remaining } = refused.state;
  const whose = `${scopeText(held)}:`;
  const when = refused.waitMs === undefined ? '' : ` Try again in ${waitText(refused.waitMs)}.`;
  switch (kind) {
    case 'requests':
      return `Rate limit of ${whose} ${amount} ${amount === 1 ? 'request' : 'requests'} per minute, ${remaining} left.${when}`;
    case 'tokens':
      return `Rate limit of ${whose} ${amount} tokens per minute, ${remaining} left; ${sizeText(reservation)}.${when}`;
    case 'concurrent':
      return amount === 1
        ? `Limit of ${whose} 1 call at a time, and it is running. Try again when it is over.`
        : `Limit of ${whose} ${amount} calls at a time, all of them running. Try again when one is over.`;
    default:
      return kind satisfies never;
  }
}

/** A prompt that is larger than the whole bucket: waiting does not help, and the answer asks SDKs not to retry. */
function neverFits(held: HeldLimit, facts: RefusalFacts): GatewayError {
  const { reservation } = facts;
  const why =
    `Rate limit of ${scopeText(held)}: ${held.limit.amount} tokens per minute; the prompt alone has about ` +
    `${reservation.prompt}, so this call can never fit. Send a shorter prompt.`;
  const retryAfterMs = Number.POSITIVE_INFINITY;
  return new LimitError('rate_limited', why, {
    standings: standingsOf(undefined, facts),
    limit: held.counter,
    retryAfterMs,
  });
}

/** A budget is too small for the call. */
function budgetRefusal(held: HeldBudget, facts: RefusalFacts): GatewayError {
  const { budget, holder } = held;
  const { refused, reservation, now } = facts;
  const { remaining } = refused.state;
  const left = remaining <= 0 ? 'nothing' : `$${dollarsText(remaining)}`;
  const { open = 0 } = refused;
  const running = open > 0 ? `, $${dollarsText(open)} reserved by running calls` : '';
  const why =
    `The budget of ${holderText(holder)} has no room for this call: $${dollarsText(budget.nanodollars)} ` +
    `${periodText[budget.per]}, ${left} left${running}; the call may cost up to $${dollarsText(reservation.cost())} ` +
    `(${sizeText(reservation)}).${renewalText(held, now)}`;
  return new LimitError('budget_exhausted', why, {
    standings: standingsOf(undefined, facts),
    limit: held.counter,
  });
}

const periodText = { day: 'a day', week: 'a week', month: 'a month', ever: 'in total' } as const;

function renewalText(held: HeldBudget, now: number): string {
  const { endsAt } = held.window(now);
  if (endsAt === undefined) return ' It does not reset.';
  const at = new Date(endsAt).toISOString().slice(0, 16);
  return ` It resets at ${at}Z, in ${waitText(endsAt - now)}.`;
}

function scopeText({ holder, limit }: HeldLimit): string {
  const models = limit.model === undefined ? '' : ` for models ${limit.model}`;
  return `${holderText(holder)}${models}`;
}

/** A client does not know its key by the id, which is for the operator. */
function holderText({ kind, name }: Holder): string {
  return kind === 'key' ? `this key (${name})` : `${kind} ${name}`;
}

function sizeText({ prompt, output, choices }: Reservation): string {
  const times = choices === 1 ? '' : ` times ${choices}`;
  return `about ${prompt} prompt tokens and up to ${output}${times} output tokens`;
}

/** Long waits in the two largest units: `2 d 3 h`, `4 min 5 s`, `0.3 s`. */
function waitText(ms: number): string {
  if (ms < 10_000) return `${Math.ceil(ms / 100) / 10} s`;
  const seconds = Math.ceil(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(' ');
}
