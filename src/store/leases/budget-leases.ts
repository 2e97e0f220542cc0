/**
 * Budgets that several gateways share. The database is their only home; a gateway reserves money from it in
 * leases and admits calls from its own lease without a round trip (docs/decisions/0043-budget-leases.md).
 *
 * For each window of a budget a gateway has taken out `free + open + unpersisted` nanodollars: no call holds
 * them, running calls hold them, or calls that ended have spent them and have no row yet. A gateway states
 * these amounts absolutely, with rising numbers, one statement at a time. The database keeps
 *
 *   spending (rows of the ledger) + amounts of all leases ≤ budget
 *
 * so an answer that was lost is neither counted twice nor lost: the next statement names what the gateway
 * really has. The transaction that writes a call's row adds its cost to `spending` and takes it off the lease.
 */
import { IdTable } from '../../core/id-table.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import type { CallRow } from '../calls.ts';
import { StoreError } from '../store-error.ts';
import {
  type Balance,
  type BudgetItem,
  type ReserveRequest,
  type ReserveResult,
  type Granted,
  ServerTime,
  type Used,
} from '../counters/counters.ts';
import {
  type BudgetHome,
  type LeaseState,
  SilentInstances,
  type StatedLease,
  sliceShare,
} from './lease-home.ts';
import { grant, refusal, type Reading } from '../counters/verdict.ts';
import type { LeaseJournal } from './lease-journal.ts';

export interface BudgetLeasesOptions {
  readonly home: BudgetHome;
  /** The name of this process among all gateways; never used again after it ended. */
  readonly instance: string;
  readonly clock: Clock;
  readonly log: Pick<Log, 'error'>;
  /** Where the next process finds what this one took, if it is killed. */
  readonly journal?: Pick<LeaseJournal, 'note' | 'mayReserve'>;
}

/**
 * The time without a statement after which an instance counts as dead: its leases are booked as spent, until it returns.
 * Measured by the monotonic clock of an instance that watches.
 */
export const leaseExpiryMs = 600_000;
/** The time without an acknowledgement after which an instance admits nothing from its leases. */
export const leaseFenceMs = leaseExpiryMs / 2;
/** The time without a call after which the free money of a lease goes back. */
const idleMs = 5000;
const heartbeatMs = 1000;
/**
 * The database knows so soon what calls hold and have spent: a killed instance without its journal leaves no more than
 * that unknown, and the balances that other instances show are no older. With 20 ms the statements took 3 to 9 % of the
 * CPU of calls at 400 a second.
 */
const stateWithinMs = 100;
/** The maximum wait of a refused call for other gateways to give back free money. */
const othersMs = 1500;
/** The pause before the other gateways are asked again for the same amount after a refusal. */
const refusalMs = 100;
const askAgainMs = 5;
const maxLeasesStated = 500;

const stuckText =
  'The disk holds a lease journal that can be neither written nor removed (lease_journal_stuck in the log). ' +
  'Make the data directory writable again.';
/** Late statements in a row. */
const replacedAfter = 5;
const replacedText =
  'Another process gave back the leases of this one: two gateways run on one data directory, whose file system does ' +
  'not lock files. Give each a directory of its own.';

interface Lease {
  readonly counter: string;
  readonly window: string;
  readonly endsAt: number | undefined;
  /** The budget at the last reservation. */
  limit: number;
  /** Running calls, also those that hold nothing. */
  calls: number;
  free: number;
  open: number;
  unpersisted: number;
  /** What calls have taken off `free` in all, net of what they gave back. */
  taken: number;
  /** Rises by what rows take off this lease. */
  booked: number;
  /** Whether the database may have a row of this lease. */
  isRegistered: boolean;
  /** `free` after the last answer; a new slice is requested when half of it is used. */
  slice: number;
  settled: number;
  others: number;
  room: number;
  asked: number;
  /** Monotonic ms. */
  usedAt: number;
  /** A slice of the remaining amount, as of the database's last answer. */
  share: number;
  /** What calls took lately, at most. */
  usual: number;
  /** Until then, monotonic ms, others are known to have less than `refused`. */
  refusedUntil: number;
  refused: number;
  /** What is free is given back with the next statement. */
  isGivenBack: boolean;
  isRefilled: boolean;
}

interface Part {
  readonly lease: Lease;
  readonly wanted: BudgetItem;
  /** Whether other gateways were asked for what is free there. */
  hasAsked: boolean;
}

interface Waiting {
  readonly request: ReserveRequest;
  readonly parts: readonly Part[];
  /** Monotonic ms. */
  readonly until: number;
  /** Whether the last statement named what it wants. */
  isStated: boolean;
  resolve(result: ReserveResult): void;
  reject(error: unknown): void;
}

/** A call that ended and that has no row yet. */
interface UnpersistedCall {
  readonly leases: readonly Lease[];
  readonly nanodollars: number;
}

export class BudgetLeases {
  readonly instance: string;
  readonly #home: BudgetHome;
  readonly #clock: Clock;
  readonly #log: BudgetLeasesOptions['log'];
  readonly #journal: BudgetLeasesOptions['journal'];
  readonly #time: ServerTime;
  /** By `counter|window`. */
  readonly #leases = new Map<string, Lease>();
  readonly #live = new IdTable<readonly Part[]>();
  readonly #unpersisted = new IdTable<UnpersistedCall>();
  readonly #due = new Set<Lease>();
  /** Leases with reservations or settlements that the database does not have yet. */
  readonly #stale = new Set<Lease>();
  readonly #silent: SilentInstances;
  readonly #timer: NodeJS.Timeout;
  #waiting: Waiting[] = [];
  #again: NodeJS.Timeout | undefined;
  #stating: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #number = 0;
  /** A new lease counts from here: an earlier one of its window, which a failover may bring back, counted less. */
  #booked = 0;
  /** A statement is on its way. */
  #isUnanswered = false;
  #isKnown = false;
  /** Number of statements in a row that came late: the database knows one with a higher number. */
  #late = 0;
  /** When the last statement was sent that the database acknowledged, monotonic ms. */
  #acknowledgedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor({ home, instance, clock, log, journal }: BudgetLeasesOptions) {
    this.#home = home;
    this.instance = instance;
    this.#clock = clock;
    this.#log = log;
    this.#journal = journal;
    this.#time = new ServerTime(clock);
    this.#silent = new SilentInstances(clock);
    this.#timer = setInterval(() => this.#heartbeat(), heartbeatMs);
    this.#timer.unref();
  }

  /** The server's clock, by which windows are named. */
  wall(): number {
    return this.#time.wall();
  }

  /** How many leases, running calls and calls without a row are known. */
  get size(): number {
    return this.#leases.size + this.#live.size + this.#unpersisted.size;
  }

  /**
   * Takes the budgets of the reservation, all or none; a plain value while the leases last.
   * @throws StoreError as a rejection, where the database is needed and does not answer.
   */
  reserve(request: ReserveRequest): ReserveResult | Promise<ReserveResult> {
    const parts = this.#partsOf(request);
    if (this.#live.has(request.callId)) return this.#granted(request, parts);
    if (!this.healthy()) return Promise.reject(new StoreError('failed', stuckText));
    if (this.#mayUse() && fits(parts) && isSameBudget(parts)) return this.#take(request, parts);
    return this.#reserveLater(request, parts);
  }

  /** Ends what the call holds; its cost counts here until the ledger has its row. A second time changes nothing. */
  settle(callId: string, used: Used): void {
    const parts = this.#live.delete(callId);
    if (parts === undefined) return;
    const spent = Math.max(0, used.nanodollars ?? 0);
    for (const { lease, wanted } of parts) {
      lease.open -= wanted.amount;
      lease.calls -= 1;
      lease.free += wanted.amount - spent;
      lease.taken += spent - wanted.amount;
      lease.unpersisted += spent;
      this.#note(lease);
      this.#forgetRefusal(lease);
      this.#stale.add(lease);
      if (lease.free >= 0) continue;
      // It cost more than the lease had: the database must know.
      lease.room += lease.free;
      this.#state(lease);
    }
    if (spent > 0) {
      this.#unpersisted.set(callId, {
        leases: parts.map(({ lease }) => lease),
        nanodollars: spent,
      });
    }
    this.#stateSoon();
    if (this.#waiting.length > 0) this.#admit();
  }

  /** Whether reservations are noted, or need not be. */
  healthy(): boolean {
    return this.#journal?.mayReserve() !== false;
  }

  /** The ledger has the rows of these calls. */
  written(rows: readonly Pick<CallRow, 'id'>[]): void {
    for (const { id } of rows) {
      const booked = this.#unpersisted.delete(id);
      if (booked === undefined) continue;
      for (const lease of booked.leases) {
        lease.unpersisted -= booked.nanodollars;
        lease.booked += booked.nanodollars;
        this.#booked += booked.nanodollars;
        lease.settled += booked.nanodollars;
      }
    }
  }

  /** @throws StoreError */
  async balance(counter: string, window: string): Promise<Balance> {
    const { settled, open } = await this.#home.balance(this.instance, counter, window);
    const lease = this.#leases.get(`${counter}|${window}`);
    return { settled: settled + (lease?.unpersisted ?? 0), open: open + (lease?.open ?? 0) };
  }

  /** Another gateway needs what is free here. */
  asked(counter: string, window: string): void {
    if (this.#isClosed) return;
    const lease = this.#leases.get(`${counter}|${window}`);
    if (lease === undefined) return;
    lease.isGivenBack = true;
    this.#state(lease);
  }

  /** Gives back what is free. What calls spent that have no row stays leased until they have one. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#again);
    clearTimeout(this.#stating);
    while (this.#sending !== undefined) await this.#sending;
    this.#fail(new StoreError('closed', 'The counters are closed.'));
    for (const lease of this.#leases.values()) {
      lease.isGivenBack = true;
      this.#due.add(lease);
    }
    while (this.#due.size > 0 && (await this.#send()));
  }

  /** Acts like a killed process: no statement is sent any more. Only the simulation calls this. */
  abandon(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    clearTimeout(this.#again);
    clearTimeout(this.#stating);
  }

  #partsOf(request: ReserveRequest): readonly Part[] {
    return request.budgets.map((wanted) => ({
      lease: this.#leaseOf(wanted),
      wanted,
      hasAsked: false,
    }));
  }

  #leaseOf({ counter, window, endsAt, nanodollars: limit }: BudgetItem): Lease {
    const name = `${counter}|${window}`;
    const known = this.#leases.get(name);
    if (known !== undefined) return known;
    const lease: Lease = {
      counter,
      window,
      endsAt,
      limit,
      calls: 0,
      free: 0,
      open: 0,
      unpersisted: 0,
      taken: 0,
      booked: this.#booked,
      isRegistered: false,
      slice: 0,
      share: 0,
      usual: 0,
      refusedUntil: Number.NEGATIVE_INFINITY,
      refused: 0,
      settled: 0,
      others: 0,
      room: -1,
      asked: 0,
      usedAt: this.#clock.now(),
      isGivenBack: false,
      isRefilled: false,
    };
    this.#leases.set(name, lease);
    return lease;
  }

  #mayUse(): boolean {
    return this.#clock.now() - this.#acknowledgedAt < leaseFenceMs;
  }

  #take(request: ReserveRequest, parts: readonly Part[]): Granted {
    const now = this.#clock.now();
    for (const { lease, wanted } of parts) {
      lease.free -= wanted.amount;
      lease.taken += wanted.amount;
      lease.open += wanted.amount;
      lease.calls += 1;
      lease.usual = Math.max(wanted.amount, Math.floor((lease.usual * 15) / 16));
      lease.usedAt = now;
      this.#note(lease);
      this.#stale.add(lease);
      if (lease.room > 0 && lease.free < lease.slice / 2 && !lease.isRefilled) {
        lease.isRefilled = true;
        this.#state(lease);
      }
    }
    this.#live.set(request.callId, parts);
    this.#stateSoon();
    return this.#granted(request, parts);
  }

  /** Before a call is sent upstream, and when it has ended. */
  #note(lease: Lease): void {
    this.#journal?.note(lease, () => this.#leases.values());
  }

  #stateSoon(): void {
    if (!this.#isClosed)
      this.#stating ??= setTimeout(() => this.#stateStale(), stateWithinMs).unref();
  }

  #stateStale(): void {
    this.#stating = undefined;
    for (const lease of this.#stale) this.#due.add(lease);
    if (this.#due.size > 0) this.#pump();
  }

  #granted(request: ReserveRequest, parts: readonly Part[]): Granted {
    const granted = grant(request, readingOf(parts), { wall: this.wall(), taken: true });
    return { ...granted, lease: this.instance };
  }

  #reserveLater(request: ReserveRequest, parts: readonly Part[]): Promise<ReserveResult> {
    if (this.#isClosed) {
      return Promise.reject(new StoreError('closed', 'The counters are closed.'));
    }
    const now = this.#clock.now();
    const { promise, resolve, reject } = Promise.withResolvers<ReserveResult>();
    const until = now + othersMs;
    this.#waiting.push({ request, parts, until, isStated: false, resolve, reject });
    for (const part of parts) {
      const { lease, wanted } = part;
      part.hasAsked = now < lease.refusedUntil && wanted.amount >= lease.refused;
      lease.limit = wanted.nanodollars;
      lease.usedAt = now;
      this.#state(lease);
    }
    return promise;
  }

  /** Has the lease stated as soon as the statement that is on its way is answered. */
  #state(lease: Lease): void {
    this.#due.add(lease);
    this.#pump();
  }

  #pump(): void {
    if (this.#sending !== undefined || this.#isClosed) return;
    this.#sending = this.#sendDue().finally(() => {
      this.#sending = undefined;
      if (this.#due.size > 0) this.#pump();
    });
  }

  async #sendDue(): Promise<void> {
    // What is reserved in one turn of the event loop is stated together.
    await Promise.resolve();
    do if (!(await this.#send())) return;
    while (this.#due.size > 0 && !this.#isClosed);
  }

  /** @returns false when the database did not answer. */
  async #send(): Promise<boolean> {
    const leases = this.#nextLeases();
    const stated = this.#prepareStatements(leases);
    const sentAt = this.#clock.now();
    const { instance } = this;
    const [number, isKnown] = [(this.#number += 1), this.#isKnown];
    this.#isUnanswered = true;
    try {
      const deaf = this.#silent.deaf();
      const answer = await this.#home.state({ instance, number, isKnown, leases: stated, deaf });
      this.#isUnanswered = false;
      this.#time.heard(answer.now);
      if (answer.code === 'ok') {
        this.#isKnown = true;
        this.#late = 0;
        this.#acknowledgedAt = sentAt;
        this.#answered(leases, stated, answer.leases);
        for (const { counter, window } of answer.asked) this.#giveBack(counter, window);
      } else {
        // What the database has of this instance is not known here: nothing is reserved until it is.
        this.#acknowledgedAt = Number.NEGATIVE_INFINITY;
        if (answer.code === 'expired') await this.#revive();
        else this.#wasLate();
        // A first try of this statement may have come through: what it granted is not counted here.
        for (const lease of leases) this.#due.add(lease);
      }
      return true;
    } catch (error) {
      this.#isUnanswered = false;
      for (const lease of leases) this.#stale.add(lease);
      this.#fail(error);
      return false;
    }
  }

  /**
   * An earlier try of the statement came through, and its answer was lost. Once this is harmless. If it repeats, another
   * process uses this instance's name.
   * @throws StoreError after some times in a row
   */
  #wasLate(): void {
    this.#late += 1;
    if (this.#late < replacedAfter) return;
    const { instance } = this;
    if (this.#late === replacedAfter)
      this.#log.error('leases_replaced', { instance, reason: replacedText });
    throw new StoreError('failed', replacedText);
  }

  /** All that calls wait for, and a part of the others that are due. */
  #nextLeases(): readonly Lease[] {
    const leases = new Set<Lease>();
    for (const { parts } of this.#waiting) for (const { lease } of parts) leases.add(lease);
    for (const lease of this.#due) {
      if (leases.size >= maxLeasesStated) break;
      leases.add(lease);
    }
    for (const lease of leases) this.#due.delete(lease);
    return [...leases];
  }

  /** The state of each lease that the database gets. Money that no waiting call can use is given back by it. */
  #prepareStatements(leases: readonly Lease[]): readonly StatedLease[] {
    const wants = new Map<Lease, { wanted: number; ask: boolean }>();
    for (const each of this.#waiting) {
      each.isStated = true;
      for (const { lease, wanted, hasAsked } of each.parts) {
        const before = wants.get(lease);
        const ask = !hasAsked || before?.ask === true;
        // More than a budget never fits, and a sum of such amounts is no number that the database takes.
        const sum = Math.min((before?.wanted ?? 0) + wanted.amount, lease.limit + 1);
        wants.set(lease, { wanted: sum, ask });
      }
    }
    const useful = new Set(
      this.#waiting
        .filter(({ parts }) => fits(parts))
        .flatMap(({ parts }) => parts.map(({ lease }) => lease)),
    );
    return leases.map((lease) => {
      const { wanted, ask } = wants.get(lease) ?? { wanted: 0, ask: false };
      // Money that no waiting call can use yet goes to the gateway that asked: two that each hold a part would both wait.
      const usable = useful.has(lease) ? Math.min(lease.free, wanted) : 0;
      const kept = Math.min(lease.free, lease.isGivenBack ? usable : wanted + maxFree(lease));
      lease.free = Math.max(0, kept);
      const { counter, window, endsAt, limit, free, open, unpersisted, booked, taken } = lease;
      const { isRefilled: refill } = lease;
      lease.isGivenBack = false;
      lease.isRefilled = false;
      this.#stale.delete(lease);
      lease.isRegistered = true;
      const amount = free + open + unpersisted;
      const stated = { counter, window, endsAt, limit, amount, free, booked, taken, wanted };
      return { ...stated, refill, ask };
    });
  }

  #answered(
    leases: readonly Lease[],
    stated: readonly StatedLease[],
    states: readonly LeaseState[],
  ): void {
    for (const [i, lease] of leases.entries()) {
      const [state, said] = [states[i], stated[i]];
      if (state === undefined || said === undefined) continue;
      lease.free += state.granted;
      lease.isRegistered = said.amount + state.granted > 0;
      lease.slice = Math.max(0, lease.free - said.wanted);
      lease.share = Math.max(0, Math.floor((state.room + lease.slice) / sliceShare));
      if (state.room > lease.room) this.#forgetRefusal(lease);
      lease.settled = state.settled;
      lease.others = state.others;
      lease.asked = state.asked.length;
      lease.room = state.room;
      const need = Math.max(0, said.wanted - said.free);
      if (said.ask && need > state.granted + state.room) this.#hasAsked(lease);
      // Calls elsewhere cost more than they had reserved, or the budget was lowered.
      const over = Math.min(Math.max(0, lease.free), -state.room);
      if (over <= 0) continue;
      lease.free -= over;
      lease.room += over;
      this.#due.add(lease);
    }
    this.#silent.asked(states.flatMap(({ asked }) => asked));
    this.#admit();
  }

  /** Money came back: the others may have more of it. */
  #forgetRefusal(lease: Lease): void {
    if (this.#clock.now() >= lease.refusedUntil) return;
    lease.refusedUntil = Number.NEGATIVE_INFINITY;
    for (const { parts } of this.#waiting) {
      for (const part of parts) if (part.lease === lease) part.hasAsked = false;
    }
  }

  #hasAsked(lease: Lease): void {
    for (const { parts, isStated } of this.#waiting) {
      for (const part of parts) if (isStated && part.lease === lease) part.hasAsked = true;
    }
  }

  /** Answers the waiting calls for which the remaining amount is known. */
  #admit(): void {
    if (!this.healthy()) return this.#fail(new StoreError('failed', stuckText));
    const now = this.#clock.now();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) {
      const { request, parts } = each;
      if (this.#mayUse() && fits(parts)) each.resolve(this.#take(request, parts));
      else if (!each.isStated || this.#isUnanswered) this.#waiting.push(each);
      else if (now >= each.until || parts.some(isHopeless)) {
        each.resolve(this.#refused(request, parts));
      } else {
        this.#waiting.push(each);
        if (parts.some(({ lease }) => lease.asked > 0)) this.#askAgain();
        else for (const { lease } of parts) this.#due.add(lease);
      }
    }
  }

  #refused(request: ReserveRequest, parts: readonly Part[]): ReserveResult {
    for (const part of parts) if (isHopeless(part)) remember(part, this.#clock.now());
    const refused = refusal(request, readingOf(parts), this.wall());
    // The reading shows why it does not fit. If it shows nothing, another process has just given something back.
    if (refused === undefined) {
      const index = Math.max(0, parts.findIndex(lacks));
      const { counter = '', nanodollars: limit = 0 } = request.budgets[index] ?? {};
      const state = { counter, limit, remaining: 0, resetMs: 0 };
      const none = { waitMs: undefined, requests: [], tokens: [] };
      return { granted: false, kind: 'budget', index, state, ...none };
    }
    return refused;
  }

  /** Looks whether the other gateways have given back what was free there. */
  #askAgain(): void {
    this.#again ??= setTimeout(() => {
      this.#again = undefined;
      if (this.#waiting.length > 0) this.#pump();
    }, askAgainMs);
  }

  #giveBack(counter: string, window: string): void {
    const name = `${counter}|${window}`;
    const lease =
      this.#leases.get(name) ??
      this.#leaseOf({ counter, window, endsAt: undefined, nanodollars: 0, amount: 0 });
    lease.isGivenBack = true;
    this.#due.add(lease);
  }

  /**
   * Others have given this instance up, and booked its leases as spent. What was booked is turned back; what calls
   * here hold or have spent was part of it.
   */
  async #revive(): Promise<void> {
    this.#isKnown = false;
    for (const lease of this.#leases.values()) {
      // Of leases that were ended long ago nothing may be left.
      lease.free = 0;
      this.#due.add(lease);
    }
    await this.#home.revive(this.instance);
  }

  #fail(error: unknown): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { reject } of waiting) reject(error);
  }

  /** Says that this instance lives, gives back unused leases, and sends again what did not arrive. */
  #heartbeat(): void {
    const now = this.#clock.now();
    for (const [name, lease] of this.#leases) {
      const isIdle = now - lease.usedAt >= idleMs;
      const isEmpty = lease.calls === 0 && lease.unpersisted === 0;
      if (this.#stale.has(lease)) this.#due.add(lease);
      if (!isIdle) continue;
      if (lease.free > 0) lease.isGivenBack = true;
      if (lease.free > 0 || (isEmpty && lease.isRegistered)) this.#due.add(lease);
      else if (isEmpty && lease.free === 0 && !this.#due.has(lease)) {
        this.#leases.delete(name);
        // A later lease of this window begins anew.
        lease.taken = 0;
        this.#note(lease);
      }
    }
    // The first statement returns the server's time.
    if (this.#leases.size > 0 || !this.#isKnown) this.#pump();
  }
}

function fits(parts: readonly Part[]): boolean {
  for (const part of parts) if (lacks(part)) return false;
  return true;
}

/** What is free beyond it goes back with the next statement. */
function maxFree({ share, usual }: Lease): number {
  return Math.max(2 * share, usual);
}

/** Further calls need not ask the others anew. */
function remember({ lease, wanted: { amount } }: Part, now: number): void {
  const isKnown = now < lease.refusedUntil;
  if (isKnown && amount >= lease.refused) return;
  lease.refused = amount;
  lease.refusedUntil = now + refusalMs;
}

/** Another amount of a budget holds from the next call on: the database returns the remaining amount. */
function isSameBudget(parts: readonly Part[]): boolean {
  return parts.every(({ lease, wanted }) => lease.limit === wanted.nanodollars);
}

function lacks({ lease, wanted: { amount } }: Part): boolean {
  // A call that reserves nothing is refused by a budget that is overspent.
  return lease.free < amount || (lease.free === 0 && lease.room < 0);
}

/** Too little is left, and no other gateway has yet to say what is free there. */
function isHopeless(part: Part): boolean {
  const { lease, wanted, hasAsked } = part;
  if (!hasAsked || lease.asked > 0) return false;
  return lacks(part) && lease.free + lease.room < wanted.amount;
}

function readingOf(parts: readonly Part[]): Reading {
  const budgets = parts.map(({ lease, wanted: { window } }) => ({
    window,
    settled: lease.settled + lease.unpersisted,
    open: lease.others + lease.open,
  }));
  return { concurrent: [], requests: [], tokens: [], budgets };
}
