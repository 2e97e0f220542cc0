/** Part of the composition root: the workers of a gateway, as its parent process knows them. */
import type { Store } from '../store/store.ts';
import type { Family } from '../observe/metrics/family.ts';
import type { Followers } from './access.ts';
import type { Peers } from './plane.ts';
import type { PeerOperations, WorkerOperations } from './worker-protocol.ts';
import type { Desk } from '../workers/desk.ts';
import type { Link } from '../workers/link.ts';
import type { WorkerProcess } from '../workers/processes.ts';
import { storeOf, type StoreOperations } from '../workers/store-calls.ts';

/** A worker that runs. */
export interface Member {
  readonly process: WorkerProcess;
  readonly link: Link<WorkerOperations>;
  readonly desk: Desk;
  /** Resolves when it is gone and its calls are settled. */
  readonly gone: Promise<void>;
  /** Whether it takes calls. */
  listening: boolean;
  /** Whether another one has its place already. */
  replaced: boolean;
  /** Whether it was asked to go, for another one. */
  renewed: boolean;
  /** What it had counted at the last scrape. */
  counted: readonly Family[];
}

/** After these the keys or the policies may be others. */
const changes: ReadonlySet<keyof StoreOperations> = new Set<keyof StoreOperations>([
  'addKey',
  'replaceKey',
  'revokeKey',
  'changeNoted',
  'putPolicy',
  'deletePolicy',
]);
/** Who does not follow in this time is busy, and follows when it is not. */
const followMs = 1000;

/** A refusal waits no longer for those who are busy. */
const toldMs = 500;

export class Crew implements Followers, Peers {
  readonly members = new Set<Member>();
  #telling: Promise<void> | undefined;
  #tellingNext: Promise<void> | undefined;

  /** Resolves when all workers have told what ended by now; those who ask at once share an answer. */
  allTold(): Promise<void> {
    if (this.#telling === undefined) return this.#ask();
    // The one that runs may have been answered before what matters to who asks now.
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

  /** An answer comes behind all that was told before it. */
  async #ping(): Promise<void> {
    const asked = [...this.members].map(({ link }) => link.ask('ping', [], toldMs));
    await Promise.allSettled(asked);
  }

  /** A change is done when all workers know of it: a revoked key opens none of them. */
  over(store: Store): Store {
    return storeOf(
      (op) =>
        async (...args) => {
          const done = await Reflect.apply(store[op], store, args);
          if (changes.has(op)) await this.#follow();
          return done;
        },
      { answers: store.answers, contents: store.contents, close: () => store.close() },
    );
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

  turnKept(...args: Parameters<Peers['turnKept']>): void {
    this.toAll('turnKept', args);
  }

  /** @param but who knows it already */
  toAll<K extends keyof WorkerOperations & string>(
    op: K,
    args: Parameters<WorkerOperations[K]>,
    but?: Member,
  ): void {
    for (const member of this.members) if (member !== but) member.link.tell(op, args);
  }

  /** What one of the workers tells all processes, this one included. */
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
      turnKept: (turn) => {
        own.turnKept(turn);
        this.toAll('turnKept', [turn], from());
      },
    };
  }

  async #follow(): Promise<void> {
    const asked = [...this.members].map(({ link }) => link.ask('keysChanged', [], followMs));
    await Promise.allSettled(asked);
  }
}
