/** Part of the composition root: the messages between a gateway's parent process and its workers. */
import type { BudgetNote } from '../../access/budget-watch.ts';
import type { JsonObject } from '../../json/value.ts';
import type { DeadCredential, TargetChange } from '../../gateway/targets/health.ts';
import type { SharedTurn } from '../../gateway/reasoning-memory.ts';
import type { DrainWay } from '../../http/drain.ts';
import type { LocalModelFile } from '../../local-models/model-file.ts';
import type { Family } from '../../observe/metrics/family.ts';
import type { Tallies } from './data-plane-host.ts';
import type { Environment } from '../options.ts';
import type { SessionOperations } from '../workers/session.ts';

/** The state of the parent; sent whenever it changes. */
export interface ParentState {
  /** Whether it has read keys and secrets. */
  readonly loaded: boolean;
  /** Whether new calls may begin. */
  readonly mayAdmit: boolean;
  /** Why the gateway is not ready; absent when it is. */
  readonly failure?: string;
  /** Ms by which the counters' clock is ahead of this machine's. */
  readonly aheadMs: number;
  readonly countersUp: boolean;
}

/** The initial data of a worker. */
export interface Welcome {
  readonly env: Environment;
  /** Settings in the form of `packSettings`, with the worker's share of limits. */
  readonly settings: string;
  readonly state: ParentState;
  readonly localModels: readonly LocalModelFile[];
  /** The key that seals the content of calls; absent if there is none. */
  readonly contentKey?: Uint8Array;
  /** A terminal has a person before it. */
  readonly pretty?: 'coloured' | 'plain';
  /** Present if other gateways settle the calls of one that hung for this time. */
  readonly stillMs?: number;
  /** Whether what the process says of its load is examined; tests say no. */
  readonly watchesLoad: boolean;
  readonly fetchesCredentials: boolean;
}

/** Events of upstreams and of the worker itself. */
export type EventOperations = {
  credentialOut(dead: DeadCredential): void;
  targetChanged(change: TargetChange): void;
  pressureChanged(step: number, facts: JsonObject): void;
};

/** Messages to all processes. */
export type PeerOperations = {
  keyRefused(address: string | undefined): void;
  keyForgiven(address: string | undefined): void;
  turnShared(turn: SharedTurn): void;
};

/** Requests and messages of a worker to its parent. */
export type ParentOperations = SessionOperations &
  EventOperations &
  PeerOperations & {
    hello(): Promise<Welcome>;
    /** Resolves when the address is free for it, with the descriptors of the listening sockets that it has inherited. */
    mayListen(): Promise<readonly number[]>;
    /** It takes calls, at this address. */
    listening(url: string): void;
    /** It cannot begin. */
    failed(why: string): void;
    /** It ends, once its calls have: another one may take its place. */
    leaving(): void;
    noteBudget(note: BudgetNote): void;
    /** Resolves with the socket of the model's engine once it can be called. @throws GatewayError */
    wakeEngine(model: string): Promise<string>;
    ping(): void;
  };

export interface StopOfWorker extends DrainWay {
  /** Whether /readyz was polled recently. */
  readonly watched: boolean;
}

/** Requests and messages of the parent to a worker. */
export type WorkerOperations = PeerOperations & {
  apply(settings: string): Promise<void>;
  stateIs(state: ParentState): void;
  localModels(models: readonly LocalModelFile[]): void;
  /** Resolves once keys and policies are read anew. */
  keysChanged(): Promise<void>;
  ping(): void;
  /** Whether /readyz of the gateway was polled recently. */
  watched(): boolean;
  stop(how: StopOfWorker): Promise<void>;
  cut(): void;
  families(): Promise<readonly Family[]>;
  tallies(): Tallies;
  /** The health of targets, as `TargetHealth.words`. */
  health(): ReadonlyMap<string, string>;
  /** Writes the ledger rows that wait. */
  flush(): Promise<void>;
};
