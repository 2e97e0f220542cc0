/** The database of a lease history: what src/store/postgres/budgets.ts does in SQL, with a network before it. */
import {
  sliceShare,
  type BudgetHome,
  type LeaseAnswer,
  type LeaseState,
  type LeaseStatement,
  type SeenInstance,
  type StatedLease,
} from '../../src/store/leases/lease-home.ts';
import {
  deadNumber,
  type DeadLeases,
  type LeaseRegister,
} from '../../src/store/leases/lease-expiry.ts';
import type { Balance } from '../../src/store/counters/counters.ts';
import { StoreError } from '../../src/store/store-error.ts';
import type { Clock } from '../../src/core/runtime.ts';
import type { Dice } from './dice.ts';
import type { VirtualTime } from './virtual-time.ts';

interface LeaseRow {
  amount: number;
  free: number;
  booked: number;
  lent: number;
  asked: boolean;
}

/** A row of the ledger, as far as budgets need it. */
export interface LedgerCall {
  readonly id: string;
  /** `counter|window` of its budgets. */
  readonly windows: readonly string[];
  readonly nanodollars: number;
  /** Whose lease paid. */
  readonly instance: string;
  /** Written by others, since its instance seemed dead. */
  readonly isEstimate: boolean;
}

/** The leases of an instance that was ended. */
interface Ended {
  readonly number: number;
  readonly leases: ReadonlyMap<string, LeaseRow>;
}

export interface LeaseDatabaseOptions {
  readonly clock: Clock;
  /** Notifies an instance that others need the unused part of its lease. */
  readonly notify: (counter: string, window: string) => void;
  /** Called after each transaction. */
  readonly changed: () => void;
}

export class LeaseDatabase implements LeaseRegister {
  spending = new Map<string, number>();
  /** By window, then by instance. */
  leases = new Map<string, Map<string, LeaseRow>>();
  /** By instance. */
  ended = new Map<string, Ended>();
  rows = new Map<string, LedgerCall>();
  #instances = new Map<string, { number: number; isDeaf: boolean }>();
  readonly #options: LeaseDatabaseOptions;
  /** Ms by which the server's clock is wrong. */
  wrongBy = 0;
  /** The server is unreachable until then. */
  awayUntil = -1;

  constructor(options: LeaseDatabaseOptions) {
    this.#options = options;
  }

  get now(): number {
    return this.#options.clock.wall() + this.wrongBy;
  }

  leased(window: string): number {
    let sum = 0;
    for (const { amount } of this.leases.get(window)?.values() ?? []) sum += amount;
    return sum;
  }

  spent(window: string): number {
    return this.spending.get(window) ?? 0;
  }

  /** The transaction of `budget_state`. */
  state({ instance, number, isKnown, leases, deaf }: LeaseStatement): LeaseAnswer {
    const found = this.#instances.get(instance);
    if (found !== undefined && found.number >= number) return { code: 'late', now: this.now };
    if (found === undefined && (isKnown || this.ended.has(instance))) {
      return { code: 'expired', now: this.now };
    }
    this.#instances.set(instance, { number, isDeaf: false });
    for (const each of deaf) {
      const other = this.#instances.get(each.instance);
      if (other?.number === each.number) other.isDeaf = true;
    }
    const states = leases.map((lease) => this.#stateOne(instance, lease));
    const asked: { counter: string; window: string }[] = [];
    for (const [name, rows] of this.leases) {
      if (rows.get(instance)?.asked !== true) continue;
      const [counter = '', window = ''] = name.split('|');
      asked.push({ counter, window });
    }
    this.#options.changed();
    return { code: 'ok', now: this.now, leases: states, asked };
  }

  /** The transaction that writes rows: a row that is there changes nothing, unless it is an estimate. */
  record(calls: readonly LedgerCall[]): void {
    for (const call of calls) {
      const before = this.rows.get(call.id);
      if (before !== undefined && (call.isEstimate || !before.isEstimate)) continue;
      this.#turnBack(call.instance);
      this.rows.set(call.id, call);
      const added = call.nanodollars - (before?.nanodollars ?? 0);
      for (const name of call.windows) {
        this.spending.set(name, this.spent(name) + added);
        const lease = this.leases.get(name)?.get(call.instance);
        if (lease === undefined) continue;
        lease.amount = Math.max(0, lease.amount - added);
        lease.booked += added;
      }
    }
    this.#options.changed();
  }

  /** The transaction that turns the end of an instance's leases back. */
  revive(instance: string): void {
    this.#turnBack(instance);
    this.#options.changed();
  }

  #turnBack(instance: string): void {
    const ended = this.ended.get(instance);
    if (ended === undefined) return;
    this.ended.delete(instance);
    const { number } = ended;
    if (!this.#instances.has(instance)) this.#instances.set(instance, { number, isDeaf: false });
    for (const [name, lease] of ended.leases) {
      const id = lostId(instance, name);
      this.spending.set(name, this.spent(name) - (this.rows.get(id)?.nanodollars ?? 0));
      this.rows.delete(id);
      const rows = this.leases.get(name) ?? new Map<string, LeaseRow>();
      this.leases.set(name, rows);
      rows.set(instance, { ...lease, amount: lease.amount + (rows.get(instance)?.amount ?? 0) });
    }
  }

  async instances(): Promise<readonly SeenInstance[]> {
    this.#reach();
    return [...this.#instances].map(([instance, { number }]) => ({ instance, number }));
  }

  async expire({ instance, number }: SeenInstance): Promise<number | undefined> {
    this.#reach();
    if (this.#instances.get(instance)?.number !== number) return undefined;
    this.#instances.delete(instance);
    let booked = 0;
    const leases = new Map<string, LeaseRow>();
    for (const [name, rows] of this.leases) {
      const lease = rows.get(instance);
      if (lease === undefined) continue;
      rows.delete(instance);
      leases.set(name, lease);
      const { amount: nanodollars } = lease;
      if (nanodollars === 0) continue;
      booked += nanodollars;
      const id = lostId(instance, name);
      this.rows.set(id, { id, windows: [name], nanodollars, instance, isEstimate: true });
      this.spending.set(name, this.spent(name) + nanodollars);
    }
    if (leases.size > 0) this.ended.set(instance, { number, leases });
    this.#options.changed();
    return booked;
  }

  async giveBack({ instance, leases }: DeadLeases): Promise<number> {
    this.#reach();
    this.#turnBack(instance);
    this.#instances.set(instance, { number: deadNumber, isDeaf: true });
    let sum = 0;
    for (const [name, rows] of this.leases) {
      const lease = rows.get(instance);
      if (lease === undefined) continue;
      const proof = leases.find(({ counter, window }) => `${counter}|${window}` === name);
      const unspent = Math.min(lease.amount, Math.max(0, lease.lent - (proof?.taken ?? 0)));
      lease.amount -= unspent;
      lease.lent -= unspent;
      lease.free = 0;
      sum += unspent;
    }
    this.#options.changed();
    return sum;
  }

  /** A replica that may lack the last transactions takes over: the result makes it the primary. */
  replica(): () => void {
    const { spending, leases, ended, rows } = structuredClone({
      spending: this.spending,
      leases: this.leases,
      ended: this.ended,
      rows: this.rows,
    });
    const instances = structuredClone(this.#instances);
    return () => {
      Object.assign(this, { spending, leases, ended, rows });
      this.#instances = instances;
    };
  }

  /** @throws StoreError while it is unreachable */
  #reach(): void {
    if (this.#options.clock.now() < this.awayUntil) throw away;
  }

  #stateOne(instance: string, lease: StatedLease): LeaseState {
    const { counter, window, limit, free, wanted, refill, ask } = lease;
    const name = `${counter}|${window}`;
    const rows = this.leases.get(name) ?? new Map<string, LeaseRow>();
    this.leases.set(name, rows);
    const settled = this.spent(name);
    const known = rows.get(instance)?.booked ?? lease.booked;
    const amount = Math.max(0, lease.amount - Math.max(0, known - lease.booked));
    let others = 0;
    for (const [other, row] of rows) if (other !== instance) others += row.amount;
    const left = limit - settled - others - amount;
    const need = Math.max(0, wanted - free);
    let granted = 0;
    if (left > 0 && need > left) granted = left;
    else if (left > 0 && (need > 0 || refill)) {
      granted = need + Math.floor((left - need) / sliceShare);
    }
    if (lease.amount + granted > 0) {
      const rest = Math.max(0, free + granted - wanted);
      rows.set(instance, {
        amount: amount + granted,
        free: rest,
        booked: Math.max(known, lease.booked),
        lent: free + granted + lease.taken,
        // A statement that was on its way when it was asked gives nothing back.
        asked: rest > 0 && rows.get(instance)?.asked === true,
      });
    } else rows.delete(instance);
    if (ask && need > left) {
      for (const [other, row] of rows) if (this.#hears(other, instance)) row.asked = true;
      this.#options.notify(counter, window);
    }
    const asked: SeenInstance[] = [];
    for (const [other, row] of rows) {
      if (!row.asked || !this.#hears(other, instance)) continue;
      asked.push({ instance: other, number: this.#instances.get(other)?.number ?? 0 });
    }
    return { settled, others, granted, room: left - granted, asked };
  }

  #hears(other: string, instance: string): boolean {
    return other !== instance && this.#instances.get(other)?.isDeaf === false;
  }
}

/** The id of the row for an ended lease. */
export function lostId(instance: string, name: string): string {
  return `lost ${instance} ${name}`;
}

/** One instance's way to the database. */
export class LeaseNetwork implements BudgetHome {
  readonly #database: LeaseDatabase;
  readonly #time: VirtualTime;
  readonly #dice: Dice;
  readonly #faulty: number;
  /** Until then nothing that this instance says arrives in time. */
  cutUntil = -1;

  constructor(parts: {
    readonly database: LeaseDatabase;
    readonly time: VirtualTime;
    readonly dice: Dice;
    readonly faulty: number;
  }) {
    this.#database = parts.database;
    this.#time = parts.time;
    this.#dice = parts.dice;
    this.#faulty = parts.faulty;
  }

  state(statement: LeaseStatement): Promise<LeaseAnswer> {
    return this.send(() => this.#database.state(statement));
  }

  revive(instance: string): Promise<void> {
    return this.send(() => this.#database.revive(instance));
  }

  balance(): Promise<Balance> {
    return Promise.reject(away);
  }

  /** Does something there, in a transaction: it arrives, is lost, arrives late, or its answer is lost. */
  send<T>(work: () => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const [time, dice] = [this.#time, this.#dice];
    const isCut = time.now() < Math.max(this.cutUntil, this.#database.awayUntil);
    const fault = isCut
      ? dice.pick(['lost', 'lost', 'late'])
      : dice.chance(this.#faulty)
        ? dice.pick(['lost', 'late', 'unanswered'])
        : 'none';
    const way = (): number => dice.int(0, 8);
    const fail = (): void => reject(away);
    if (fault === 'lost') time.after(dice.int(0, 200), fail);
    else if (fault === 'late') {
      time.after(dice.int(0, 200), fail);
      time.after(dice.int(200, 20_000), () => void work());
    } else {
      time.after(way(), () => {
        const answer = work();
        time.after(way(), fault === 'unanswered' ? fail : () => resolve(answer));
      });
    }
    return promise;
  }
}

/** One for all: to note where each was made is a tenth of a history. */
const away = new StoreError('unavailable', 'The database is away, simulated.');
