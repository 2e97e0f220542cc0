/** Part of the composition root: the workers of a gateway, as its parent process knows them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../core/runtime.ts';
import type { DeadCredential, TargetChange } from '../../gateway/targets/health.ts';
import { parseOwn } from '../../json/parse.ts';
import type { JsonObject } from '../../json/value.ts';
import type { Family } from '../../observe/metrics/family.ts';
import { callMethod, remoteParts } from '../../store/remote.ts';
import type { Store } from '../../store/store.ts';
import type { Followers } from '../access.ts';
import type { Events, PlaneEvents } from '../events.ts';
import type { Peers } from '../plane.ts';
import type { EventOperations, PeerOperations, WorkerOperations } from './worker-protocol.ts';
import type { Link } from '../workers/link.ts';
import type { WorkerProcess } from '../workers/processes.ts';
import type { WorkerSession } from '../workers/session.ts';

/** A worker that runs. */
export interface Member {
  readonly process: WorkerProcess;
  readonly link: Link<WorkerOperations>;
  readonly session: WorkerSession;
  /** Resolves when it is gone and its calls are settled. */
  readonly gone: Promise<void>;
  /** Whether it accepts connections. */
  listening: boolean;
  /** Whether a replacement was started. */
  replaced: boolean;
  /** Whether it was stopped because its replacement serves. */
  renewed: boolean;
  /** Ends the check that it answers. */
  stopHeartbeat: () => void;
  /** Its counts at the last scrape. */
  counted: readonly Family[];
}

/** After these the keys or the policies may be others. */
const changes: ReadonlySet<string> = new Set([
  'keys.add',
  'keys.replace',
  'keys.revoke',
  'policies.put',
  'policies.delete',
  'audit.change',
]);
/** A worker that does not confirm within this time is busy, and follows later. */
const followMs = 1000;

/** A refusal waits no longer for busy workers. */
const reportMs = 500;

export class WorkerPool implements Followers, Peers {
  readonly members = new Set<Member>();
  #telling: Promise<void> | undefined;
  #tellingNext: Promise<void> | undefined;

  /** Resolves when all workers have reported which calls have ended by now; concurrent callers share one round of pings. */
  allReported(): Promise<void> {
    if (this.#telling === undefined) return this.#ask();
    // The running round may have been answered before the end of a call that matters to this caller.
    this.#tellingNext ??= this.#telling.then(() => {
      this.#tellingNext = undefined;
      return this.#ask();
    });
    return this.#tellingNext;
  }

  #ask(): Promise<void> {
    this.#telling = this.#ping().finally(() => {
      this.#telling = undefined;
    });
    return this.#telling;
  }

  /** The answer to a ping follows all messages that the worker sent before it. */
  async #ping(): Promise<void> {
    const asked = [...this.members].map(({ link }) => link.ask('ping', [], reportMs));
    await Promise.allSettled(asked);
  }

  /** A change is complete when all workers have applied it: a revoked key is refused by all of them. */
  over(store: Store): Store {
    const deps = remoteParts(async (part, method, args) => {
      const done = await callMethod(store[part], method, args);
      if (changes.has(`${part}.${method}`)) await this.#follow();
      return done;
    });
    return { ...deps, backup: (path) => store.backup(path), close: () => store.close() };
  }

  tell(): void {
    void this.#follow();
  }

  keyRefused(address: string | undefined): void {
    this.toAll('keyRefused', [address]);
  }

  keyForgiven(address: string | undefined): void {
    this.toAll('keyForgiven', [address]);
  }

  turnShared(...args: Parameters<Peers['turnShared']>): void {
    this.toAll('turnShared', args);
  }

  /** @param but the worker that knows it already */
  toAll<K extends keyof WorkerOperations & string>(
    op: K,
    args: Parameters<WorkerOperations[K]>,
    but?: Member,
  ): void {
    for (const member of this.members) if (member !== but) member.link.tell(op, args);
  }

  /** Passes a message of one worker to this process and to the other workers. */
  relay(own: PeerOperations, from: () => Member | undefined): PeerOperations {
    return {
      keyRefused: (address) => {
        own.keyRefused(address);
        this.toAll('keyRefused', [address], from());
      },
      keyForgiven: (address) => {
        own.keyForgiven(address);
        this.toAll('keyForgiven', [address], from());
      },
      turnShared: (turn) => {
        own.turnShared(turn);
        this.toAll('turnShared', [turn], from());
      },
    };
  }

  async #follow(): Promise<void> {
    const asked = [...this.members].map(({ link }) => link.ask('keysChanged', [], followMs));
    await Promise.allSettled(asked);
  }
}

// Part of the composition root: what several processes see of the same upstreams, as one: out when the first of
// them takes it out, back when all of them have it back.

type ReportedEvents = Pick<Events, 'credentialOut' | 'targetChanged' | 'pressureChanged'>;

export class PoolEvents {
  readonly #events: ReportedEvents;
  /** The workers that report a target as out, by target. */
  readonly #out = new Map<string, Set<number>>();
  readonly #steps = new Map<number, number>();
  #step = 0;

  constructor(events: ReportedEvents) {
    this.#events = events;
  }

  /** @param process its id: one that leaves has its successor's number; 0 is the parent */
  of(process: number): EventOperations {
    return {
      credentialOut: (dead) => this.#credentialOut(process, dead),
      targetChanged: (change) => this.#targetChanged(process, change),
      pressureChanged: (step, facts) => this.#pressureChanged(process, step, facts),
    };
  }

  /** The process is gone; its replacement has received nothing yet. */
  gone(process: number): void {
    for (const [subject, processes] of this.#out) {
      if (processes.has(process)) this.#back(process, subject);
    }
    this.#pressureChanged(process, 0, {});
  }

  #credentialOut(process: number, dead: DeadCredential): void {
    const { provider, credential } = dead;
    const named = credential === undefined ? { provider } : { provider, credential };
    this.#isOut(process, subjectOf(named));
    this.#events.credentialOut(dead);
  }

  #targetChanged(process: number, change: TargetChange): void {
    const { out, ...named } = change;
    if (out === undefined) return this.#back(process, subjectOf(named));
    this.#isOut(process, subjectOf(named));
    this.#events.targetChanged(change);
  }

  #isOut(process: number, subject: string): void {
    const known = this.#out.get(subject);
    if (known === undefined) this.#out.set(subject, new Set([process]));
    else known.add(process);
  }

  #back(process: number, subject: string): void {
    const processes = this.#out.get(subject);
    processes?.delete(process);
    if ((processes?.size ?? 0) > 0) return;
    this.#out.delete(subject);
    this.#events.targetChanged(parseOwn<TargetChange>(subject));
  }

  #pressureChanged(process: number, step: number, facts: JsonObject): void {
    this.#steps.set(process, step);
    const worst = Math.max(...this.#steps.values());
    if (worst === this.#step) return;
    this.#step = worst;
    this.#events.pressureChanged(worst, facts);
  }
}

/** The targets that are out, so that their return can be reported. */
function subjectOf(named: Omit<TargetChange, 'out'>): string {
  return JSON.stringify(named);
}

/** The targets of the parent's own calls. */
export function parentEvents(events: Events, pool: PoolEvents): PlaneEvents {
  return {
    ...pool.of(0),
    tell: (type, data) => events.tell(type, data),
    get counts() {
      return events.counts;
    },
  };
}

// Part of the composition root: all workers are replaced, one after another. Each one's successor takes calls before
// it stops to, and the next one's turn comes when its last call has ended.

interface RenewalDeps {
  readonly pool: WorkerPool;
  readonly log: Log;
  /** Another one starts under the number of this one, which continues. */
  readonly begin: (member: Member) => void;
  /** Resolves when it has let its calls end and is gone. */
  readonly end: (member: Member) => Promise<unknown>;
  /** Whether the gateway stops. */
  readonly stopping: () => boolean;
}

const lookEveryMs = 50;

export class Renewal {
  readonly #deps: RenewalDeps;
  #running: Promise<void> | undefined;

  constructor(deps: RenewalDeps) {
    this.#deps = deps;
  }

  /** Resolves when the previous workers are gone; concurrent callers wait for the same run. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#all().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #all(): Promise<void> {
    const { pool, log, stopping } = this.#deps;
    const members = [...pool.members].toSorted((a, b) => a.process.number - b.process.number);
    log.info('workers_renewing', { workers: members.length });
    for (const member of members) await this.#one(member);
    if (!stopping()) log.info('workers_renewed', {});
  }

  async #one(member: Member): Promise<void> {
    const { pool, begin, end, stopping } = this.#deps;
    // One that died or leaves is new, or will be.
    if (stopping() || !pool.members.has(member) || member.replaced) return;
    member.replaced = true;
    begin(member);
    // However often it takes: until then this one serves.
    while (!stopping() && !this.#hasSuccessor(member)) await sleep(lookEveryMs);
    if (stopping() || !pool.members.has(member)) return;
    member.renewed = true;
    await end(member);
  }

  #hasSuccessor(member: Member): boolean {
    const { number } = member.process;
    return [...this.#deps.pool.members].some(
      (other) => other !== member && other.process.number === number && other.listening,
    );
  }
}
