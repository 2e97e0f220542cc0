/** The questions of the bench, each with its budget (performance.md) and who is asked. */
import type { Body, Dialect } from './protocol.ts';

/** A limit on the ratio to nginx, or on an absolute figure. */
export interface Budget {
  readonly must: number;
  readonly aim: number;
}

interface WorkloadBase {
  readonly id: string;
  readonly title: string;
  /** The dialect of the caller and of the upstream; they differ where the gateway translates. */
  readonly client: Dialect;
  readonly upstream: Dialect;
  /** Also without anything between, which shows what load and mock can do. */
  readonly alsoDirect: boolean;
}

export type Workload = WorkloadBase &
  (
    | {
        /** CPU per request or per content chunk; the budget is on the ratio to nginx. */
        readonly kind: 'cpu';
        readonly unit: 'request' | 'chunk';
        readonly body: Body;
        readonly connections: number;
        /** A fixed rate for every subject, instead of as fast as each can. */
        readonly perSecond?: number;
        readonly budget: Budget;
        /** The workload whose nginx figure is the floor, for one that nginx cannot do. */
        readonly floor: string;
      }
    | {
        /** CPU per request that a subject adds to the one it stands beside; the budget is in µs. */
        readonly kind: 'added';
        readonly body: Body;
        readonly perSecond: number;
        readonly budget: Budget;
      }
    | {
        readonly kind: 'latency';
        readonly body: Body;
        readonly perSecond: number;
        /** Added ms at p50 and p99. */
        readonly p50: Budget;
        readonly p99: Budget;
      }
    | {
        readonly kind: 'memory';
        readonly streams: number;
        /** KB for each open stream. */
        readonly budget: Budget;
      }
  );

/** Streams at once, and how many chunks each gets a second: chosen to load one core to 50–90 %. */
export const streamCount = 100;
export const defaultChunksPerSecond = 200;
const chunksPerStream = 200;

const chat: Dialect = 'openai-chat';
const messages: Dialect = 'anthropic-messages';

function unary(id: string, bytes: number, budget: Budget): Workload {
  return {
    kind: 'cpu',
    id,
    title: `unary relay, ${bytes / 1000} KB`,
    client: chat,
    upstream: chat,
    alsoDirect: true,
    unit: 'request',
    body: { kind: 'unary', bytes },
    connections: 64,
    budget,
    floor: id,
  };
}

/** The load of a busy company on one machine, and below what any subject can take. */
const equalRate = 5000;

/**
 * Below what one core can take of either side of a difference. A process that is saturated does more for
 * each call than the call asks for: calls that wait are noted in the store while they wait, refused beyond
 * the limit of calls, and survive collections of garbage; that is a measure of overload.
 */
const calmRate = 2000;
/** Less where database servers share a core with load and mock: a Redis that waits for its core refuses. */
export const sharedRate = 500;

/**
 * The same at one rate for every subject. As fast as each can, the faster one keeps its neighbours
 * awake and is spared their wake-ups: performance.md, "compare at equal load".
 */
function unaryAtRate(id: string, bytes: number, budget: Budget): Workload {
  const base = unary(id, bytes, budget);
  if (base.kind !== 'cpu') return base;
  const title = `${base.title}, all at ${equalRate} a second`;
  return { ...base, title, alsoDirect: false, perSecond: equalRate };
}

function stream(id: string, client: Dialect, upstream: Dialect): Workload {
  const relays = client === upstream;
  return {
    kind: 'cpu',
    id,
    title: `SSE ${relays ? 'relay' : 'translate'}, ${client} client, ${upstream} upstream`,
    client,
    upstream,
    alsoDirect: client === chat && relays,
    unit: 'chunk',
    body: { kind: 'stream', chunks: chunksPerStream },
    connections: streamCount,
    budget: relays ? { must: 2, aim: 1.5 } : { must: 2.3, aim: 1.7 },
    floor: upstream === chat ? 'relay-chat' : 'relay-messages',
  };
}

export const workloads: readonly Workload[] = [
  unaryAtRate('unary-1k-rate', 1400, { must: 4, aim: 2.5 }),
  unary('unary-1k', 1400, { must: 4, aim: 2.5 }),
  unary('unary-100k', 100_000, { must: 3, aim: 2 }),
  stream('relay-chat', chat, chat),
  stream('translate-to-chat', messages, chat),
  stream('relay-messages', messages, messages),
  stream('translate-to-messages', chat, messages),
  {
    kind: 'added',
    id: 'limits',
    title: `added by limits, reservation, price and settlement, 1.4 KB at ${calmRate} a second`,
    client: chat,
    upstream: chat,
    alsoDirect: false,
    body: { kind: 'unary', bytes: 1400 },
    perSecond: calmRate,
    budget: { must: 25, aim: 15 },
  },
  {
    kind: 'added',
    id: 'limits-shared',
    title: `the same with PostgreSQL and Redis, 1.4 KB at ${sharedRate} a second`,
    client: chat,
    upstream: chat,
    alsoDirect: false,
    body: { kind: 'unary', bytes: 1400 },
    perSecond: sharedRate,
    budget: { must: 60, aim: 40 },
  },
  {
    kind: 'latency',
    id: 'latency',
    title: 'latency added at 400 req/s, 1.4 KB',
    client: chat,
    upstream: chat,
    alsoDirect: true,
    body: { kind: 'unary', bytes: 1400 },
    perSecond: 400,
    p50: { must: 0.5, aim: 0.3 },
    p99: { must: 3, aim: 1 },
  },
  {
    kind: 'memory',
    id: 'memory',
    title: 'resident memory of each open stream, 500 streams',
    client: chat,
    upstream: chat,
    alsoDirect: false,
    streams: 500,
    budget: { must: 80, aim: 45 },
  },
];

/** Budgets of single figures: seconds to the first answer, and MB of a fresh install (issue 2). */
export const startBudget: Budget = { must: 1, aim: 0.4 };
export const modelStartBudgetS = 3;
export const installBudgetMb = 400;
