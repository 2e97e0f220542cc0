/** What a fault of an upstream must look like from outside (reliability.md §0 and §2C). */
import type { JsonObject } from '../../src/json/value.ts';
import type { AnyDialect, Dialect, Seen } from '../support/reading.ts';
import type { Answer } from '../upstream/scripted.ts';
import type { UpstreamDialect } from '../support/dialects.ts';

export type Shape = 'stream' | 'document';

export interface ErrorLook {
  readonly status: number;
  readonly type: string;
  /** Not in messages. */
  readonly code?: string | null;
}

export type ErrorLooks = { readonly [D in Dialect]: ErrorLook } & {
  /** Where it is not that of chat completions, whose envelope responses have. */
  readonly responses?: ErrorLook;
};

/** What holds for a dialect; that of chat completions where responses have none of their own. */
export function lookOf<T>(
  looks: { readonly [D in Dialect]: T } & { readonly responses?: T },
  dialect: AnyDialect,
): T {
  return dialect === 'responses' ? (looks.responses ?? looks.chat) : looks[dialect];
}

function looks(
  chat: readonly [status: number, type: string, code: string | null],
  messages: readonly [status: number, type: string],
): ErrorLooks {
  return {
    chat: { status: chat[0], type: chat[1], code: chat[2] },
    messages: { status: messages[0], type: messages[1] },
  };
}

/** Rows of the error table: E1, E6, E8, E10–E13, E15, and EM behind the status line. */
export const errorTable = {
  e1: looks([400, 'invalid_request_error', null], [400, 'invalid_request_error']),
  e6: looks([404, 'invalid_request_error', 'model_not_found'], [404, 'not_found_error']),
  e8: looks([429, 'rate_limit_error', 'rate_limit_exceeded'], [429, 'rate_limit_error']),
  e10: looks([503, 'service_unavailable_error', 'server_is_overloaded'], [529, 'overloaded_error']),
  e11: looks([502, 'server_error', 'upstream_unavailable'], [502, 'api_error']),
  e12: looks([502, 'server_error', 'upstream_invalid_response'], [502, 'api_error']),
  e13: looks([504, 'server_error', 'upstream_timeout'], [504, 'timeout_error']),
  e15: looks([400, 'invalid_request_error', 'upstream_auth'], [400, 'billing_error']),
  overflow: looks(
    [400, 'invalid_request_error', 'context_length_exceeded'],
    [400, 'invalid_request_error'],
  ),
  /** Mid-stream only: an error frame; the status is that of the committed answer. */
  interrupted: looks([200, 'server_error', 'upstream_stream_interrupted'], [200, 'api_error']),
  /** The same before anything was sent. */
  interruptedEarly: looks([502, 'server_error', 'upstream_stream_interrupted'], [502, 'api_error']),
  broken: looks([200, 'server_error', 'upstream_invalid_response'], [200, 'api_error']),
  stalled: looks([200, 'server_error', 'upstream_timeout'], [200, 'timeout_error']),
  spent: looks([200, 'insufficient_quota', 'insufficient_quota'], [200, 'billing_error']),
  overloadedMidStream: looks(
    [200, 'service_unavailable_error', 'server_is_overloaded'],
    [200, 'overloaded_error'],
  ),
} as const satisfies { readonly [name: string]: ErrorLooks };

/** What the client must see. */
export type Outcome =
  /** A status and an error body. Several looks: any of them is right. */
  | { readonly kind: 'refused'; readonly as: readonly ErrorLooks[] }
  /** 200, then an error frame and no ending. */
  | { readonly kind: 'broken'; readonly as: readonly ErrorLooks[] }
  /** A complete answer. */
  | { readonly kind: 'served'; readonly seen: Partial<Seen> };

/**
 * What the ledger must have of a call (reliability.md §2C): L0 no charge; LX what was reported; LE estimated;
 * LP as LE, of a call that broke. The fifth, LC, is of clients that leave (client-leaves.test.ts).
 */
export type LedgerCode = 'L0' | 'LX' | 'LE' | 'LP';

/**
 * One number, or one for each shape; `collected` is a document that is asked for as a stream, since documents of
 * messages servers take no longer than ten minutes.
 */
export type Tries = number | { readonly [S in Shape | 'collected']: number };

export interface FaultRow {
  readonly id: string;
  readonly name: string;
  /**
   * What the upstream does; `stream` is what it was asked for. `contentSeen` resolves when content
   * has reached the client: a reset sent earlier might overtake it.
   */
  readonly play: (upstream: UpstreamDialect, stream: boolean, contentSeen: Promise<void>) => Answer;
  readonly shapes?: readonly Shape[];
  /** Only upstreams of this dialect have this fault. */
  readonly upstream?: UpstreamDialect | readonly UpstreamDialect[];
  readonly mode?: 'relay' | 'translate';
  readonly outcome: Outcome;
  /** A look that holds for one of the client's shapes only. */
  readonly documentOutcome?: Outcome;
  /** How often the upstream is asked, where nothing else may be asked instead; default: once. */
  readonly attempts?: Tries;
  /** Default: L0 where it is refused, LP where it is broken, LX where it is served. */
  readonly ledger?: LedgerCode;
  /** Whether the ledger says of each failed try that the vendor may bill it; default: either. */
  readonly maybeBilled?: boolean;
  /** What the client says; default: hello. */
  readonly prompt?: string;
  /** Instead of an answer the upstream resets the request while it is being sent. */
  readonly resetsUpload?: true;
  /** What the client sends besides. */
  readonly more?: JsonObject;
  /** Instead of a budget that has room for one reservation, and for the cost of a few small answers. */
  readonly budget?: string;
  /** A million tokens of the prompt cost 10 $ instead of nothing. */
  readonly pricedPrompt?: true;
  /** Megabytes: nothing else runs meanwhile. */
  readonly heavy?: true;
  /** The timeouts of its provider: short ones for all that begins late, or for silence behind a beginning. */
  readonly impatient?: 'to begin' | 'to go on' | 'to drip';
  /** The upstream hangs: the gateway must close its connection. */
  readonly hangs?: true;
  /** Text that must not reach the client. */
  readonly hidden?: string;
  /** The message that the client reads. */
  readonly message?: { readonly [D in Dialect]: RegExp } & { readonly responses?: RegExp };
  /** Response headers: each must match. */
  readonly headers?: { readonly [name: string]: RegExp };
  /** The answer is streamed oddly but legally: its frames are not checked for the usual order. */
  readonly unusualFrames?: true;
}

export function refused(...as: readonly ErrorLooks[]): Outcome {
  return { kind: 'refused', as };
}

export function broken(...as: readonly ErrorLooks[]): Outcome {
  return { kind: 'broken', as };
}

export function served(seen: Partial<Seen>): Outcome {
  return { kind: 'served', seen };
}

/** Rows that share some of their members. */
export function rowsWith(
  shared: Partial<FaultRow>,
  rows: readonly (Omit<FaultRow, 'outcome'> & { readonly outcome?: Outcome })[],
): readonly FaultRow[] {
  return rows.map((row) => {
    const outcome = row.outcome ?? shared.outcome;
    if (outcome === undefined) throw new Error(`${row.id} has no outcome`);
    return { ...shared, ...row, outcome };
  });
}
