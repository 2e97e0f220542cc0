/**
 * Step 3b of a call: what it may use at most is taken from the limits and budgets of its key, the key's
 * team and its tags, all or nothing, in one draw (reliability.md §6). A key without any takes nothing and
 * pays nothing for it.
 */
import { GatewayError } from '../core/errors.ts';
import { modelNames, type ModelNames } from '../core/model-names.ts';
import type { CommonPolicy } from '../core/policy.ts';
import type { Route } from '../core/provider.ts';
import type { Clock } from '../core/runtime.ts';
import type { BudgetWindow } from '../store/calls.ts';
import type {
  Counters,
  Draw,
  DrawnCall,
  DrawResult,
  Granted,
  Refused,
} from '../store/counters/counters.ts';
import type { BudgetWatch } from './budget-watch.ts';
import { CallGrant } from './call-grant.ts';
import { HeldLimits, type HeldLimit } from './held-limits.ts';
import type { Learned, Overruns } from './overruns.ts';
import type { HeldPolicy, PolicySource } from './policies.ts';
import type { PriceTable } from './prices.ts';
import type { Principal } from './principal.ts';
import { PreviewCounters, type PreviewedLimit } from './preview-counters.ts';
import { budgetRefusal, neverFits, rateRefusal } from './refusals.ts';
import { pricesOf, Reservation, type AskedSize } from './reservation.ts';

export interface AdmissionParts {
  readonly counters: Counters;
  /** The gateway's own, by which clients are told times: that of shared counters is their server's. */
  readonly clock: Pick<Clock, 'wall'>;
  /** Where the policies of tags are that the client names. */
  readonly policies: PolicySource;
  /** The current one: a reload replaces it. */
  readonly prices: () => Pick<PriceTable, 'find' | 'otherwise'>;
  /** A number in [0, 1), for jitter. */
  readonly random: () => number;
  /** What calls cost beyond their reservations. */
  readonly overruns: Overruns;
  /** Told of budgets that refuse. */
  readonly watch?: Pick<BudgetWatch, 'refused'>;
  /** Told of a tag with limits that a key named which may not, so that it did not count. */
  readonly notCounted?: (tag: string, keyId: string) => void;
  /** Told of each refusal: by what kind of limit, and of whom. */
  readonly refused?: (kind: Refused['kind'], holder: HeldPolicy['holder']['kind']) => void;
}

/** A call that wants to begin. */
export interface AskedCall {
  readonly id: string;
  readonly principal: Principal;
  /** What the client says that it counts for, besides the key's own tags. */
  readonly tags: readonly string[];
  /** As the client wrote it. */
  readonly model: string;
  readonly route: Route;
  /** Asked where a limit is on models. */
  readonly registry: RouteNaming;
  /** Dialect of the client. */
  readonly endpoint?: string;
  /** Absent = it costs nothing and takes no tokens (a count of tokens). */
  readonly size?: AskedSize;
  /** Whether the answer may be lowered to what a budget still has; absent = no. */
  readonly mayShrink?: boolean;
  /** It is not lowered below so many tokens; absent = 0. */
  readonly leastOutput?: number;
}

/** Knows all names under which what answers a route can be called. */
export interface RouteNaming {
  names(route: Route): ModelNames;
}

/** A client's model name may be a megabyte. */
const maxNameLength = 256;

/** A smaller answer than so much helps nobody (reliability.md §6). */
export const leastOutputTokens = 256;

/** What a call would take. */
export interface AdmissionPreview {
  /** Absent where nothing limits the call, or a limit refuses it. */
  readonly grant?: CallGrant;
  readonly refusal?: GatewayError;
  readonly limits: readonly PreviewedLimit[];
}

export class Admission {
  readonly #parts: AdmissionParts;
  readonly #held = new WeakMap<readonly HeldPolicy[], HeldLimits>();

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  /**
   * The call's grant, or undefined for a call that nothing limits. A plain value wherever no other
   * process has to be asked.
   * @throws GatewayError (also as a rejection) `rate_limited`, `budget_exhausted`, `store_unavailable`,
   * or `invalid_request` for a model without a price where a budget counts.
   */
  admit(call: AskedCall): CallGrant | undefined | Promise<CallGrant> {
    const held = this.#limitsOf(call, this.#parts.notCounted);
    if (call.size === undefined ? held.countless : held.none) return undefined;
    return new Admitting(this.#parts, call, held).run();
  }

  /**
   * What `admit` would take, without taking it: the same code at counters that only tell how budgets stand. Rates and
   * places count as free. Never rejects for a limit: what refuses is in `refusal`.
   * @throws StoreError when the counters do not answer.
   */
  async preview(call: AskedCall): Promise<AdmissionPreview> {
    const held = this.#limitsOf(call);
    if (call.size === undefined ? held.countless : held.none) return { limits: [] };
    const { counters, clock, policies, prices, random, overruns } = this.#parts;
    const preview = new PreviewCounters(counters);
    try {
      const look = { overruns: overruns.lookOnly, counters: preview };
      const parts = { clock, policies, prices, random, ...look };
      const grant = await new Admitting(parts, call, held).run();
      return { grant, limits: preview.limits(held) };
    } catch (error) {
      if (error instanceof GatewayError) return { refusal: error, limits: preview.limits(held) };
      throw error;
    }
  }

  #limitsOf(call: AskedCall, notCounted?: AdmissionParts['notCounted']): HeldLimits {
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
   * Of the tags that the client names those count that the key may name. Of the others a key must not use up the limits, and is not
   * told that there are any.
   */
  #ofTags(
    { tags, principal }: AskedCall,
    notCounted: AdmissionParts['notCounted'],
  ): readonly HeldPolicy[] {
    const { policies } = this.#parts;
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

function ofModel(held: HeldLimits, call: AskedCall): HeldLimits {
  if (held.sameForAll) return held;
  const names = call.registry.names(call.route);
  const others = call.size?.others();
  return held.of(others === undefined ? names : modelNames([...names.own, ...others.names]));
}

const noTokens: Draw['tokens'] = [];
const noMoney: Draw['budgets'] = [];

const unsized: AskedSize = {
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
  dearerBy: () => undefined,
};

interface AdmittingParts extends Omit<AdmissionParts, 'overruns'> {
  readonly overruns: Learned;
}

/** One call at the counters: asked again with less where a budget refuses. */
class Admitting {
  readonly #parts: AdmittingParts;
  readonly #call: AskedCall;
  readonly #held: HeldLimits;
  readonly #now: number;
  readonly #reservation: Reservation;
  #counted = false;
  /** Each budget may make the answer smaller once. */
  #shrinks: number;
  /** Of its budgets, as its last draw named them: while that is answered, the next ones may begin. */
  #windows: readonly BudgetWindow[] = [];

  constructor(parts: AdmittingParts, call: AskedCall, held: HeldLimits) {
    this.#parts = parts;
    this.#call = call;
    this.#held = held;
    this.#now = parts.counters.wall();
    const { size } = call;
    const paid = size !== undefined && held.budgets.length > 0;
    const prices = paid ? pricesOf(parts.prices(), size.targets, this.#now) : [];
    const learned = paid ? parts.overruns.beside(held.budgets, size.targets) : 0;
    this.#reservation = new Reservation(size ?? unsized, prices, learned);
    if (paid) this.#reservation.assertPriced();
    this.#shrinks = call.mayShrink === true ? held.budgets.length + 1 : 0;
  }

  run(): CallGrant | Promise<CallGrant> {
    // "Never" is not said of a guess where there is a count.
    if (!this.#counted && this.#seemsTooLarge()) {
      this.#counted = true;
      return this.#reservation.countExactly().then(() => this.run());
    }
    const draw = this.#draw();
    let result: DrawResult | Promise<DrawResult>;
    try {
      result = this.#parts.counters.draw(draw);
    } catch (error) {
      throw unavailable(error);
    }
    if (!(result instanceof Promise)) return this.#take(draw, result);
    return result.then(
      (answered) => this.#take(draw, answered),
      (error: unknown) => {
        throw unavailable(error);
      },
    );
  }

  /** Whether the guess of the prompt alone is larger than a token limit; a guess is rarely twice the count. */
  #seemsTooLarge(): boolean {
    if (this.#call.size === undefined) return false;
    return this.#held.tokens.some(({ limit }) => {
      const { prompt } = this.#reservation;
      return prompt > limit.amount && prompt <= 2 * limit.amount;
    });
  }

  #draw(): Draw {
    const { places, rates, tokens, budgets } = this.#held;
    const reservation = this.#reservation;
    const sized = this.#call.size !== undefined;
    if (sized) this.#windows = this.#held.windows(this.#now);
    // What costs nothing is served on a spent budget, too.
    const paid = sized && !reservation.free && budgets.length > 0;
    const draw: { -readonly [K in keyof Draw]: Draw[K] } = {
      callId: this.#call.id,
      concurrent: places,
      requests: rates,
      tokens: !sized
        ? noTokens
        : tokens.map((held) => {
            const perMinute = held.limit.amount;
            // More than the bucket: the counters refuse it, and tell how all of them stand.
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
    if (paid) draw.about = this.#about();
    return draw;
  }

  #about(): DrawnCall {
    const { principal, tags, endpoint = '', model } = this.#call;
    const { keyId, team, tags: own } = principal;
    const about: DrawnCall = {
      keyId,
      tags: tags.length === 0 ? own : [...own, ...tags],
      endpoint,
      model: model.slice(0, maxNameLength),
      startedAt: Math.floor(this.#now),
    };
    return team === undefined ? about : { ...about, team };
  }

  #take(draw: Draw, result: DrawResult): CallGrant | Promise<CallGrant> {
    if (result.granted) return this.#grant(draw, result);
    return result.kind === 'budget' ? this.#retry(result) : this.#refuse(result);
  }

  #grant(draw: Draw, granted: Granted): CallGrant {
    const { counters, clock, overruns } = this.#parts;
    const paid = this.#call.size !== undefined && this.#held.budgets.length > 0;
    const parts = {
      counters,
      draw,
      granted,
      reservation: this.#reservation,
      now: this.#now,
      toldAt: clock.wall(),
      held: paid ? this.#held.budgets : [],
      windows: this.#windows,
      overruns,
    };
    return new CallGrant(parts, paid ? this.#capNote() : undefined);
  }

  /**
   * A budget refused: no second request is paid for, an exact count of the prompt may help, and then a
   * smaller answer.
   */
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
    const { leastOutput: least = 0 } = this.#call;
    if (this.#shrinks > 0 && this.#reservation.shrink(refused.state.remaining, least)) {
      this.#shrinks -= 1;
      return this.run();
    }
    return this.#refuse(refused);
  }

  /** Whether it is worth to tokenise: a guess is rarely twice the count, and nothing fits into nothing. */
  #mayFit({ state }: Refused): boolean {
    const shrunk = this.#shrinks > 0 ? (this.#call.leastOutput ?? 0) : this.#reservation.output;
    const least = Math.min(shrunk, this.#reservation.output);
    return state.remaining > 0 && this.#reservation.cost(least) <= 2 * state.remaining;
  }

  #refuse(refused: Refused): never {
    const { kind, index } = refused;
    const { random, clock } = this.#parts;
    const [reservation, toldAt] = [this.#reservation, clock.wall()];
    const facts = { refused, reservation, random, now: this.#now, toldAt };
    if (kind === 'budget') {
      const budget = this.#held.budgets[index];
      if (budget !== undefined) {
        const window = this.#windows[index] ?? budget.window(this.#now);
        this.#parts.watch?.refused(budget, { at: this.#now, window });
        this.#parts.refused?.(kind, budget.holder.kind);
        throw budgetRefusal(budget, facts);
      }
    } else {
      const never = this.#neverFits();
      const limit = never ?? this.#held[kind][index];
      if (limit !== undefined) {
        this.#parts.refused?.(kind, limit.holder.kind);
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
    if (lowered) return `lowered to ${output}: the budget has no room for more`;
    if (origin !== 'default') return undefined;
    return `set to ${output}: a budget counts, and the model's own limit is not known`;
  }
}

function unavailable(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const why = 'The counters behind the limits of this key do not answer; try again soon.';
  return new GatewayError('store_unavailable', why, { cause: error });
}
