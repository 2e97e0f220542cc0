/** The dependencies of the call path: clients, clocks, counters and remembered state. */
import type { Call, Receipt, RunningCall } from '../core/call.ts';
import type { Clock, Later, Log, NewId } from '../core/runtime.ts';
import type { HttpClient } from '../wire/http-client.ts';
import type { TargetHealth } from './targets/health.ts';
import type { DetachedStreams, Sweeper } from './deadlines.ts';
import type { LearnedParameters } from './learned-parameters.ts';
import type { LongBodies } from './long-bodies/body-thread.ts';
import type { ReasoningMemory } from './reasoning-memory.ts';
import type { TextCounter } from '../tokens/tokenizer.ts';
import type { TokenEstimator } from './call-size.ts';
import type { RetryBudget } from './targets/retries.ts';
import type { Routing } from './targets/routing.ts';

/** Ms; Infinity = never. */
export interface ClientTimes {
  /** Silence after which a stream gets a keep-alive, by the scope of the client's dialect. */
  readonly keepAliveMs: { readonly [scope: string]: number };
  /** A client that reads nothing for this long is cut (G9). */
  readonly stalledMs: number;
}

/** Accounts for calls (access/settle.ts). */
export interface CallSettlement {
  /** Called repeatedly while a call runs, so that a crash does not lose it (F81). */
  running(call: Call, soFar: () => RunningCall): void;
  /** Called exactly once per call, however it ends. */
  settle(call: Call, receipt: Receipt): void;
}

/** Injected dependencies. */
export interface Gateway {
  readonly client: HttpClient;
  readonly clock: Clock;
  /** For the pauses between retries; other deadlines are checked by the sweeper. */
  readonly later: Later;
  readonly log: Log;
  readonly newId: NewId;
  /** A number in [0, 1), for jitter and weights. */
  readonly random: () => number;
  readonly estimator: TokenEstimator;
  /** Public tokenizers, off the event loop; for counts only, never for calls. */
  readonly textCounter: TextCounter;
  readonly memory: ReasoningMemory;
  /** Parses and writes long bodies off the event loop. */
  readonly bodies: LongBodies;
  readonly learned: LearnedParameters;
  readonly health: TargetHealth;
  readonly retryBudget: RetryBudget;
  readonly routing: Routing;
  readonly sweeper: Sweeper;
  /** Timeouts of slow and waiting clients; absent = the defaults. */
  readonly clientTimes?: () => ClientTimes;
  /** Streams that continue without a client; absent = none. */
  readonly detachedStreams?: DetachedStreams;
  readonly settlement: CallSettlement;
}
