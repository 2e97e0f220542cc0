/** Carries out the rounds: every workload, each time on a fresh process of each subject, in turn. */
import { join } from 'node:path';
import { startHelper, type Helper } from './child.ts';
import { isMeasurement, isPort, type Measurement, type MockPlan, type Order } from './protocol.ts';
import { direct, type RunningSubject, type Subject } from './subject.ts';
import type { Workload } from './workloads.ts';

export interface Durations {
  /** Warm-up for native code, and for what compiles as it runs. */
  readonly warmMs: number;
  readonly longWarmMs: number;
  readonly measureMs: number;
  /** Before memory is read. */
  readonly settleMs: number;
}

export interface Sample {
  readonly round: number;
  readonly workload: string;
  readonly subject: string;
  /** In an `added` workload: which of the parties this is. */
  readonly role?: 'limited' | 'plain' | 'allowance';
  readonly measurement: Measurement;
}

export interface MeasureOptions {
  readonly durations: Durations;
  readonly chunksPerSecond: number;
}

/** The load generator and the mock upstream of one round, on the load core. */
export interface Rig {
  readonly load: Helper;
  readonly mock: Helper;
  readonly mockPort: number;
  stop(): Promise<void>;
}

export async function startRig(): Promise<Rig> {
  const mock = startHelper(join(import.meta.dirname, 'mock.ts'));
  const message = await mock.next();
  if (!isPort(message)) throw new Error('the mock upstream did not say its port');
  const load = startHelper(join(import.meta.dirname, 'load.ts'));
  return {
    load,
    mock,
    mockPort: message.port,
    stop: async () => {
      await Promise.all([load.stop(), mock.stop()]);
    },
  };
}

/** Who takes part in a workload, in the order of measurement. */
export function subjectsOf(workload: Workload, subjects: readonly Subject[]): readonly Subject[] {
  if (workload.kind === 'added') {
    return subjects.filter(({ only }) => only === workload.id);
  }
  const able = subjects.filter(
    ({ translates, only, models, isPeer = false }) =>
      only === undefined &&
      (workload.withPeers || !isPeer) &&
      (workload.client === workload.upstream || translates) &&
      models[workload.upstream] !== undefined,
  );
  return workload.alsoDirect ? [direct, ...able] : able;
}

/** One measurement of one subject. A subject that does not start is a failed measurement. */
export async function measureOne(
  rig: Rig,
  workload: Workload,
  subject: Subject,
  options: MeasureOptions,
): Promise<Measurement> {
  await rig.mock.ask(planOf(workload, options.chunksPerSecond));
  let running: RunningSubject;
  try {
    running = await subject.start(rig.mockPort);
  } catch (error) {
    return failedMeasurement(error);
  }
  try {
    const measurement = await rig.load.ask(orderOf(rig, workload, subject, running, options));
    return isMeasurement(measurement) ? measurement : failedMeasurement('no measurement came back');
  } finally {
    await running.stop();
  }
}

function planOf(workload: Workload, chunksPerSecond: number): MockPlan {
  // Seldom a chunk: 5,000 streams are to be held open, not to be fed by what shares its core with the load.
  if (workload.kind === 'memory') {
    return { kind: 'stream', chunks: 100_000, chunksPerSecond: 0.25 };
  }
  if (workload.kind === 'delay') {
    const { body, chunksPerSecond } = workload;
    return { kind: 'stream', chunks: body.chunks, chunksPerSecond, stamped: true };
  }
  if (workload.body.kind === 'unary') return { kind: 'unary' };
  const { chunks } = workload.body;
  const perSecond = workload.kind === 'cpu' ? workload.togetherPerSecond : undefined;
  return perSecond === undefined
    ? { kind: 'stream', chunks, chunksPerSecond }
    : { kind: 'stream', chunks, chunksPerSecond: perSecond, together: true };
}

export function orderOf(
  rig: Rig,
  workload: Workload,
  subject: Subject,
  running: RunningSubject,
  { durations }: MeasureOptions,
): Order {
  const target = {
    port: running.port,
    dialect: workload.client,
    model: subject.models[workload.upstream] ?? '',
    key: subject.key,
    mockPid: rig.mock.pid,
    ...(running.pid === undefined ? {} : { pid: running.pid }),
    ...(running.headers === undefined ? {} : { headers: running.headers }),
    ...(subject.path === undefined ? {} : { path: subject.path }),
  };
  // The direct way is warm all the same: its share of a delay is to be taken off, not added.
  const cold = workload.kind === 'latency' && workload.cold === true && subject !== direct;
  const warmMs = subject.warmUp === 'long' ? durations.longWarmMs : durations.warmMs;
  const times = { warmMs: cold ? 0 : warmMs, measureMs: durations.measureMs };
  switch (workload.kind) {
    case 'cpu':
      if (workload.perSecond !== undefined) {
        const { body, perSecond } = workload;
        return { kind: 'paced', target, body, perSecond, rests: false, ...times };
      }
      return {
        kind: 'closed',
        target,
        body: workload.body,
        connections: workload.connections,
        ...times,
      };
    case 'added':
    case 'latency':
      return {
        kind: 'paced',
        target,
        body: workload.body,
        perSecond: workload.perSecond,
        rests: workload.kind === 'added' && workload.sharesCore,
        ...times,
      };
    case 'delay': {
      const { body, perSecond } = workload;
      return { kind: 'streams', target, chunks: body.chunks, perSecond, ...times };
    }
    case 'memory':
      return { kind: 'hold', target, streams: workload.streams, settleMs: durations.settleMs };
    default:
      return workload satisfies never;
  }
}

export function failedMeasurement(reason: unknown): Measurement {
  return {
    wallMs: 0,
    requests: 0,
    chunks: 0,
    reads: 0,
    subjectUs: 0,
    loadUs: 0,
    mockUs: 0,
    foreignUs: 0,
    stealUs: 0,
    failures: 1,
    reasons: [String(reason)],
  };
}
