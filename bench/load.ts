/**
 * The load generator: a child process that carries out one order of its parent at a time and answers
 * with the measurement. It reads the CPU time of the measured process at both ends of the window
 * itself, so that the window of the counters and that of the clock are the same.
 */
import { Caller, prepareRequest, type CallerEvents } from './caller.ts';
import { cpuUs, machineCpu, processTree, residentKb, type MachineCpu } from './process-cpu.ts';
import { isOrder, type Measurement, type Order } from './protocol.ts';

type ClosedOrder = Extract<Order, { readonly kind: 'closed' }>;
type PacedOrder = Extract<Order, { readonly kind: 'paced' }>;
type HoldOrder = Extract<Order, { readonly kind: 'hold' }>;

/** How long answers may still take after the window before they count as failures. */
const drainMs = 10_000;

/** Counts of one order. */
class Tally {
  requests = 0;
  chunks = 0;
  reads = 0;
  failures = 0;
  readonly reasons: string[] = [];

  count(fault: string | undefined): void {
    this.requests += 1;
    if (fault === undefined) return;
    this.failures += 1;
    if (this.reasons.length < 3 && !this.reasons.includes(fault)) this.reasons.push(fault);
  }
}

/** What the counters of all parties stood at. */
interface Snapshot {
  readonly at: number;
  readonly requests: number;
  readonly chunks: number;
  readonly reads: number;
  readonly subjectUs: number;
  readonly loadUs: number;
  readonly mockUs: number;
  readonly machine: MachineCpu;
}

/** Callers that send again at once; the rate is what the target can take. */
async function runClosed(order: ClosedOrder): Promise<Measurement> {
  const tally = new Tally();
  const { idle, stop } = startClosed(order, tally);
  await delay(order.warmMs);
  const window = await measure(order, tally, order.measureMs);
  stop();
  await within(drainMs, idle, tally);
  return { ...window, ...failuresOf(tally) };
}

function startClosed(
  order: Pick<ClosedOrder, 'target' | 'body' | 'connections'>,
  tally: Tally,
): { readonly idle: Promise<void>; stop(): void } {
  const request = prepareRequest(order.target, order.body);
  let stopping = false;
  let active = order.connections;
  const { promise: idle, resolve } = Promise.withResolvers<void>();
  const events: CallerEvents = {
    done: (caller, fault) => {
      tally.count(fault);
      // A target that refuses everything would make this a busy loop.
      if (!stopping && tally.failures < 1000) return caller.send(performance.now());
      caller.close();
      active -= 1;
      if (active === 0) resolve();
    },
    chunks: (_, count) => {
      tally.chunks += count;
      tally.reads += 1;
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

/** A constant rate. The warm-up is a closed loop: it makes the target hot sooner than the rate would. */
async function runPaced(order: PacedOrder): Promise<Measurement> {
  const tally = new Tally();
  const warm = startClosed({ ...order, connections: 8 }, tally);
  await delay(order.warmMs);
  warm.stop();
  await within(drainMs, warm.idle, tally);

  const intervalMs = 1000 / order.perSecond;
  const settle = Math.ceil(order.perSecond / 2);
  const total = settle + Math.ceil((order.perSecond * order.measureMs) / 1000);
  const latencies: number[] = [];
  const free: Caller[] = [];
  let finished = 0;
  const { promise: idle, resolve } = Promise.withResolvers<void>();
  const request = prepareRequest(order.target, order.body);
  const events: CallerEvents = {
    done: (caller, fault) => {
      tally.count(fault);
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
    measure(order, tally, order.measureMs),
  );
  await schedule(
    total,
    (i) => start + i * intervalMs,
    (dueAt) => {
      (free.pop() ?? new Caller(request, events)).send(dueAt);
    },
  );
  const window = await measured;
  await within(drainMs, idle, tally);
  for (const caller of free) caller.close();
  latencies.sort((a, b) => a - b);
  return {
    ...window,
    ...failuresOf(tally),
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
  };
}

/**
 * Calls `act` at its times. Timers of Node are late by up to a millisecond, more than what is to be
 * measured: the last stretch is polled.
 */
function schedule(
  total: number,
  dueAt: (index: number) => number,
  act: (dueAt: number) => void,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let next = 0;
  const step = (): void => {
    while (next < total && dueAt(next) <= performance.now()) {
      act(dueAt(next));
      next += 1;
    }
    if (next === total) return resolve();
    const left = dueAt(next) - performance.now();
    if (left > 2) setTimeout(step, Math.floor(left - 1));
    else setImmediate(step);
  };
  step();
  return promise;
}

/** Opens streams, one every 2 ms, and reads memory before the first and while all are open. */
async function runHold(order: HoldOrder): Promise<Measurement> {
  const tally = new Tally();
  const { target, streams, settleMs } = order;
  // A few calls first: what the first stream loads once is not a cost of each stream.
  await holdStreams(order, 20, tally);
  await delay(settleMs);
  const pids = target.pid === undefined ? [] : processTree(target.pid);
  const idleKb = residentKb(pids);
  const opened = snapshot(order, pids, tally);
  let openKb = idleKb;
  await holdStreams(order, streams, tally, async () => {
    await delay(settleMs);
    openKb = residentKb(pids);
  });
  return {
    ...difference(opened, snapshot(order, pids, tally)),
    ...failuresOf(tally),
    idleKb,
    kbPerStream: (openKb - idleKb) / streams,
  };
}

async function holdStreams(
  order: HoldOrder,
  count: number,
  tally: Tally,
  whileOpen?: () => Promise<void>,
): Promise<void> {
  const started = new Set<Caller>();
  const callers: Caller[] = [];
  const { promise: allOpen, resolve } = Promise.withResolvers<void>();
  const request = prepareRequest(order.target, { kind: 'stream', chunks: 0 });
  const events: CallerEvents = {
    done: (_, fault) => tally.count(fault ?? 'a held stream ended'),
    chunks: (caller) => {
      if (started.has(caller)) return;
      started.add(caller);
      tally.requests += 1;
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
  await within(drainMs, allOpen, tally);
  await whileOpen?.();
  for (const caller of callers) caller.close();
}

async function measure(order: Order, tally: Tally, measureMs: number): Promise<Window> {
  const pids = order.target.pid === undefined ? [] : processTree(order.target.pid);
  const from = snapshot(order, pids, tally);
  await delay(measureMs);
  return difference(from, snapshot(order, pids, tally));
}

function snapshot(order: Order, pids: readonly number[], tally: Tally): Snapshot {
  return {
    at: performance.now(),
    requests: tally.requests,
    chunks: tally.chunks,
    reads: tally.reads,
    subjectUs: cpuUs(pids),
    loadUs: cpuUs([process.pid]),
    mockUs: cpuUs([order.target.mockPid]),
    machine: machineCpu(),
  };
}

type Window = Omit<Measurement, 'failures' | 'reasons'>;

function difference(from: Snapshot, to: Snapshot): Window {
  const subjectUs = to.subjectUs - from.subjectUs;
  const loadUs = to.loadUs - from.loadUs;
  const mockUs = to.mockUs - from.mockUs;
  const busyUs = to.machine.busyUs - from.machine.busyUs;
  return {
    wallMs: to.at - from.at,
    requests: to.requests - from.requests,
    chunks: to.chunks - from.chunks,
    reads: to.reads - from.reads,
    subjectUs,
    loadUs,
    mockUs,
    foreignUs: Math.max(0, busyUs - subjectUs - loadUs - mockUs),
    stealUs: to.machine.stealUs - from.machine.stealUs,
  };
}

function failuresOf(tally: Tally): Pick<Measurement, 'failures' | 'reasons'> {
  return { failures: tally.failures, reasons: tally.reasons };
}

/** Waits for the promise; one more failure when it takes longer. */
async function within(limitMs: number, promise: Promise<void>, tally: Tally): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(resolve, limitMs, 'late');
  const outcome = await Promise.race([promise, late]);
  clearTimeout(timer);
  if (outcome === 'late') tally.count(`answers were still missing after ${limitMs / 1000} s`);
}

function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function delay(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  return promise;
}

function carryOut(order: Order): Promise<Measurement> {
  switch (order.kind) {
    case 'closed':
      return runClosed(order);
    case 'paced':
      return runPaced(order);
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
