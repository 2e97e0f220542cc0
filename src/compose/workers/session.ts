/**
 * The parent's side of one worker: the store, the counters and the answers are the parent's own, and what
 * the worker's calls hold is known here, so that nothing of it is left when the worker dies.
 */
import { IdTable } from '../../core/id-table.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import type { CallRow, OpenCall } from '../../store/calls.ts';
import type {
  Balance,
  Counters,
  ReserveRequest,
  ReserveResult,
  Used,
} from '../../store/counters/counters.ts';
import { type LostHold, aboutHold, lostCall } from '../../store/lost-calls.ts';
import type { KeyUse } from '../../store/records.ts';
import { isOfRow, recordSeparately } from '../../store/refused-rows.ts';
import { type PartName, callMethod, overridden, remoteParts } from '../../store/remote.ts';
import type { AnswerClaim, Claimed, OwnClaim } from '../../store/sealed.ts';
import { noAnswerFor } from '../../store/store-error.ts';
import type { Store, StoreParts } from '../../store/store.ts';
import type { Link } from './link.ts';

// The holds and reports of one worker's calls. A worker that dies leaves its calls to the parent: each is
// recorded as it was last known, or as spent in full where that is unknown (F81, Q1, Q2).

interface Reserved {
  readonly request: ReserveRequest;
  /** The instance whose lease of budgets pays (`Granted`). */
  readonly lease?: string;
  /** The usage that the worker reported; absent = the call runs. */
  used?: Used;
}

/** A call that requests more after its first reservation does it under these names: `call+`, `call+2`, … */
const more = /\+\d*$/;

class WorkerCalls {
  /** By the id of the reservation. */
  #reserved = new IdTable<Reserved>();
  #noted = new IdTable<OpenCall>();

  /** How many are known. */
  get size(): number {
    return this.#reserved.size + this.#noted.size;
  }

  reserved(request: ReserveRequest, lease?: string): void {
    this.#reserved.set(request.callId, lease === undefined ? { request } : { request, lease });
  }

  /** A call with a cost is remembered until its row has arrived. */
  settled(callId: string, used: Used): void {
    const reserved = this.#reserved.get(callId);
    if (reserved === undefined) return;
    if (reserved.request.budgets.length > 0 && (used.nanodollars ?? 0) > 0) reserved.used = used;
    else this.#reserved.delete(callId);
  }

  noted(calls: readonly OpenCall[]): void {
    for (const call of calls) this.#noted.set(call.row.id, call);
  }

  /** The ledger has their rows. */
  recorded(rows: readonly CallRow[]): void {
    for (const { id } of rows) {
      this.#noted.delete(id);
      if (this.#reserved.get(id)?.used !== undefined) this.#reserved.delete(id);
    }
  }

  /**
   * Ends all of them, since their worker is gone: what they held is settled at once.
   * @returns the rows that they shall have
   */
  end(counters: Pick<Counters, 'settle'>, now: number): readonly CallRow[] {
    const rows = new Map(this.#noted.entries().map(([id, { row }]) => [id, row]));
    for (const [id, requests] of this.#byCall()) {
      const row = this.#rowOf(id, requests, now);
      if (row !== undefined) rows.set(id, row);
      for (const { request, used } of requests) {
        if (used === undefined) counters.settle(request.callId, usedBy(request, rows.get(id)));
      }
    }
    this.#reserved = new IdTable();
    this.#noted = new IdTable();
    return [...rows.values()];
  }

  #byCall(): Map<string, readonly Reserved[]> {
    const calls = new Map<string, Reserved[]>();
    for (const [id, reserved] of this.#reserved.entries()) {
      const call = id.replace(more, '');
      const requests = calls.get(call);
      if (requests === undefined) calls.set(call, [reserved]);
      else requests.push(reserved);
    }
    return calls;
  }

  /** Undefined: it is known only that the call held a slot. */
  #rowOf(id: string, requests: readonly Reserved[], now: number): CallRow | undefined {
    const noted = this.#noted.get(id)?.row;
    const ended = requests.find(({ used }) => used !== undefined);
    if (noted !== undefined && ended === undefined) return noted;
    const holds = (ended === undefined ? requests : [ended]).flatMap(holdsOf);
    if (holds.length === 0) return undefined;
    const lost = leased(lostCall(id, holds, now), requests);
    if (ended === undefined) return lost;
    const { cost, budgets } = lost;
    const notes =
      'its worker died before it reported how this call ended: recorded with what it cost';
    return { ...(noted ?? lost), ...(cost === undefined ? {} : { cost }), budgets, notes };
  }
}

/** The row names the lease that pays, as the rows of calls that a worker reports do. */
function leased(row: CallRow, [first]: readonly Reserved[]): CallRow {
  const { lease } = first ?? {};
  if (lease === undefined) return row;
  return { ...row, budgets: row.budgets.map((each) => ({ ...each, lease })) };
}

function holdsOf({ request, used }: Reserved): readonly LostHold[] {
  return request.budgets.map((budget) => ({
    counter: budget.counter,
    window: budget.window,
    nanodollars: used?.nanodollars ?? budget.amount,
    about: aboutHold(request.about, budget),
  }));
}

/** All of its cost is booked by the first reservation of a call; what it requested besides is given back. */
function usedBy(request: ReserveRequest, row: CallRow | undefined): Used {
  if (more.test(request.callId)) return { tokens: 0, nanodollars: 0 };
  const tokens = Math.max(0, ...request.tokens.map(({ amount }) => amount));
  return { tokens, nanodollars: row?.cost?.total ?? 0 };
}

/** The operations of a worker on the store and the counters of its parent; all of it is plain data. */
export type SessionOperations = {
  /** Calls a method of a part of the store. */
  store(part: PartName, method: string, args: readonly unknown[]): unknown;
  backup(path: string): Promise<void>;
  reserve(request: ReserveRequest): ReserveResult | Promise<ReserveResult>;
  settle(callId: string, used: Used): void;
  releaseSlots(callId: string): void;
  balance(counter: string, window: string): Balance | Promise<Balance>;
};

export interface SessionDeps {
  readonly store: Store;
  readonly counters: Counters;
  readonly clock: Clock;
  readonly log: Log;
  /** Of all workers. */
  readonly writes: Writes;
  /** Resolves when all workers have reported which of their calls have ended by now. Never rejects. */
  readonly allReported: () => Promise<void>;
  /** Called when keys were used, in addition to the store. */
  readonly keysUsed: (uses: readonly KeyUse[]) => void;
}

const nothingUsed: Used = { tokens: 0, nanodollars: 0 };
/** A row of a dead worker's call is tried again so often. */
const againMs = 1000;

export class WorkerSession {
  readonly operations: SessionOperations;
  readonly #deps: SessionDeps;
  readonly #calls = new WorkerCalls();
  /** Reserves that are not answered and that the worker waits for. */
  readonly #reserving = new Set<string>();
  /** Idempotency keys that the worker answers for, by their ids. */
  readonly #claims = new Map<string, OwnClaim>();
  /** Rows that are on their way into the store. */
  readonly #writing = new Set<Promise<unknown>>();
  #over = false;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    const { store } = deps;
    const observed: StoreParts = {
      ...store,
      keys: overridden(store.keys, { touch: (uses) => this.#touch(uses) }),
      calls: overridden(store.calls, {
        record: (rows) => this.#record(rows),
        open: (calls) => this.#open(calls),
      }),
      answers: overridden(store.answers, {
        claim: (wanted) => this.#claim(wanted),
        keep: (answer) => {
          this.#claims.delete(answer.id);
          return store.answers.keep(answer);
        },
        release: (claim) => {
          this.#claims.delete(claim.id);
          return store.answers.release(claim);
        },
      }),
    };
    this.operations = {
      store: (part, method, args) => callMethod(observed[part], method, args),
      backup: (path) => store.backup(path),
      ...this.#counting(),
    };
  }

  /** The number of the worker's calls that hold something, or are noted. */
  get calls(): number {
    return this.#calls.size;
  }

  /** The worker is gone: its calls are settled as they were last known. Never rejects. */
  async end(): Promise<void> {
    this.#over = true;
    // Calls that it wrote last must not be recorded as lost.
    await Promise.allSettled(this.#writing);
    const { counters, clock, log, store, writes } = this.#deps;
    const claims = [...this.#claims.values()];
    const rows = this.#calls.end(counters, clock.wall());
    if (rows.length > 0) log.warn('calls_recovered', { calls: rows.length });
    writes.writerEnded();
    await this.#recordLost(rows);
    await Promise.allSettled(claims.map((claim) => store.answers.release(claim)));
  }

  /** Until the store has taken them: budgets have spent them already. */
  async #recordLost(rows: readonly CallRow[]): Promise<void> {
    const { log, store, writes } = this.#deps;
    for (let left = rows; left.length > 0;) {
      try {
        const refused = await recordSeparately(left, (part) =>
          writes.during(() => store.calls.record(part)),
        );
        for (const { row, reason } of refused)
          log.error('ledger_row_refused', { call: row.id, reason });
        return;
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        log.error('ledger_write_failed', { rows: left.length, reason });
        left = rows;
        await new Promise<void>((resolve) => {
          setTimeout(resolve, againMs).unref();
        });
      }
    }
  }

  #counting(): Pick<SessionOperations, 'reserve' | 'settle' | 'releaseSlots' | 'balance'> {
    const { counters } = this.#deps;
    return {
      reserve: (request) => this.#reserve(request),
      settle: (callId, used) => this.#settle(callId, used),
      releaseSlots: (callId) => counters.releaseSlots(callId),
      balance: (counter, window) => counters.balance(counter, window),
    };
  }

  #reserve(request: ReserveRequest): ReserveResult | Promise<ReserveResult> {
    const result = this.#deps.counters.reserve(request);
    if (result instanceof Promise) return this.#reservedLater(request, result);
    if (mayFree(result)) return this.#reservedLater(request, this.#reserveAgain(request));
    return this.#reserved(request, { result, isWanted: true });
  }

  async #reservedLater(
    request: ReserveRequest,
    reserving: Promise<ReserveResult>,
  ): Promise<ReserveResult> {
    const { callId } = request;
    this.#reserving.add(callId);
    try {
      const result = await reserving;
      return this.#reserved(request, { result, isWanted: this.#reserving.has(callId) });
    } finally {
      this.#reserving.delete(callId);
    }
  }

  /**
   * A client that has its answer may ask again at once, through another worker: what its call held comes
   * back before it is refused for it.
   */
  async #reserveAgain(request: ReserveRequest): Promise<ReserveResult> {
    await this.#deps.allReported();
    return this.#deps.counters.reserve(request);
  }

  #reserved(
    request: ReserveRequest,
    { result, isWanted }: { readonly result: ReserveResult; readonly isWanted: boolean },
  ): ReserveResult {
    if (!result.granted) return result;
    // The worker that would return it is gone, or has waited too long and answered its client.
    if (this.#over || !isWanted) this.#deps.counters.settle(request.callId, nothingUsed);
    else this.#calls.reserved(request, result.lease);
    return result;
  }

  #settle(callId: string, used: Used): void {
    this.#reserving.delete(callId);
    this.#deps.counters.settle(callId, used);
    this.#calls.settled(callId, used);
  }

  async #record(rows: readonly CallRow[]): Promise<void> {
    const { store, writes } = this.#deps;
    const written = writes.during(() => store.calls.record(rows));
    this.#writing.add(written);
    try {
      await written;
      this.#calls.recorded(rows);
    } finally {
      this.#writing.delete(written);
    }
  }

  #open(calls: readonly OpenCall[]): Promise<readonly string[]> {
    this.#calls.noted(calls);
    return this.#deps.store.calls.open(calls);
  }

  #touch(uses: readonly KeyUse[]): Promise<void> {
    this.#deps.keysUsed(uses);
    return this.#deps.store.keys.touch(uses);
  }

  async #claim(wanted: AnswerClaim): Promise<Claimed> {
    const { answers } = this.#deps.store;
    const claimed = await answers.claim(wanted);
    const claim = { id: wanted.id, owner: wanted.owner };
    if (claimed.state !== 'mine') return claimed;
    if (this.#over) await answers.release(claim);
    else this.#claims.set(wanted.id, claim);
    return claimed;
  }
}

/** Requests a minute come back by time alone. */
function mayFree(result: ReserveResult): boolean {
  return !result.granted && result.kind !== 'requests';
}

const maxWriteMs = 5000;

/** Whether the ledger takes the rows of the workers: none of them takes calls while those of another wait (F84). */
export class Writes {
  readonly #clock: Pick<Clock, 'now'>;
  /** When the oldest write began since one came to its end, monotonic ms. */
  #busySince: number | undefined;
  #failure: string | undefined;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** @throws what the write throws */
  async during<T>(write: () => Promise<T>): Promise<T> {
    this.#busySince ??= this.#clock.now();
    try {
      const written = await write();
      this.#ended();
      return written;
    } catch (error) {
      // A row that is refused for its content is an answer: the worker lays it aside, and may have no other to write.
      if (isOfRow(error)) this.#ended();
      else this.#failure = error instanceof Error ? error.message : 'unknown';
      throw error;
    }
  }

  /** A writer is gone, whose failed write nothing would end. Another one that fails says so again with its next try. */
  writerEnded(): void {
    this.#ended();
  }

  /** As `Ledger.failure`. */
  get failure(): string | undefined {
    if (this.#failure !== undefined || this.#busySince === undefined) return this.#failure;
    return this.healthy() ? undefined : noAnswerFor(this.#clock.now() - this.#busySince);
  }

  #ended(): void {
    this.#busySince = undefined;
    this.#failure = undefined;
  }

  healthy(): boolean {
    return this.#busySince === undefined || this.#clock.now() - this.#busySince < maxWriteMs;
  }
}

// The store and the counters of the parent, as a worker uses them.

export type StoreLink = Pick<Link<SessionOperations>, 'ask' | 'tell'>;

/** Closing it closes nothing of the parent's. */
export function remoteStore(link: StoreLink): Store {
  return {
    ...remoteParts((...call) => link.ask('store', call)),
    backup: (path) => link.ask('backup', [path]),
    close: async () => {},
  };
}

interface RemoteCountersDeps {
  readonly link: StoreLink;
  readonly clock: Clock;
  /** The state of the parent's counters. */
  readonly state: () => { readonly aheadMs: number; readonly countersUp: boolean };
}

/** A call waits no longer for its limits; then it is E18. */
const reserveWaitMs = 5000;

/** One round trip a reservation; what is reserved in one turn of the event loop goes together. */
export class RemoteCounters implements Counters {
  readonly #deps: RemoteCountersDeps;

  constructor(deps: RemoteCountersDeps) {
    this.#deps = deps;
  }

  wall(): number {
    const { clock, state } = this.#deps;
    return clock.wall() + state().aheadMs;
  }

  async reserve(request: ReserveRequest): Promise<ReserveResult> {
    try {
      return await this.#deps.link.ask('reserve', [request], reserveWaitMs);
    } catch (error) {
      // It may have been taken all the same.
      this.settle(request.callId, { tokens: 0, nanodollars: 0 });
      throw error;
    }
  }

  settle(...args: Parameters<Counters['settle']>): void {
    this.#deps.link.tell('settle', args);
  }

  releaseSlots(callId: string): void {
    this.#deps.link.tell('releaseSlots', [callId]);
  }

  balance(...args: Parameters<Counters['balance']>): ReturnType<Counters['balance']> {
    return this.#deps.link.ask('balance', args);
  }

  healthy(): boolean {
    return this.#deps.state().countersUp;
  }

  /** Does nothing: the parent's counters stay open. */
  async close(): Promise<void> {}
}
