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

/** Pairs of windows a round: each window is a quarter as long as a usual one. */
const pairs = 20;
const betweenMs = 200;
/** The speed of a shared host changes within seconds: pairs with the smallest and the largest differences say that, and are left out. */
const pairsLeftOut = 5;

/** What one key cost in a window, and the other in the next. */
interface Pair {
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

/** A window with each key in turn, the first of a pair changing; the windows of a key are one measurement. */
async function measureBeside(
  rig: Rig,
  workload: AddedWorkload,
  subject: Subject & { readonly beside: { readonly key: string } },
  options: MeasureOptions,
): Promise<Pair> {
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
  const measured: Pair[] = [];
  const inTurn = (each: Subject): Promise<Measurement> =>
    window(each, betweenMs, durations.measureMs / 4);
  try {
    for (const each of [subject, plainSubject]) await window(each, durations.longWarmMs, betweenMs);
    for (let i = 0; i < pairs; i += 2) {
      const own = await inTurn(subject);
      measured.push({ own, plain: await inTurn(plainSubject) });
      const plain = await inTurn(plainSubject);
      measured.push({ own: await inTurn(subject), plain });
    }
  } finally {
    await running.stop();
  }
  const middle = middlePairs(measured);
  return {
    own: together(middle.map(({ own }) => own)),
    plain: together(middle.map(({ plain }) => plain)),
  };
}

/** All but those of the smallest and the largest differences; all of them where a call failed. */
export function middlePairs(measured: readonly Pair[]): readonly Pair[] {
  if (measured.some(({ own, plain }) => own.failures + plain.failures > 0)) return measured;
  const costOf = ({ subjectUs, requests }: Measurement): number => subjectUs / requests;
  const difference = ({ own, plain }: Pair): number => costOf(own) - costOf(plain);
  return measured
    .toSorted((a, b) => difference(a) - difference(b))
    .slice(pairsLeftOut, measured.length - pairsLeftOut);
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
