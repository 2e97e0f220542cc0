/** What one round trip to Redis costs a Node process on this machine: the allowance of `limits-shared`. */
import { join } from 'node:path';
import { startHelper, subjectCore } from './child.ts';
import type { MeasureOptions } from './measure.ts';
import type { Measurement } from './protocol.ts';
import { calmRate } from './workloads.ts';

export interface RoundTripOrder {
  readonly perSecond: number;
  readonly warmMs: number;
  readonly measureMs: number;
}

export interface RoundTrips {
  readonly count: number;
  /** Of the client's process, without what the clock takes. */
  readonly cpuUs: number;
}

/** The subject's name in the results. */
export const roundTripName = 'one Redis round trip';

export function isRoundTripOrder(value: unknown): value is RoundTripOrder {
  return typeof value === 'object' && value !== null && 'perSecond' in value;
}

function isRoundTrips(value: unknown): value is RoundTrips {
  return typeof value === 'object' && value !== null && 'cpuUs' in value;
}

/** A fresh process on the subject's core, at the rate of the calls. */
export async function measureRoundTrip(
  url: string,
  { durations }: MeasureOptions,
): Promise<Measurement> {
  const caller = startHelper(join(import.meta.dirname, 'redis-caller.ts'), {
    core: subjectCore,
    args: [url],
  });
  const { longWarmMs: warmMs, measureMs } = durations;
  try {
    const trips = await caller.ask({ perSecond: calmRate, warmMs, measureMs });
    const { count, cpuUs } = isRoundTrips(trips) ? trips : { count: 0, cpuUs: 0 };
    const nothing = { chunks: 0, reads: 0, loadUs: 0, mockUs: 0, foreignUs: 0, stealUs: 0 };
    const failures = count === 0 ? 1 : 0;
    return {
      ...nothing,
      wallMs: measureMs,
      requests: count,
      subjectUs: cpuUs,
      failures,
      reasons: [],
    };
  } finally {
    await caller.stop();
  }
}
