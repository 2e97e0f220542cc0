/** The questions of the bench, each with its budget and who is asked. */
import type { Body, Dialect, Upstream } from './protocol.ts';

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
  readonly upstream: Upstream;
  /** Also without anything between, which shows what load and mock can do. */
  readonly alsoDirect: boolean;
  /** Peers take part. */
  readonly withPeers: boolean;
  /** Not in more rounds than these: it takes long, and one round is like the other. Absent: in all. */
  readonly maxRounds?: number;
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
        /**
         * Chunks of all streams come at the same moments, that many a second of each. Absent: their moments are spread.
         */
        readonly togetherPerSecond?: number;
        /** Absent = there is none for this size. */
        readonly budget?: Budget;
        /** The workload whose nginx figure is the floor, for one that nginx cannot do. */
        readonly floor: string;
      }
    | {
        /** CPU per request that a subject adds to the one it is beside; the budget is in µs. */
        readonly kind: 'added';
        readonly body: Body;
        /** Of the calls beside; absent = the same. */
        readonly plainBody?: Body;
        readonly perSecond: number;
        readonly budget: Budget;
        /** Servers that the subject asks run on the core of the load, which leaves it to them. */
        readonly sharesCore: boolean;
      }
    | {
        readonly kind: 'latency';
        readonly body: Body;
        readonly perSecond: number;
        /** Measured from the first call after the start, without a warm-up. */
        readonly cold?: true;
        /** Added ms at p50 and p99. */
        readonly p50?: Budget;
        readonly p99: Budget;
      }
    | {
        /**
         * Times of streams: to the first byte, and of each chunk on its way. No budget: those
         * of times are of a whole answer (`latency`), and no peer publishes these.
         */
        readonly kind: 'delay';
        readonly body: Extract<Body, { readonly kind: 'stream' }>;
        /** Streams begun in a second, and chunks a second of each. */
        readonly perSecond: number;
        readonly chunksPerSecond: number;
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
const responses: Dialect = 'openai-responses';

interface Size {
  readonly id: string;
  readonly bytes: number;
  readonly label: string;
  readonly connections: number;
  readonly budget?: Budget;
  readonly maxRounds?: number;
}

/** Callers by size: enough to saturate, and not so many that bodies alone fill the memory of a subject. */
const shortBody: Size = {
  id: 'unary-1k',
  bytes: 1400,
  label: '1.4 KB',
  connections: 64,
  budget: { must: 4.7, aim: 4 },
};
const longBody: Size = {
  id: 'unary-100k',
  bytes: 100_000,
  label: '100 KB',
  connections: 64,
  budget: { must: 6, aim: 4.5 },
};
const sizes: readonly Size[] = [
  shortBody,
  longBody,
  { id: 'unary-1m', bytes: 1_000_000, label: '1 MB', connections: 16, maxRounds: 2 },
  { id: 'unary-10m', bytes: 10_000_000, label: '10 MB', connections: 4, maxRounds: 2 },
];

function unary({ id, bytes, label, connections, budget, maxRounds }: Size): Workload {
  return {
    kind: 'cpu',
    id,
    title: `unary relay, ${label}`,
    client: chat,
    upstream: chat,
    alsoDirect: true,
    withPeers: true,
    unit: 'request',
    body: { kind: 'unary', bytes },
    connections,
    ...(budget === undefined ? {} : { budget }),
    ...(maxRounds === undefined ? {} : { maxRounds }),
    floor: id,
  };
}

/**
 * Below what one core can take of either side of a difference. A process that is saturated does more for
 * each call than the call requests: calls that wait are noted in the store while they wait, refused beyond
 * the limit of calls, and survive collections of garbage; that is a measure of overload.
 */
export const calmRate = 1000;
const longRate = 500;

/**
 * The same at one rate for every subject, which all of them keep up with: the rows that the budgets are
 * measured by (docs/decisions/0030-equal-load.md). Without peers, that do not.
 */
function atRate(base: Workload, perSecond: number, budget: Budget): Workload {
  if (base.kind !== 'cpu') return base;
  return {
    ...base,
    id: `${base.id}-rate`,
    title: `${base.title}, all at ${perSecond} a second`,
    alsoDirect: false,
    withPeers: false,
    perSecond,
    budget,
    floor: `${base.id}-rate`,
  };
}

/** The row in which nginx relays the streams of an upstream's dialect. */
const relayOf: Readonly<Record<Upstream, string>> = {
  'openai-chat': 'relay-chat',
  'anthropic-messages': 'relay-messages',
  'openai-responses': 'relay-responses',
  // Nothing but the gateway makes a client's stream of these: the floor is nginx relaying that stream.
  gemini: 'relay-chat',
  'bedrock-converse': 'relay-chat',
  'bedrock-invoke': 'relay-messages',
};

/** The budget of a translated chunk: Responses streams have more events (issue 21); of the clouds, issue 22. */
function translated(client: Dialect, upstream: Upstream): number {
  if (upstream === 'gemini' || upstream === 'bedrock-converse') return 2.5;
  return client === responses || upstream === responses ? 2.5 : 2.3;
}

const unaryResponses = {
  id: 'unary-responses-rate',
  title: `unary relay of responses, 1.4 KB, all at ${calmRate} a second`,
  client: responses,
  upstream: responses,
  floor: 'unary-responses-rate',
} as const;

function stream(id: string, client: Dialect, upstream: Upstream): Workload {
  const relays = client === upstream;
  return {
    kind: 'cpu',
    id,
    title: `SSE ${relays ? 'relay' : 'translate'}, ${client} client, ${upstream} upstream`,
    client,
    upstream,
    alsoDirect: client === chat && relays,
    withPeers: client === chat && relays,
    unit: 'chunk',
    body: { kind: 'stream', chunks: chunksPerStream },
    connections: streamCount,
    budget: relays ? { must: 2, aim: 1.5 } : { must: translated(client, upstream), aim: 1.7 },
    floor: relayOf[upstream],
  };
}

/**
 * The same, with an event of each stream every 10 ms, all at the same moment: a vendor's servers and a kernel under
 * load deliver so, and what a turn of the event loop costs is shared by its events.
 */
function together(base: Workload, budget: Budget): Workload {
  if (base.kind !== 'cpu') return base;
  return {
    ...base,
    id: `${base.id}-together`,
    title: `${base.title}, all streams at the same moment`,
    alsoDirect: false,
    togetherPerSecond: 100,
    budget,
    floor: `${base.floor}-together`,
  };
}

/**
 * Streams of 20 chunks at 50 a second: 40 open at once, 2,000 chunks a second. Begun at a rate that is no
 * part of 50, so that their chunks are not all due at the same moment.
 */
function delay(id: string, client: Dialect, upstream: Dialect): Workload {
  const relays = client === upstream;
  return {
    kind: 'delay',
    id,
    title: `${relays ? 'relay' : 'translate'}, ${client} client, ${upstream} upstream`,
    client,
    upstream,
    // The stream as the client gets it, straight from the mock.
    alsoDirect: true,
    withPeers: client === chat && relays,
    body: { kind: 'stream', chunks: 20 },
    perSecond: 97,
    chunksPerSecond: 50,
  };
}

function memory(streams: number): Workload {
  return {
    kind: 'memory',
    id: `memory-${streams}`,
    title: `resident memory of each open stream, ${streams.toLocaleString('en')} streams`,
    client: chat,
    upstream: chat,
    alsoDirect: false,
    withPeers: true,
    maxRounds: 2,
    streams,
    budget: { must: 80, aim: 45 },
  };
}

const shortAtRate = atRate(unary(shortBody), calmRate, { must: 4, aim: 2.5 });

export const workloads: readonly Workload[] = [
  shortAtRate,
  atRate(unary(longBody), longRate, { must: 3, aim: 2 }),
  { ...shortAtRate, ...unaryResponses },
  ...sizes.map(unary),
  stream('relay-chat', chat, chat),
  stream('translate-to-chat', messages, chat),
  stream('relay-messages', messages, messages),
  stream('translate-to-messages', chat, messages),
  together(stream('relay-chat', chat, chat), { must: 2.2, aim: 1.7 }),
  together(stream('translate-to-chat', messages, chat), { must: 2.4, aim: 1.8 }),
  together(stream('relay-messages', messages, messages), { must: 2.2, aim: 1.7 }),
  together(stream('translate-to-messages', chat, messages), { must: 2.4, aim: 1.8 }),
  stream('relay-responses', responses, responses),
  stream('responses-to-chat', responses, chat),
  stream('responses-to-messages', responses, messages),
  stream('chat-to-responses', chat, responses),
  stream('messages-to-responses', messages, responses),
  {
    ...stream('relay-bedrock', messages, 'bedrock-invoke'),
    title: 'SSE relay of Claude on Bedrock, frames of AWS made to events',
  },
  stream('chat-to-gemini', chat, 'gemini'),
  stream('chat-to-converse', chat, 'bedrock-converse'),
  {
    kind: 'added',
    id: 'limits',
    title: `added by limits, reservation, price and settlement, 1.4 KB at ${calmRate} a second`,
    client: chat,
    upstream: chat,
    alsoDirect: false,
    withPeers: false,
    body: { kind: 'unary', bytes: 1400 },
    perSecond: calmRate,
    budget: { must: 25, aim: 15 },
    sharesCore: false,
  },
  {
    kind: 'added',
    id: 'limits-shared',
    title: `the same with PostgreSQL and Redis, 1.4 KB at ${calmRate} a second`,
    client: chat,
    upstream: chat,
    alsoDirect: false,
    withPeers: false,
    body: { kind: 'unary', bytes: 1400 },
    perSecond: calmRate,
    budget: { must: 60, aim: 40 },
    sharesCore: true,
  },
  {
    kind: 'added',
    id: 'budget-shared',
    title: `a budget in PostgreSQL alone, 1.4 KB at ${calmRate} a second`,
    client: chat,
    upstream: chat,
    alsoDirect: false,
    withPeers: false,
    body: { kind: 'unary', bytes: 1400 },
    perSecond: calmRate,
    budget: { must: 25, aim: 15 },
    sharesCore: true,
  },
  {
    kind: 'added',
    id: 'kept-responses',
    title: `keeping a response, 1.4 KB at ${calmRate} a second`,
    client: responses,
    upstream: responses,
    alsoDirect: false,
    withPeers: false,
    body: { kind: 'unary', bytes: 1400, stored: true },
    plainBody: { kind: 'unary', bytes: 1400 },
    perSecond: calmRate,
    budget: { must: 40, aim: 25 },
    sharesCore: false,
  },
  {
    kind: 'latency',
    id: 'latency',
    title: 'latency added at 400 req/s, 1.4 KB',
    client: chat,
    upstream: chat,
    alsoDirect: true,
    withPeers: true,
    body: { kind: 'unary', bytes: 1400 },
    perSecond: 400,
    p50: { must: 0.5, aim: 0.3 },
    p99: { must: 1.2, aim: 0.6 },
  },
  {
    kind: 'latency',
    id: 'latency-cold',
    title: 'the same in the first three seconds after the start',
    client: chat,
    upstream: chat,
    alsoDirect: true,
    withPeers: true,
    body: { kind: 'unary', bytes: 1400 },
    perSecond: 400,
    cold: true,
    p99: { must: 8, aim: 4 },
  },
  delay('delay-relay-chat', chat, chat),
  delay('delay-translate-to-chat', messages, chat),
  delay('delay-translate-to-messages', chat, messages),
  memory(100),
  memory(1000),
  memory(5000),
];

/** Budgets of single figures: seconds to the first answer, resident MB at rest, and MB of a fresh install. */
export const startBudget: Budget = { must: 0.4, aim: 0.3 };
export const modelStartBudgetS = 1.2;
export const restBudgetMb: Budget = { must: 130, aim: 100 };
export const installBudgetMb = 400;

/** Names for several workloads, for `--only`. */
export const groups: Readonly<Record<string, readonly string[]>> = {
  sizes: sizes.map(({ id }) => id),
  clouds: ['relay-chat', 'relay-messages', 'relay-bedrock', 'chat-to-gemini', 'chat-to-converse'],
  delays: workloads.filter(({ kind }) => kind === 'delay').map(({ id }) => id),
  memory: workloads.filter(({ kind }) => kind === 'memory').map(({ id }) => id),
};
