/** What can be measured: something that is between the load generator and the mock upstream. */
import type { MeasureOptions } from './measure.ts';
import { perDialect, type CloudUpstream, type Dialect, type Measurement } from './protocol.ts';

export interface RunningSubject {
  readonly port: number;
  /** Of the admin plane, where there is one. */
  readonly adminPort?: number;
  /** Absent for the direct way: no process is between. */
  readonly pid?: number;
  /** Headers that the subject needs with each call. */
  readonly headers?: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

export interface Subject {
  readonly name: string;
  readonly version: string;
  /** The key it wants, and the name of the mock's model behind an upstream of that dialect. */
  readonly key: string;
  readonly models: Readonly<Record<Dialect, string> & Partial<Record<CloudUpstream, string>>>;
  /** Where it takes calls, if not at the path of the dialect. */
  readonly path?: string;
  /** Another project's gateway: in fewer workloads, and its failures are its own. */
  readonly isPeer?: true;
  /** The `added` workload that it is measured in; absent = all others. */
  readonly only?: string;
  /** What it is compared with in an `added` workload: another key of the same process. */
  readonly beside?: { readonly name: string; readonly key: string };
  /** What it may cost besides the budget, measured in the same round. */
  readonly allowance?: {
    readonly name: string;
    measure(options: MeasureOptions): Promise<Measurement>;
  };
  /** True when it answers clients of one dialect from an upstream of the other. */
  readonly translates: boolean;
  /** `long` for what is compiled while it runs, `short` for native code. */
  readonly warmUp: 'short' | 'long';
  /** A fresh process, pinned to the subject core. */
  start(mockPort: number): Promise<RunningSubject>;
}

/**
 * The load goes straight to the mock: the capacity of both, and the latency that is not the subject's.
 * It comes first in a workload and warms the two for those that follow, hence the long warm-up.
 */
export const direct: Subject = {
  name: 'direct',
  version: '',
  key: 'bench',
  models: perDialect(() => 'm'),
  translates: false,
  warmUp: 'long',
  start: (mockPort) => Promise.resolve({ port: mockPort, stop: () => Promise.resolve() }),
};
