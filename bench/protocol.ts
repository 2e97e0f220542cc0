/** Messages between the bench and its two pinned children, the load generator and the mock upstream. */

export const dialects = ['openai-chat', 'anthropic-messages', 'openai-responses'] as const;
export type Dialect = (typeof dialects)[number];

/** What no client speaks. `bedrock-invoke`: the messages API of Claude in frames of AWS. */
export const cloudUpstreams = ['gemini', 'bedrock-converse', 'bedrock-invoke'] as const;
export type CloudUpstream = (typeof cloudUpstreams)[number];
export type Upstream = Dialect | CloudUpstream;

/** One value for each dialect. */
export function perDialect<T>(of: (dialect: Dialect) => T): Record<Dialect, T> {
  return {
    'openai-chat': of('openai-chat'),
    'anthropic-messages': of('anthropic-messages'),
    'openai-responses': of('openai-responses'),
  };
}

/** Where the load goes and whose CPU time is counted. */
export interface Target {
  readonly port: number;
  readonly dialect: Dialect;
  readonly model: string;
  readonly key: string;
  /** Absent: that of the dialect. */
  readonly path?: string;
  /** Further options of a subject. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The measured process; its descendants count too. Absent when the load goes to the mock itself. */
  readonly pid?: number;
  readonly mockPid: number;
}

/** How the mock upstream answers. */
export type MockPlan =
  | { readonly kind: 'unary' }
  | {
      readonly kind: 'stream';
      readonly chunks: number;
      readonly chunksPerSecond: number;
      /** Each chunk has the time at which it was due. */
      readonly stamped?: true;
      /** The chunks of all streams are due at the same moments. */
      readonly together?: true;
    };

/**
 * One measurement.
 * - `closed`: `connections` callers, each sends again as soon as it has its answer.
 * - `paced`: a fixed schedule; latency counts from the scheduled time, so a stall is not omitted.
 * - `streams`: streams begun at a fixed rate; times of the first byte and of each stamped chunk.
 * - `hold`: opens `streams` and keeps them open while memory is read.
 */
export type Order = { readonly target: Target } & (
  | {
      readonly kind: 'closed';
      readonly connections: number;
      readonly body: Body;
      readonly warmMs: number;
      readonly measureMs: number;
    }
  | {
      readonly kind: 'paced';
      readonly perSecond: number;
      readonly body: Body;
      readonly warmMs: number;
      readonly measureMs: number;
      /** What the subject needs runs on the core of the load: times are not polled for. */
      readonly rests: boolean;
    }
  | {
      readonly kind: 'streams';
      /** Streams begun in a second. */
      readonly perSecond: number;
      readonly chunks: number;
      readonly warmMs: number;
      readonly measureMs: number;
    }
  | { readonly kind: 'hold'; readonly streams: number; readonly settleMs: number }
);

/** What is asked: a document of about `bytes`, or a stream that must have `chunks` content chunks. */
export type Body =
  | {
      readonly kind: 'unary';
      readonly bytes: number;
      /** In `openai-responses`: the gateway is to keep the answer. Absent = not. */
      readonly stored?: boolean;
    }
  | { readonly kind: 'stream'; readonly chunks: number };

/** CPU times in µs within the window of `wallMs`; `requests` and `chunks` were received within it. */
export interface Measurement {
  readonly wallMs: number;
  readonly requests: number;
  readonly chunks: number;
  /** Reads that brought the chunks: fewer than chunks where several came at once. */
  readonly reads: number;
  readonly subjectUs: number;
  readonly loadUs: number;
  readonly mockUs: number;
  /** CPU time of every other process of the machine, and time taken by the hypervisor. */
  readonly foreignUs: number;
  readonly stealUs: number;
  readonly failures: number;
  /** The first few reasons. */
  readonly reasons: readonly string[];
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** From the due time of a chunk to its arrival. */
  readonly chunkP50Ms?: number;
  readonly chunkP99Ms?: number;
  /** KB of resident memory for each held stream, and before the first of them. */
  readonly kbPerStream?: number;
  readonly idleKb?: number;
}

/** The children are started by the bench itself: telling the message's kind is check enough. */
export function isOrder(value: unknown): value is Order {
  return hasKind(value, ['closed', 'paced', 'streams', 'hold']);
}

export function isPlan(value: unknown): value is MockPlan {
  return hasKind(value, ['unary', 'stream']);
}

export function isMeasurement(value: unknown): value is Measurement {
  return typeof value === 'object' && value !== null && 'failures' in value;
}

export function isPort(value: unknown): value is { readonly port: number } {
  return typeof value === 'object' && value !== null && 'port' in value;
}

function hasKind(value: unknown, kinds: readonly unknown[]): boolean {
  return (
    typeof value === 'object' && value !== null && 'kind' in value && kinds.includes(value.kind)
  );
}
