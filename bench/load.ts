/**
 * The load generator: a child process that carries out one order of its parent at a time and answers
 * with the measurement. It reads the CPU time of the measured process at both ends of the window
 * itself, so that the window of the counters and that of the clock are the same.
 */
import { marksPerChunk } from './bodies.ts';
import { Caller, prepareRequest, type CallerEvents } from './caller.ts';
import { lateness } from './percentile.ts';
import { processTree, residentKb } from './process-cpu.ts';
import { isOrder, type Measurement, type Order } from './protocol.ts';
import { schedule } from './schedule.ts';
import { runStreams } from './timed-streams.ts';
import {
  delay,
  difference,
  drainMs,
  failuresOf,
  measure,
  snapshot,
  RequestCounts,
  within,
} from './window.ts';

/** How long the last of many streams may take to its first chunk. */
const openMs = 30_000;

/** What a target reaches is judged by a warm-up of this length at least. */
const judgedMs = 1000;

type ClosedOrder = Extract<Order, { readonly kind: 'closed' }>;
type PacedOrder = Extract<Order, { readonly kind: 'paced' }>;
type HoldOrder = Extract<Order, { readonly kind: 'hold' }>;

/** Callers that send again at once; the rate is what the target can take. */
async function runClosed(order: ClosedOrder): Promise<Measurement> {
  const counts = new RequestCounts();
  const { idle, stop } = startClosed(order, counts);
  await delay(order.warmMs);
  const window = await measure(order, counts, order.measureMs);
  stop();
  await within(drainMs, idle, counts);
  return { ...window, ...failuresOf(counts) };
}

function startClosed(
  order: Pick<ClosedOrder, 'target' | 'body' | 'connections'>,
  counts: RequestCounts,
): { readonly idle: Promise<void>; stop(): void } {
  const request = prepareRequest(order.target, order.body);
  const marks = marksPerChunk(order.target.dialect);
  let stopping = false;
  let active = order.connections;
  const { promise: idle, resolve } = Promise.withResolvers<void>();
  const events: CallerEvents = {
    done: (caller, fault) => {
      counts.count(fault);
      // A target that refuses everything would make this a busy loop.
      if (!stopping && counts.failures < 1000) return caller.send(performance.now());
      caller.close();
      active -= 1;
      if (active === 0) resolve();
    },
    chunks: (_, count) => {
      counts.chunks += count / marks;
      counts.reads += 1;
    },
  };
  for (let i = 0; i < order.connections; i++) new Caller(request, events).send(performance.now());
  return {
    idle,
    stop: () => {
      stopping = true;
    },
  };
}

/** A closed loop: it makes the target hot sooner than a rate would. Answers a second in its second half. */
async function warmUp(order: PacedOrder, counts: RequestCounts): Promise<number> {
  const warm = startClosed({ ...order, connections: 8 }, counts);
  await delay(order.warmMs / 2);
  const cold = counts.requests;
  await delay(order.warmMs / 2);
  const reached = ((counts.requests - cold) * 2000) / order.warmMs;
  warm.stop();
  await within(drainMs, warm.idle, counts);
  return reached;
}

/** A constant rate, after a warm-up unless the order has none. */
async function runPaced(order: PacedOrder): Promise<Measurement> {
  const counts = new RequestCounts();
  const reached = order.warmMs === 0 ? undefined : await warmUp(order, counts);
  // Twice as much as it can take would only fill queues, for as long as the window lasts. In a short warm-up one
  // collection of garbage decides what is reached: the target has had a long one before.
  if (order.warmMs >= judgedMs && reached !== undefined && reached < order.perSecond / 2) {
    counts.count(`it takes ${Math.round(reached)} requests a second, of ${order.perSecond}`);
    return { ...(await measure(order, counts, 0)), ...failuresOf(counts) };
  }

  const intervalMs = 1000 / order.perSecond;
  const settle = reached === undefined ? 0 : Math.ceil(order.perSecond / 2);
  const total = settle + Math.ceil((order.perSecond * order.measureMs) / 1000);
  const latencies: number[] = [];
  const free: Caller[] = [];
  let finished = 0;
  const { promise: idle, resolve } = Promise.withResolvers<void>();
  const request = prepareRequest(order.target, order.body);
  const events: CallerEvents = {
    done: (caller, fault) => {
      counts.count(fault);
      finished += 1;
      if (caller.dueAt >= measuredFrom) latencies.push(performance.now() - caller.dueAt);
      free.push(caller);
      if (finished === total) resolve();
    },
    chunks: () => {},
  };
  const start = performance.now() + 10;
  const measuredFrom = start + settle * intervalMs;
  const measured = delay(measuredFrom - performance.now()).then(() =>
    measure(order, counts, order.measureMs),
  );
  await schedule(
    total,
    (i) => start + i * intervalMs,
    (dueAt) => {
      (free.pop() ?? new Caller(request, events)).send(dueAt);
    },
    order,
  );
  const window = await measured;
  await within(drainMs, idle, counts);
  for (const caller of free) caller.close();
  const { p50, p99 } = lateness(latencies);
  return { ...window, ...failuresOf(counts), p50Ms: p50, p99Ms: p99 };
}

/** Opens streams, one every 2 ms, and reads memory before the first and while all are open. */
async function runHold(order: HoldOrder): Promise<Measurement> {
  const counts = new RequestCounts();
  const { target, streams, settleMs } = order;
  // A few calls first: what the first stream loads once is not a cost of each stream.
  await holdStreams(order, 20, counts);
  await delay(settleMs);
  const pids = target.pid === undefined ? [] : processTree(target.pid);
  const idleKb = residentKb(pids);
  const opened = snapshot(order, pids, counts);
  let openKb = idleKb;
  await holdStreams(order, streams, counts, async () => {
    await delay(settleMs);
    openKb = residentKb(pids);
  });
  return {
    ...difference(opened, snapshot(order, pids, counts)),
    ...failuresOf(counts),
    idleKb,
    kbPerStream: (openKb - idleKb) / streams,
  };
}

async function holdStreams(
  order: HoldOrder,
  count: number,
  counts: RequestCounts,
  whileOpen?: () => Promise<void>,
): Promise<void> {
  const started = new Set<Caller>();
  const callers: Caller[] = [];
  const { promise: allOpen, resolve } = Promise.withResolvers<void>();
  const request = prepareRequest(order.target, { kind: 'stream', chunks: 0 });
  const events: CallerEvents = {
    done: (_, fault) => counts.count(fault ?? 'a held stream ended'),
    chunks: (caller) => {
      if (started.has(caller)) return;
      started.add(caller);
      counts.requests += 1;
      if (started.size === count) resolve();
    },
  };
  for (let i = 0; i < count; i++) {
    const caller = new Caller(request, events);
    callers.push(caller);
    caller.send(performance.now());
    // One after the other: a burst of connects would measure the listen queue.
    await delay(2);
  }
  await within(openMs, allOpen, counts);
  await whileOpen?.();
  for (const caller of callers) caller.close();
}

function carryOut(order: Order): Promise<Measurement> {
  switch (order.kind) {
    case 'closed':
      return runClosed(order);
    case 'paced':
      return runPaced(order);
    case 'streams':
      return runStreams(order);
    case 'hold':
      return runHold(order);
    default:
      return order satisfies never;
  }
}

process.on('message', (message: unknown) => {
  if (!isOrder(message)) return;
  void carryOut(message).then((measurement) => process.send?.(measurement));
});
process.on('disconnect', () => process.exit(0));
