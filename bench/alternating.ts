/**
 * What one key, or one kind of request, costs more than another in one and the same process, in turns. Two processes of the same
 * program differ by more than that: what is compiled when, and where it lies, changes a request's CPU
 * time by tens of microseconds.
 */
import {
  failedMeasurement,
  measureOne,
  orderOf,
  type MeasureOptions,
  type Rig,
  type Sample,
} from './measure.ts';
import { isMeasurement, type Measurement } from './protocol.ts';
import type { RunningSubject, Subject } from './subject.ts';
import type { Workload } from './workloads.ts';

type AddedWorkload = Extract<Workload, { readonly kind: 'added' }>;

/** Pairs of windows a round: each is half as long as a usual one. */
const pairs = 5;
const betweenMs = 200;

interface Beside {
  readonly own: Measurement;
  readonly plain: Measurement;
}

/** The measurements of one subject and workload in one round. */
export async function measureSubject(
  rig: Rig,
  workload: Workload,
  subject: Subject,
  options: MeasureOptions,
): Promise<readonly Omit<Sample, 'round' | 'workload'>[]> {
  const { beside, allowance } = subject;
  if (workload.kind !== 'added' || beside === undefined) {
    const measurement = await measureOne(rig, workload, subject, options);
    return [{ subject: subject.name, measurement }];
  }
  const { own, plain } = await measureBeside(rig, workload, { ...subject, beside }, options);
  const samples: Omit<Sample, 'round' | 'workload'>[] = [
    { subject: subject.name, role: 'limited', measurement: own },
    { subject: beside.name, role: 'plain', measurement: plain },
  ];
  if (allowance !== undefined) {
    const measurement = await allowance.measure(options);
    samples.push({ subject: allowance.name, role: 'allowance', measurement });
  }
  return samples;
}

/** A window with each key in turn, the first of a pair changing; all windows of a key are one measurement. */
async function measureBeside(
  rig: Rig,
  workload: AddedWorkload,
  subject: Subject & { readonly beside: { readonly key: string } },
  options: MeasureOptions,
): Promise<Beside> {
  await rig.mock.ask({ kind: 'unary' });
  let running: RunningSubject;
  try {
    running = await subject.start(rig.mockPort);
  } catch (error) {
    return { own: failedMeasurement(error), plain: failedMeasurement(error) };
  }
  const { durations } = options;
  const plainSubject = { ...subject, key: subject.beside.key };
  const window = async (of: Subject, warmMs: number, measureMs: number): Promise<Measurement> => {
    const times = { ...durations, warmMs, longWarmMs: warmMs, measureMs };
    const body = of === subject ? workload.body : (workload.plainBody ?? workload.body);
    const asked = { ...workload, body };
    const order = orderOf(rig, asked, of, running, { ...options, durations: times });
    const measurement = await rig.load.ask(order);
    return isMeasurement(measurement) ? measurement : failedMeasurement('no measurement came back');
  };
  const own: Measurement[] = [];
  const plain: Measurement[] = [];
  try {
    for (const each of [subject, plainSubject]) await window(each, durations.longWarmMs, betweenMs);
    for (let pair = 0; pair < pairs; pair += 1) {
      const order = [subject, plainSubject];
      if (pair % 2 === 1) order.reverse();
      for (const each of order) {
        const measurement = await window(each, betweenMs, durations.measureMs / 2);
        (each === subject ? own : plain).push(measurement);
      }
    }
  } finally {
    await running.stop();
  }
  return { own: together(own), plain: together(plain) };
}

/** Several windows as one. */
function together(windows: readonly Measurement[]): Measurement {
  const sum = (of: (each: Measurement) => number): number =>
    windows.reduce((total, each) => total + of(each), 0);
  return {
    wallMs: sum((each) => each.wallMs),
    requests: sum((each) => each.requests),
    chunks: sum((each) => each.chunks),
    reads: sum((each) => each.reads),
    subjectUs: sum((each) => each.subjectUs),
    loadUs: sum((each) => each.loadUs),
    mockUs: sum((each) => each.mockUs),
    foreignUs: sum((each) => each.foreignUs),
    stealUs: sum((each) => each.stealUs),
    failures: sum((each) => each.failures),
    reasons: windows.flatMap((each) => each.reasons).slice(0, 3),
  };
}
