/** An admitted call's share of limits and budgets, until it is settled. */
import { totalInputTokens, type Usage } from '../core/generation.ts';
import type { Price } from '../core/money.ts';
import type { Grant, Standing, Standings } from '../core/policy.ts';
import type { BudgetWindow } from '../store/calls.ts';
import type {
  BudgetItem,
  Counters,
  CounterState,
  ReserveRequest,
  ReserveResult,
  Granted,
} from '../store/counters/counters.ts';
import { costOf } from './cost.ts';
import type { HeldBudget } from './held-limits.ts';
import type { Learned, Reserving } from './overruns.ts';
import type { Reservation } from './reservation.ts';

export interface GrantInput {
  readonly counters: Counters;
  readonly request: ReserveRequest;
  readonly granted: Granted;
  readonly reservation: Reservation;
  /** Ms since the epoch, by the clock of the counters. */
  readonly now: number;
  /** The same moment by the gateway's own clock, which headers use. */
  readonly answeredAt: number;
  /** The budgets that pay for the call. */
  readonly held: readonly HeldBudget[];
  /** Their windows, as the reservation named them. */
  readonly windows: readonly BudgetWindow[];
  readonly overruns: Learned;
}

/** Further reservations of a call use these names: `call+`, `call+2`, … */
function moreOf(callId: string, ask: number): string {
  return ask === 1 ? `${callId}+` : `${callId}+${ask}`;
}

export class CallGrant implements Grant, Reserving {
  readonly standings: Standings;
  readonly outputCap?: number;
  readonly paid: boolean;
  readonly sendsCap: boolean;
  readonly capNote?: string;
  readonly mayHedge: boolean;
  /** The budgets that pay for the call. */
  readonly held: readonly HeldBudget[];
  readonly #input: GrantInput;
  /** The prompt that is reserved, and the part that the vendor writes to its cache. */
  #prompt: number;
  #written = 0;
  #reserved: number | undefined;
  /** The part for a second request, which is never used for the answer. */
  readonly #extra: number;
  /** Number of further reservations. */
  #asks = 0;
  #asking: Promise<unknown> | undefined;
  /** Whether less money is reserved than the full output may cost. */
  #short = false;
  #over = false;
  /** Nanodollars held in addition to the reservation, since similar calls cost more than they reserved. */
  #further: number;

  constructor(input: GrantInput, capNote: string | undefined) {
    const { granted, reservation, answeredAt, held, request } = input;
    this.#input = input;
    this.standings = standingsOf(granted, answeredAt);
    this.held = held;
    const paid = held.length > 0;
    this.paid = paid;
    this.#prompt = paid ? reservation.prompt : 0;
    this.#reserved = paid ? reservation.cost() : undefined;
    this.mayHedge = !paid || reservation.hedged;
    this.#extra = paid ? reservation.extraCost : 0;
    const limits = paid && !reservation.free;
    const counted = limits || (request.tokens.length > 0 && reservation.origin === 'client');
    if (counted) this.outputCap = reservation.output;
    this.sendsCap = limits && (reservation.lowered || reservation.origin === 'default');
    if (capNote !== undefined) this.capNote = capNote;
    this.#further = reservation.learned;
    // A free call cannot overrun: it is not tracked.
    input.overruns.began(this);
  }

  get callId(): string {
    return this.#input.request.callId;
  }

  /** Ms since the epoch, by the clock of the counters. */
  get admittedAt(): number {
    return this.#input.now;
  }

  /** The windows that its cost is added to, including the lease that pays. */
  get budgets(): readonly BudgetWindow[] {
    const { granted, windows } = this.#input;
    return granted.lease === undefined ? windows : leased(windows, granted.lease);
  }

  /** What the call was admitted at; undefined without a budget. */
  priceOf(target: { readonly provider: string; readonly model: string }): Price | undefined {
    return this.#input.reservation.priceOf(target.provider, target.model);
  }

  get promptGuess(): number | undefined {
    return this.#input.reservation.promptGuess;
  }

  /** Nanodollars; undefined without a budget. */
  get reserved(): number | undefined {
    return this.#reserved;
  }

  /**
   * If a prompt turns out larger than reserved, the rest is taken from the budget, and if that is empty, from
   * what was reserved for the answer. The prompt may grow again, since a provider's own tools read more.
   */
  outputAfter(usage: Usage): number | undefined | Promise<number | undefined> {
    // One after the other, so that what the first one gets is not requested again.
    if (this.#asking !== undefined) return this.#asking.then(() => this.outputAfter(usage));
    return this.#grew(usage) ? this.#payFor(usage) : undefined;
  }

  outputOfRound(usage: Usage): number | undefined | Promise<number | undefined> {
    if (this.#asking !== undefined) return this.#asking.then(() => this.outputOfRound(usage));
    const { found } = this.#input.reservation;
    const round = { ...usage, freshInputTokens: (usage.freshInputTokens ?? 0) + found };
    this.#grew(round);
    return this.#payFor(round);
  }

  #payFor(usage: Usage): number | undefined | Promise<number | undefined> {
    const reserved = this.#reserved;
    if (this.#over || reserved === undefined) return undefined;
    const missing = this.#needs(usage, this.#most) - (reserved - this.#extra);
    if (missing <= 0) return undefined;
    return this.#askMore(usage, missing);
  }

  releaseSlots(): void {
    const { counters, request } = this.#input;
    if (request.concurrent.length > 0) counters.releaseSlots(request.callId);
  }

  /** Releases what the call holds. A second call changes nothing, which the counters ensure. */
  settle(used: { readonly tokens: number; readonly nanodollars: number | undefined }): void {
    const { counters, request } = this.#input;
    counters.settle(request.callId, used);
    this.#over = true;
    this.#input.overruns.ended(this);
    // A pending reservation would be held for ever: its answer arrives after the settlement, and is released then.
    if (this.#asking === undefined) this.#giveBackMore();
    else void this.#asking.then(() => this.#giveBackMore());
  }

  /** It cost more than all that it had reserved. */
  overran(
    target: { readonly provider: string; readonly model: string },
    nanodollars: number,
  ): void {
    this.#input.overruns.learn(this, target, this.#input.reservation.learned + nanodollars);
  }

  mayAsk(target: { readonly provider: string; readonly model: string }): boolean {
    return this.#input.reservation.mayAsk(target);
  }

  holdExtra(nanodollars: number): void {
    const missing = nanodollars - this.#further;
    if (this.#over || missing <= 0 || this.#input.reservation.free) return;
    this.#further = nanodollars;
    const holding = Promise.all([this.#asking, this.#hold(missing)]);
    this.#asking = holding;
    void this.#forget(holding);
  }

  async #forget(holding: Promise<unknown>): Promise<void> {
    await holding;
    if (this.#asking === holding) this.#asking = undefined;
  }

  /** Reserves all of it, or what is left, so that no other call is admitted on that money. */
  async #hold(nanodollars: number): Promise<void> {
    try {
      const first = await this.#reserveMore(nanodollars);
      const left = first.granted || first.kind !== 'budget' ? 0 : first.state.remaining;
      if (left > 0 && !this.#over) await this.#reserveMore(left);
    } catch {
      // Unavailable counters hold nothing.
    }
  }

  #reserveMore(nanodollars: number): ReserveResult | Promise<ReserveResult> {
    const { counters, request } = this.#input;
    this.#asks += 1;
    return counters.reserve({
      callId: moreOf(request.callId, this.#asks),
      concurrent: [],
      requests: [],
      tokens: [],
      budgets: request.budgets.map((each): BudgetItem => ({ ...each, amount: nanodollars })),
    });
  }

  #giveBackMore(): void {
    const { counters, request } = this.#input;
    for (let ask = 1; ask <= this.#asks; ask++) {
      counters.settle(moreOf(request.callId, ask), { tokens: 0, nanodollars: 0 });
    }
  }

  /** Whether the prompt, or its part that is written to a cache, is larger than assumed so far. */
  #grew(usage: Usage): boolean {
    const prompt = totalInputTokens(usage);
    const written = usage.cacheWriteTokens ?? 0;
    if (prompt === undefined || (prompt <= this.#prompt && written <= this.#written)) return false;
    this.#prompt = Math.max(prompt, this.#prompt);
    this.#written = Math.max(written, this.#written);
    return true;
  }

  get #most(): number {
    const { reservation } = this.#input;
    return reservation.maxOutput;
  }

  #askMore(usage: Usage, missing: number): number | undefined | Promise<number | undefined> {
    const taken = (granted: boolean): number | undefined => {
      this.#asking = undefined;
      const wasShort = this.#short;
      this.#short = !granted;
      if (!granted) return this.#affordable(usage);
      this.#reserved = (this.#reserved ?? 0) + missing;
      return wasShort ? this.#most : undefined;
    };
    try {
      const result = this.#reserveMore(missing);
      if (!(result instanceof Promise)) return taken(result.granted);
      const asking = result.then(
        ({ granted }) => taken(granted),
        () => taken(false),
      );
      this.#asking = asking;
      return asking;
    } catch {
      return taken(false);
    }
  }

  /** Output tokens that the reservation pays for after this prompt. */
  #affordable(usage: Usage): number {
    const reserved = (this.#reserved ?? 0) - this.#extra;
    let fits = 0;
    let tooMuch = this.#most + 1;
    while (tooMuch - fits > 1) {
      const middle = Math.floor((fits + tooMuch) / 2);
      if (this.#needs(usage, middle) <= reserved) fits = middle;
      else tooMuch = middle;
    }
    return fits;
  }

  /** Maximum cost of the call with this prompt and this number of output tokens. */
  #needs(usage: Usage, outputTokens: number): number {
    const { reservation } = this.#input;
    const { earlier = [] } = usage;
    // Searches that the vendor may still run are reserved as well.
    const searched = earlier.reduce((sum, each) => sum + (each.webSearches ?? 0), 0);
    const webSearches = Math.max(usage.webSearches ?? 0, searched + reservation.webSearches);
    const images = reservation.possible.some(({ perImage }) => perImage !== undefined)
      ? reservation.images * (earlier.length + 1)
      : 0;
    let highest = 0;
    // The kind of output is unknown before its end: all of it may be of the most expensive kind.
    const { audioOutputTokens: _audio, imageOutputTokens: _image, ...prompt } = usage;
    for (const price of reservation.possible) {
      for (const reasoningTokens of [0, outputTokens]) {
        const cost = costOf(price, {
          ...prompt,
          outputTokens,
          reasoningTokens,
          webSearches,
          images,
        });
        highest = Math.max(highest, cost?.total ?? 0);
      }
    }
    return highest;
  }
}

/** Each list of windows with its lease: one list for all calls of a key until a window ends. */
const leasedWindows = new WeakMap<readonly BudgetWindow[], readonly BudgetWindow[]>();

function leased(windows: readonly BudgetWindow[], lease: string): readonly BudgetWindow[] {
  const known = leasedWindows.get(windows);
  if (known?.[0]?.lease === lease) return known;
  const made = windows.map((window) => ({ ...window, lease }));
  leasedWindows.set(windows, made);
  return made;
}

const noStandings: Standings = {};

function standingsOf({ requests, tokens }: Granted, now: number): Standings {
  const ofRequests = tightest(requests, now);
  const ofTokens = tightest(tokens, now);
  if (ofRequests === undefined) return ofTokens === undefined ? noStandings : { tokens: ofTokens };
  return ofTokens === undefined
    ? { requests: ofRequests }
    : { requests: ofRequests, tokens: ofTokens };
}

/** The counter that will refuse first. */
export function tightest(states: readonly CounterState[], now: number): Standing | undefined {
  let least: CounterState | undefined;
  for (const state of states) {
    if (least === undefined || state.remaining < least.remaining) least = state;
  }
  if (least === undefined) return undefined;
  return { limit: least.limit, remaining: least.remaining, fullAt: now + least.resetMs };
}
