/** One client request on its way, and what the path needs to serve it. */
import type { ClientDialect, RequestHead } from '../core/dialect.ts';
import type { Grant } from '../core/grant.ts';
import type { JsonSource } from '../core/json.ts';
import type { Route } from '../core/provider.ts';
import type { Clock, Later, Log, NewId } from '../core/runtime.ts';
import type { CallTrace } from '../core/trace.ts';
import type { HttpClient } from '../wire/http-client.ts';
import type { TargetHealth } from './health.ts';
import type { LeftStreams } from './left-streams.ts';
import type { LearnedParameters } from './learned-parameters.ts';
import type { ReasoningMemory } from './reasoning-memory.ts';
import type { TextCounter } from '../tokens/tokenizer.ts';
import type { TokenEstimator } from './token-estimator.ts';
import type { Receipt, RunningCall } from './receipt.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { Routing } from './routing/routing.ts';
import type { Sweeper } from './sweeper.ts';

/** The key behind a call. */
export interface Caller {
  readonly keyId: string;
  readonly team?: string;
  /** Whether the key was revoked since the call began: then it is cut (S6). */
  revoked(): boolean;
}

/** What the cost of a call is told apart by. */
export interface Labels {
  readonly tags: readonly string[];
  /** The client's own name for its user. */
  readonly user?: string;
  /** JSON text. */
  readonly metadata?: string;
}

export interface Call {
  /** The gateway's request id; also the id of the ledger row. */
  readonly id: string;
  readonly dialect: ClientDialect;
  readonly source: JsonSource;
  readonly head: RequestHead;
  readonly route: Route;
  /** Whether the key or the route takes no loss in translation. */
  readonly strict: boolean;
  /** Whose call it is. */
  readonly caller: Caller;
  /** What its cost is told apart by. */
  readonly labels: Labels;
  /** What it may use; undefined = nothing limits it. */
  readonly grant: Grant | undefined;
  /** Its place in a trace; absent where traces are not configured. */
  readonly trace?: CallTrace | undefined;
  /** Monotonic ms at which the request arrived. */
  readonly startedAt: number;
  /** Wall-clock ms of the same moment. */
  readonly startedWall: number;
  /** A request header of the client by its lower-case name. */
  header(name: string): string | undefined;
}

/** Ms; Infinity = never. */
export interface ClientTimes {
  /** Silence after which a stream gets a sign of life, by the scope of the client's dialect. */
  readonly keepAliveMs: { readonly [scope: string]: number };
  /** A client that takes no bytes for so long is cut (G9). */
  readonly stalledMs: number;
}

/** Everything outside the call, injected. */
export interface Gateway {
  readonly client: HttpClient;
  readonly clock: Clock;
  /** For the waits between tries; everything else is compared by the sweeper. */
  readonly later: Later;
  readonly log: Log;
  readonly newId: NewId;
  /** A number in [0, 1), for jitter and weights. */
  readonly random: () => number;
  readonly estimator: TokenEstimator;
  /** Public tokenizers, off the event loop; for counts only, never for calls. */
  readonly textCounter: TextCounter;
  readonly memory: ReasoningMemory;
  readonly learned: LearnedParameters;
  readonly health: TargetHealth;
  readonly retryBudget: RetryBudget;
  readonly routing: Routing;
  readonly sweeper: Sweeper;
  /** How clients are treated that wait or make wait; absent = as is customary. */
  readonly clientTimes?: () => ClientTimes;
  /** Streams that are read on without a client; absent = none is. */
  readonly leftStreams?: LeftStreams;
  /** Called again and again while a call runs, so that a crash does not lose it (F81). */
  running(call: Call, soFar: () => RunningCall): void;
  /** Called exactly once a call, whatever became of it. */
  settle(call: Call, receipt: Receipt): void;
}
