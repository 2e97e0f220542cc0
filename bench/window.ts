/** What an order of the load generator counts: answers, faults, and the CPU time of all parties. */
import { cpuUs, machineCpu, processTree, type MachineCpu } from './process-cpu.ts';
import type { Measurement, Order } from './protocol.ts';

/** How long answers may still take after the window before they count as failures. */
export const drainMs = 10_000;

/** Counts of one order. */
export class RequestCounts {
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

/** Watches the parties for `measureMs`, whatever else happens in that time. */
export async function measure(
  order: Order,
  counts: RequestCounts,
  measureMs: number,
): Promise<Window> {
  const pids = order.target.pid === undefined ? [] : processTree(order.target.pid);
  const from = snapshot(order, pids, counts);
  await delay(measureMs);
  return difference(from, snapshot(order, pids, counts));
}

/** Where all counters are. */
export function snapshot(order: Order, pids: readonly number[], counts: RequestCounts): Snapshot {
  return {
    at: performance.now(),
    requests: counts.requests,
    chunks: counts.chunks,
    reads: counts.reads,
    subjectUs: cpuUs(pids),
    loadUs: cpuUs([process.pid]),
    mockUs: cpuUs([order.target.mockPid]),
    machine: machineCpu(),
  };
}

/** What a window measures, without faults. */
export type Window = Omit<Measurement, 'failures' | 'reasons'>;

/** What happened between two snapshots. */
export function difference(from: Snapshot, to: Snapshot): Window {
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

/** The faults of the whole order, warm-up included. */
export function failuresOf(counts: RequestCounts): Pick<Measurement, 'failures' | 'reasons'> {
  return { failures: counts.failures, reasons: counts.reasons };
}

/** Waits for the promise; one more failure when it takes longer. */
export async function within(
  limitMs: number,
  promise: Promise<void>,
  counts: RequestCounts,
): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(resolve, limitMs, 'late');
  const outcome = await Promise.race([promise, late]);
  clearTimeout(timer);
  if (outcome === 'late') counts.count(`answers were still missing after ${limitMs / 1000} s`);
}

/** Resolves after that time. */
export function delay(ms: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  setTimeout(resolve, ms);
  return promise;
}
