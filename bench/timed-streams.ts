/**
 * How long streams take on their way: from the scheduled start of a call to the first byte of its answer,
 * and from the due time of a chunk to its arrival. Streams begin at a fixed rate whatever becomes
 * of those before, chunks are due at a fixed pace: whatever stalls delays all that waits behind it.
 */
import { Caller, prepareRequest, type CallerEvents } from './caller.ts';
import { lateness } from './percentile.ts';
import type { Measurement, Order } from './protocol.ts';
import { schedule } from './schedule.ts';
import { monotonicUs, StampReader } from './stamps.ts';
import { delay, drainMs, failuresOf, measure, RequestCounts, within } from './window.ts';

type StreamsOrder = Extract<Order, { readonly kind: 'streams' }>;

/** A stamp is lost where its digits are cut by another framing; more than this share is a fault. */
const mayLose = 0.01;

/** Times of the answers that were due within the window. */
class Times {
  readonly first: number[] = [];
  readonly chunk: number[] = [];
  private readonly open = new Map<Caller, StampReader>();
  private readonly from: number;

  constructor(from: number) {
    this.from = from;
  }

  read(caller: Caller, bytes: Buffer): void {
    if (caller.dueAt < this.from) return;
    const now = performance.now();
    let stamps = this.open.get(caller);
    if (stamps === undefined) {
      stamps = new StampReader();
      this.open.set(caller, stamps);
      this.first.push(now - caller.dueAt);
    }
    const nowUs = monotonicUs(now);
    for (const dueUs of stamps.push(bytes)) this.chunk.push((nowUs - dueUs) / 1000);
  }

  end(caller: Caller): void {
    this.open.delete(caller);
  }
}

/** The warm-up is the same load. */
export async function runStreams(order: StreamsOrder): Promise<Measurement> {
  const counts = new RequestCounts();
  const { warmMs, measureMs, perSecond, chunks } = order;
  const intervalMs = 1000 / perSecond;
  const warming = Math.ceil((perSecond * warmMs) / 1000);
  const measuring = Math.ceil((perSecond * measureMs) / 1000);
  const start = performance.now() + 10;
  const from = start + warming * intervalMs;
  const times = new Times(from);
  const free: Caller[] = [];
  let finished = 0;
  const { promise: idle, resolve } = Promise.withResolvers<void>();
  const request = prepareRequest(order.target, { kind: 'stream', chunks });
  const events: CallerEvents = {
    bytes: (caller, bytes) => times.read(caller, bytes),
    chunks: (_, count) => {
      counts.chunks += count;
      counts.reads += 1;
    },
    done: (caller, fault) => {
      counts.count(fault);
      times.end(caller);
      free.push(caller);
      finished += 1;
      if (finished === warming + measuring) resolve();
    },
  };
  const measured = delay(from - performance.now()).then(() => measure(order, counts, measureMs));
  await schedule(
    warming + measuring,
    (i) => start + i * intervalMs,
    (dueAt) => (free.pop() ?? new Caller(request, events)).send(dueAt),
  );
  const window = await measured;
  await within(drainMs, idle, counts);
  for (const caller of free) caller.close();
  const owed = measuring * chunks;
  if (times.chunk.length < owed * (1 - mayLose)) {
    counts.count(`the times of only ${times.chunk.length} of ${owed} chunks could be read`);
  }
  const first = lateness(times.first);
  const chunk = lateness(times.chunk);
  return {
    ...window,
    ...failuresOf(counts),
    p50Ms: first.p50,
    p99Ms: first.p99,
    chunkP50Ms: chunk.p50,
    chunkP99Ms: chunk.p99,
  };
}
