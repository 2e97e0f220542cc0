/** One client request on its way. */
import type { ClientDialect, RequestHead } from './dialect.ts';
import type { Grant } from './policy.ts';
import type { JsonSource } from './client-body.ts';
import type { Route } from './provider.ts';
import type { CallTrace } from './trace.ts';

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
  /** The key or the route asks for cache marks where the client sets none. */
  readonly cache?: 'auto' | undefined;
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
