/**
 * One history of budgets on several instances, from one seed: the real leases (budget-leases.ts) on a simulated
 * database. Instances are killed, statements and answers are lost or come late, instances are cut off, the
 * database is away, its clock jumps, calls cost more than they reserved. After each event every budget must hold.
 */
import { BudgetLeases, leaseExpiryMs } from '../../src/store/leases/budget-leases.ts';
import type { BudgetItem, ReserveRequest } from '../../src/store/counters/counters.ts';
import { LeaseExpiry } from '../../src/store/leases/lease-expiry.ts';
import type { OrphanedJournal, TakenLease } from '../../src/store/leases/lease-journal.ts';
import { sliceShare } from '../../src/store/leases/lease-home.ts';
import type { Log } from '../../src/core/runtime.ts';
import { StoreError } from '../../src/store/store-error.ts';
import { Dice } from './dice.ts';
import { LeaseDatabase, LeaseNetwork, lostId } from './lease-database.ts';
import { Peaks } from './peaks.ts';
import { settlePromises, VirtualTime } from './virtual-time.ts';

export interface LeaseOutcome {
  readonly seed: number;
  readonly complaints: readonly string[];
  readonly granted: number;
  readonly refused: number;
  readonly kills: number;
  /** Nanodollars that kills left unknown beyond what calls held, and what all budgets had. */
  readonly lost: number;
  readonly budgets: number;
}

/** A deliberate fault, to see that the judge finds it. */
export type LeaseSabotage =
  | 'an answer that counts twice'
  | 'a lease that is never given back'
  | 'a journal that lacks reservations';

/** What the world knows of a call, whether or not any database does. */
interface Call {
  readonly id: string;
  readonly names: readonly string[];
  readonly amount: number;
  /** `killed`: its cost is unknown, and may be all that it held. */
  state: 'running' | 'ended' | 'booked' | 'killed';
  cost: number;
}

interface Wanting {
  readonly names: readonly string[];
  readonly amount: number;
  readonly instance: Instance;
  /** By name: the most that was held, spent or wanted by others while this one waited. */
  readonly peak: Map<string, number>;
}

const budgetNames = ['key:a:ever', 'key:b:ever', 'team:t:ever', 'tag:g:ever'] as const;
const silent = (): undefined => undefined;
const silentLog: Log = { debug: silent, info: silent, warn: silent, error: silent };
const noteAfterMs = 30;
const orphanAfterMs = 30_000;

export async function runLeaseHistory(
  seed: number,
  sabotage?: LeaseSabotage,
): Promise<LeaseOutcome> {
  const time = new VirtualTime(settlePromises);
  const giveBack = time.install();
  const history = new LeaseHistory(seed, time, sabotage);
  try {
    await history.run();
  } catch (error) {
    history.complaints.push(error instanceof Error ? (error.stack ?? error.message) : 'failed');
  } finally {
    giveBack();
  }
  const { complaints, granted, refused, kills, lost, budgets } = history;
  return { seed, complaints, granted, refused, kills, lost, budgets };
}

class Instance {
  readonly leases: BudgetLeases;
  readonly network: LeaseNetwork;
  readonly expiry: LeaseExpiry;
  readonly calls = new Map<string, Call>();
  isAlive = true;
  /** Its disk can be neither written nor read until then, ms: the journal that is there lacks reservations. */
  stuckUntil = -1;
  /** Whether a later process found its journal. */
  isFound = false;
  /** By budget: what calls held, had spent without a row, or waited for when it was killed. */
  readonly held = new Map<string, number>();
  /** Journals, also of earlier processes. */
  readonly disk: Set<OrphanedJournal>;

  constructor(
    name: string,
    network: LeaseNetwork,
    world: {
      readonly database: LeaseDatabase;
      readonly time: VirtualTime;
      readonly disk: Set<OrphanedJournal>;
      /** False = broken on purpose. */
      readonly isJournalKept: boolean;
    },
  ) {
    const { database, time, disk, isJournalKept } = world;
    this.network = network;
    this.disk = disk;
    const left = [...disk];
    const lines = new Map<string, TakenLease>();
    let isEnded = false;
    const note = ({ counter, window, taken }: TakenLease): void => {
      isEnded ||= time.now() < this.stuckUntil;
      if (isEnded || (!isJournalKept && lines.size > 0)) return;
      lines.set(`${counter}|${window}`, { counter, window, taken });
    };
    const journal: OrphanedJournal = {
      instance: name,
      get leases() {
        return [...lines.values()];
      },
      remove: () => {
        this.isFound = true;
        disk.delete(journal);
      },
    };
    disk.add(journal);
    const mayReserve = (): boolean => {
      if (time.now() < this.stuckUntil) return false;
      if (isEnded) disk.delete(journal);
      return true;
    };
    this.leases = new BudgetLeases({
      home: network,
      instance: name,
      clock: time,
      log: silentLog,
      journal: { note, mayReserve },
    });
    this.expiry = new LeaseExpiry({ register: database, clock: time, log: silentLog, left });
  }
}

class LeaseHistory {
  readonly complaints: string[] = [];
  granted = 0;
  refused = 0;
  kills = 0;
  lost = 0;
  readonly #time: VirtualTime;
  readonly #dice: Dice;
  readonly #database: LeaseDatabase;
  readonly #instances: Instance[] = [];
  readonly #wanting = new Set<Wanting>();
  readonly #limits = new Map<string, number>();
  readonly #peaks = new Peaks();
  /** By budget. */
  readonly #calls = new Map<string, Call[]>();
  readonly #faulty: number;
  readonly #sabotage: LeaseSabotage | undefined;
  /** Nanodollars that calls cost beyond their reservations, or that a failover lost, by budget. */
  readonly #overruns = new Map<string, number>();
  #hadFaults = false;
  #hadFailover = false;
  #watchMs = 30_000;
  #made = 0;

  constructor(seed: number, time: VirtualTime, sabotage: LeaseSabotage | undefined) {
    const dice = new Dice(seed);
    this.#time = time;
    this.#dice = dice;
    this.#sabotage = sabotage;
    this.#faulty = dice.pick([0, 0, 0.05, 0.2]);
    this.#hadFaults = this.#faulty > 0;
    this.#database = new LeaseDatabase({
      clock: time,
      notify: (counter, window) => this.#notify(counter, window),
      changed: () => this.#check('the database'),
    });
    for (const name of budgetNames) {
      this.#limits.set(`${name}|ever`, dice.pick([1000, 3000, 20_000, 1_000_000]));
    }
  }

  async run(): Promise<void> {
    const [dice, time] = [this.#dice, this.#time];
    const count = dice.int(1, 3);
    for (let i = 0; i < count; i++) this.#start();
    const activeMs = dice.pick([500, 5000, 40_000]);
    const calls = dice.int(5, 80);
    this.#note();
    for (let i = 0; i < calls; i++) time.after(dice.int(0, activeMs), () => void this.#call());
    this.#mishaps(activeMs);
    const watch = setInterval(() => void this.#sweep(), 5000);
    await time.run(activeMs + 120_000);
    // Long enough for the dead to be found.
    await time.run(time.now() + this.#watchMs);
    clearInterval(watch);
    await this.#judgeEnd();
    for (const { leases } of this.#instances) leases.abandon();
  }

  /** @param before whose disk it has */
  #start(before?: Instance): void {
    this.#made += 1;
    const [time, dice, database] = [this.#time, this.#dice, this.#database];
    const network = new LeaseNetwork({ database, time, dice, faulty: this.#faulty });
    const home = sabotages[this.#sabotage ?? 'none'](network);
    const disk = before?.disk ?? new Set<OrphanedJournal>();
    const isJournalKept = this.#sabotage !== 'a journal that lacks reservations';
    const world = { database, time, disk, isJournalKept };
    const instance = new Instance(`gw_${this.#made}`, home, world);
    this.#instances.push(instance);
    if (before === undefined) return;
    // It looks when it has started, and every five seconds.
    time.after(dice.int(0, 3000), () => void instance.expiry.look().catch(() => undefined));
  }

  #mishaps(activeMs: number): void {
    const [dice, time] = [this.#dice, this.#time];
    const at = (): number => dice.int(0, activeMs);
    const some = (share: number, happens: () => void): void => {
      if (!dice.chance(share)) return;
      time.after(at(), () => {
        this.#hadFaults = true;
        happens();
      });
    };
    some(0.3, () => this.#kill());
    some(0.1, () => this.#kill());
    some(0.15, () => this.#restartAll());
    some(0.15, () => void this.#stop());
    some(0.1, () => this.#failOver());
    some(0.1, () => {
      const victim = dice.pick(this.#living);
      victim.stuckUntil = time.now() + dice.pick([300, 5000, 60_000]);
    });
    some(0.3, () => this.#cut(dice.pick([300, 5000, 60_000, 2 * leaseExpiryMs])));
    some(0.2, () => (this.#database.awayUntil = time.now() + dice.pick([300, 5000, 50_000])));
    some(0.2, () => {
      this.#database.wrongBy = dice.pick([-7_200_000, 3_600_000, 86_400_000]);
    });
    some(0.2, () => {
      const name = `${dice.pick(budgetNames)}|ever`;
      this.#limits.set(name, (this.#limits.get(name) ?? 0) * 2);
    });
  }

  get budgets(): number {
    return [...this.#limits.values()].reduce((sum, limit) => sum + limit, 0);
  }

  get #living(): readonly [Instance, ...Instance[]] {
    const [first, ...others] = this.#instances.filter(({ isAlive }) => isAlive);
    if (first === undefined) throw new Error('nobody lives');
    return [first, ...others];
  }

  async #call(): Promise<void> {
    const dice = this.#dice;
    const instance = dice.pick(this.#living);
    const key = dice.pick(['key:a:ever', 'key:b:ever']);
    const budgets = dice.pick<readonly string[]>([
      [key],
      [key, 'team:t:ever'],
      [key, 'team:t:ever', 'tag:g:ever'],
    ]);
    const amount = dice.pick([0, 10, 100, 250, 900]);
    const request = this.#requestOf(budgets, amount);
    const names = budgets.map((counter) => `${counter}|ever`);
    const wanting: Wanting = { names, amount, instance, peak: new Map() };
    for (const name of names) wanting.peak.set(name, this.#peaks.lately(name, this.#time.now()));
    this.#wanting.add(wanting);
    this.#note();
    try {
      const result = await instance.leases.reserve(request);
      this.#note();
      this.#wanting.delete(wanting);
      if (!instance.isAlive) return;
      if (result.granted) this.#run(instance, { id: request.callId, names, amount });
      else this.#judgeRefusal(request.callId, wanting);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      if (!this.#hadFaults) this.complaints.push(`${request.callId}: ${error.message}`);
    } finally {
      this.#wanting.delete(wanting);
    }
  }

  #run(instance: Instance, { id, names, amount }: Pick<Call, 'id' | 'names' | 'amount'>): void {
    const [dice, time] = [this.#dice, this.#time];
    this.granted += 1;
    const call: Call = { id, names, amount, state: 'running', cost: 0 };
    for (const name of names) {
      const calls = this.#calls.get(name);
      if (calls === undefined) this.#calls.set(name, [call]);
      else calls.push(call);
    }
    instance.calls.set(id, call);
    this.#check(`the reservation of ${id}`);
    time.after(dice.pick([0, 1, 20, 3000, 20_000, 90_000]), () => {
      if (!instance.isAlive || call.state !== 'running') return;
      const isOverrun = amount > 0 && dice.chance(0.02);
      call.cost = isOverrun ? amount + dice.int(1, 200) : dice.int(0, amount);
      call.state = 'ended';
      if (isOverrun) {
        for (const name of names) {
          this.#overruns.set(name, (this.#overruns.get(name) ?? 0) + call.cost - amount);
        }
      }
      instance.leases.settle(id, { tokens: 0, nanodollars: call.cost });
      this.#note();
      this.#check(`the end of ${id}`);
      this.#book(instance, call);
    });
  }

  /** Until the ledger says that it has the row. */
  #book(instance: Instance, call: Call): void {
    const time = this.#time;
    const { id, names: windows, cost: nanodollars } = call;
    const name = instance.leases.instance;
    const row = { id, windows, nanodollars, instance: name, isEstimate: false };
    let pauseMs = 50;
    const write = async (): Promise<void> => {
      if (!instance.isAlive) return;
      try {
        await instance.network.send(() => {
          call.state = 'booked';
          this.#database.record([row]);
        });
      } catch {
        pauseMs = Math.min(2 * pauseMs, 5000);
        time.after(pauseMs, () => void write());
        return;
      }
      if (!instance.isAlive) return;
      instance.calls.delete(id);
      instance.leases.written([call]);
      this.#check(`the row of ${id}`);
    };
    time.after(this.#dice.int(0, 25), () => void write());
  }

  /** kill -9. Another instance takes its place; what was noted of its calls is settled by others. */
  #kill(): void {
    const victim = this.#dice.pick(this.#living);
    this.kills += 1;
    this.#end(victim);
    victim.leases.abandon();
    this.#start(this.#dice.chance(0.6) ? victim : undefined);
  }

  /** All at once: nobody watched the dead before. */
  #restartAll(): void {
    const victims = this.#living;
    for (const victim of victims) {
      this.kills += 1;
      this.#end(victim);
      victim.leases.abandon();
    }
    for (const victim of victims) this.#start(this.#dice.chance(0.8) ? victim : undefined);
  }

  /** A stop that some calls outlast, and the next start on its disk. */
  async #stop(): Promise<void> {
    const victim = this.#dice.pick(this.#living);
    this.#end(victim);
    if (!this.#instances.some(({ isAlive }) => isAlive)) this.#start();
    await victim.leases.close();
    this.#start(victim);
  }

  /** The replica lacks the last transactions: budgets lose what those had granted and booked (storage.md). */
  #failOver(): void {
    const database = this.#database;
    const promote = database.replica();
    this.#time.after(this.#dice.pick([1, 30, 300, 2000]), () => {
      this.#hadFailover = true;
      this.#watchMs = Math.max(this.#watchMs, 3 * leaseExpiryMs);
      const before = structuredClone(database.leases);
      const spending = new Map(database.spending);
      promote();
      for (const name of this.#limits.keys()) {
        let lost = Math.max(0, (spending.get(name) ?? 0) - database.spent(name));
        // What one gave back, another one may have leased meanwhile.
        for (const [instance, { amount }] of before.get(name) ?? []) {
          lost += Math.max(0, amount - (database.leases.get(name)?.get(instance)?.amount ?? 0));
        }
        this.#overruns.set(name, (this.#overruns.get(name) ?? 0) + lost);
      }
    });
  }

  #end(victim: Instance): void {
    this.#watchMs = Math.max(this.#watchMs, 2 * leaseExpiryMs);
    victim.isAlive = false;
    for (const name of this.#limits.keys()) victim.held.set(name, this.#heldBy(victim, name));
    this.#orphan(victim);
    for (const call of victim.calls.values()) if (call.state === 'running') call.state = 'killed';
  }

  /** An instance is cut off for a while; its calls continue, and others may take them for lost. */
  #cut(ms: number): void {
    const time = this.#time;
    const victim = this.#dice.pick(this.#living);
    victim.network.cutUntil = time.now() + ms;
    this.#watchMs = Math.max(this.#watchMs, ms + 60_000);
    if (ms > orphanAfterMs) this.#orphan(victim);
  }

  /** Others settle its noted calls by their last notes, which say less than the calls may cost. */
  #orphan(victim: Instance): void {
    const dice = this.#dice;
    const { instance } = victim.leases;
    for (const call of victim.calls.values()) {
      if (call.state !== 'running' || !dice.chance(0.7)) continue;
      this.#time.after(orphanAfterMs + noteAfterMs, () => {
        if (call.state !== 'running' && call.state !== 'killed') return;
        const { id, names: windows } = call;
        const nanodollars = dice.int(0, call.amount);
        this.#database.record([{ id, windows, nanodollars, instance, isEstimate: true }]);
      });
    }
  }

  /** What its calls hold or have spent without a row, or wait for. */
  #heldBy(instance: Instance, name: string): number {
    let held = 0;
    for (const { names, state, amount, cost } of instance.calls.values()) {
      if (names.includes(name)) held += state === 'running' ? amount : Math.max(amount, cost);
    }
    for (const each of this.#wanting) {
      if (each.instance === instance && each.names.includes(name)) held += each.amount;
    }
    return held;
  }

  #notify(counter: string, window: string): void {
    for (const { leases, isAlive } of this.#instances) {
      if (!isAlive || this.#dice.chance(this.#faulty)) continue;
      this.#time.after(this.#dice.int(0, 5), () => leases.asked(counter, window));
    }
  }

  async #sweep(): Promise<void> {
    for (const { expiry, isAlive } of this.#instances) {
      if (isAlive) await expiry.look().catch(() => undefined);
    }
  }

  #requestOf(counters: readonly string[], amount: number): ReserveRequest {
    this.#made += 1;
    const budgets = counters.map((counter): BudgetItem => {
      const nanodollars = this.#limits.get(`${counter}|ever`) ?? 0;
      return { counter, window: 'ever', endsAt: undefined, nanodollars, amount };
    });
    return { callId: `call_${this.#made}`, concurrent: [], requests: [], tokens: [], budgets };
  }

  /** By what the world knows: held by running calls, or spent, in the ledger or not. */
  #used(name: string): number {
    let used = 0;
    for (const call of this.#calls.get(name) ?? []) {
      const isOpen = call.state === 'running' || call.state === 'killed';
      used += isOpen ? call.amount : call.cost;
    }
    return used;
  }

  /** Amounts that cannot be reserved: those of dead instances whose calls are not settled yet. */
  #note(): void {
    for (const name of this.#limits.keys()) {
      let all = this.#used(name);
      for (const each of this.#wanting) if (each.names.includes(name)) all += each.amount;
      this.#peaks.note(name, this.#time.now(), all);
      for (const each of this.#wanting) {
        if (!each.names.includes(name)) continue;
        const others = all - each.amount;
        each.peak.set(name, Math.max(each.peak.get(name) ?? 0, others));
      }
    }
  }

  #judgeRefusal(id: string, { names, amount, peak }: Wanting): void {
    this.refused += 1;
    if (this.#hadFaults) return;
    const isShort = names.some(
      (name) => (peak.get(name) ?? 0) + amount > (this.#limits.get(name) ?? 0),
    );
    if (!isShort)
      this.complaints.push(`${id}: refused ${amount} although every budget had as much`);
  }

  #check(when: string): void {
    for (const [name, limit] of this.#limits) {
      const beyond = this.#overruns.get(name) ?? 0;
      const held = this.#database.spent(name) + this.#database.leased(name);
      if (held > limit + beyond) {
        this.complaints.push(`${name} after ${when}: ${held} spent and leased of ${limit}`);
      }
      const used = this.#used(name);
      if (used > limit + beyond) {
        this.complaints.push(`${name} after ${when}: ${used} used of ${limit}`);
      }
      if (used > held + beyond) {
        this.complaints.push(`${name} after ${when}: ${used} used, ${held} spent and leased`);
      }
    }
  }

  async #judgeEnd(): Promise<void> {
    for (const [name, limit] of this.#limits) {
      const sum = [...this.#database.rows.values()]
        .filter(({ windows }) => windows.includes(name))
        .reduce((total, { nanodollars }) => total + nanodollars, 0);
      const spent = this.#database.spent(name);
      if (sum !== spent) this.complaints.push(`${name}: rows cost ${sum}, ${spent} are booked`);
      this.#judgeLost(name, limit);
      const leased = this.#database.leased(name);
      // A lease that its instance had given back may be there again, until another instance needs it.
      if (leased !== 0 && !this.#hadFailover)
        this.complaints.push(`${name}: ${leased} of ${limit} are still leased`);
      const left = limit - spent;
      // After a failover: an instance without leases was taken for dead, and gets its lease back when it speaks.
      const isUnheard = this.#instances.some(
        ({ leases, isAlive }) => isAlive && this.#database.rows.has(lostId(leases.instance, name)),
      );
      if (left <= 0 || isUnheard) continue;
      await this.#reserveLast(name, left);
    }
  }

  /** Amounts that are booked as spent without knowledge: nothing of live instances, little of dead ones. */
  #judgeLost(name: string, limit: number): void {
    for (const { leases, isAlive, isFound, held, stuckUntil } of this.#instances) {
      const lost = this.#database.rows.get(lostId(leases.instance, name))?.nanodollars ?? 0;
      if (lost > 0 && isAlive && !this.#hadFailover)
        this.complaints.push(`${name}: ${leases.instance} lives, ${lost} lost`);
      const beyond = Math.max(0, lost - (held.get(name) ?? 0));
      this.lost += beyond;
      // A journal proves what was not spent. One on a disk that failed lacks the ends of calls.
      const isProof = isFound && stuckUntil < 0 && !this.#hadFailover;
      const most = isProof ? 0 : maxLost(limit);
      if (!isAlive && beyond > most) {
        this.complaints.push(`${name}: ${leases.instance} lost ${beyond} beyond what calls held`);
      }
    }
  }

  /** The last nanodollar can be spent, and no more. */
  async #reserveLast(name: string, left: number): Promise<void> {
    const time = this.#time;
    const [counter = ''] = name.split('|');
    const { leases, network } = this.#dice.pick(this.#living);
    const outcomes: string[] = [];
    for (const amount of [left + 1, left]) {
      for (let tries = 0; tries < 40; tries++) {
        network.cutUntil = -1;
        const reserving = leases.reserve(this.#requestOf([counter], amount));
        void (async () => {
          const result = await Promise.resolve(reserving).catch(() => undefined);
          if (result !== undefined) outcomes.push(`${result.granted}`);
        })();
        const before = outcomes.length;
        await time.run(time.now() + 3000);
        if (outcomes.length > before) break;
      }
    }
    if (outcomes.join(' ') !== 'false true') {
      this.complaints.push(`${name}: of ${left} that are left, ${outcomes.join(' ')}`);
    }
  }
}

/** Two slices, or what a call takes; calls that ended meanwhile give back at most the largest reservation each. */
function maxLost(limit: number): number {
  return (4 * limit) / sliceShare + 10 * 900;
}

const sabotages: { readonly [name in LeaseSabotage | 'none']: (to: LeaseNetwork) => LeaseNetwork } =
  {
    none: (network) => network,
    'a journal that lacks reservations': (network) => network,
    'an answer that counts twice': (network) => {
      const state = network.state.bind(network);
      network.state = async (statement) => {
        const answer = await state(statement);
        if (answer.code !== 'ok') return answer;
        const leases = answer.leases.map((each) => ({ ...each, granted: 2 * each.granted }));
        return { ...answer, leases };
      };
      return network;
    },
    'a lease that is never given back': (network) => {
      const state = network.state.bind(network);
      const most = new Map<string, number>();
      network.state = (statement) => {
        const leases = statement.leases.map((lease) => {
          const amount = Math.max(lease.amount, most.get(lease.counter) ?? 0);
          most.set(lease.counter, amount);
          return { ...lease, amount };
        });
        return state({ ...statement, leases });
      };
      return network;
    },
  };
