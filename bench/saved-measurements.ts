/**
 * The figures of every round, beside the report that is made of them: a reader who doubts a median can look at what
 * it is the median of, and a run of a few workloads takes the place of those in the report only.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import type { EngineFigures } from './engine.ts';
import type { Sample } from './measure.ts';
import { isMeasurement } from './protocol.ts';
import type { StartTimes } from './startup.ts';

const named = z.object({ name: z.string(), version: z.string() });
const leftOut = z.object({ name: z.string(), why: z.string() });

const run = z.object({
  command: z.string(),
  date: z.string(),
  machine: z.string(),
  commit: z.string(),
  method: z.string(),
  /** What was wrong with the machine at the start. */
  warnings: z.array(z.string()),
  subjects: z.array(named),
  missing: z.array(leftOut),
  /** Ids of workloads, `start`, `engine`: those that no later run measured again. */
  measured: z.array(z.string()),
});

/** One call of the bench. */
export type Run = Readonly<z.infer<typeof run>>;
export type LeftOut = z.infer<typeof leftOut>;

export interface ModelStart {
  readonly model: string;
  readonly times: StartTimes;
}

export interface Measurements {
  /** The latest first. */
  readonly runs: readonly Run[];
  readonly samples: readonly Sample[];
  readonly starts: readonly ModelStart[];
  readonly engines: readonly EngineFigures[];
}

const nothing: Measurements = { runs: [], samples: [], starts: [], engines: [] };

function isSample(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'measurement' in value
    ? isMeasurement(value.measurement)
    : false;
}

/** Written by this file only: that figures have the shape of figures is check enough. */
const kept = z.object({
  runs: z.array(run),
  samples: z.array(z.custom<Sample>(isSample)),
  starts: z.array(z.custom<ModelStart>()),
  engines: z.array(z.custom<EngineFigures>()),
});

/** Nothing where there is no file. @throws Error for a file that holds something else */
export function readMeasurements(path: string): Measurements {
  if (!existsSync(path)) return nothing;
  const read = kept.safeParse(JSON.parse(readFileSync(path, 'utf8')));
  if (!read.success) throw new Error(`${path}: ${z.prettifyError(read.error)}`);
  return read.data;
}

/** A line for each run and sample, so that a change of one is a change of one line. */
export function writeMeasurements(path: string, measurements: Measurements): void {
  const lists = Object.entries(measurements).map(([name, list]: [string, readonly unknown[]]) => {
    const lines = list.map((each) => JSON.stringify(each, shortNumbers));
    return `${JSON.stringify(name)}: [\n${lines.join(',\n')}\n]`;
  });
  writeFileSync(path, `{\n${lists.join(',\n')}\n}\n`);
}

function shortNumbers(_name: string, value: unknown): unknown {
  return typeof value === 'number' ? Math.round(value * 1000) / 1000 : value;
}

/** What a run measured takes the place of what is known of the same; everything else stays. */
export function merge(
  old: Measurements,
  run: Run,
  fresh: Omit<Measurements, 'runs'>,
): Measurements {
  const again = new Set(run.measured);
  const older = old.runs.map((each) => ({
    ...each,
    measured: each.measured.filter((id) => !again.has(id)),
  }));
  return {
    runs: [run, ...older.filter(({ measured }) => measured.length > 0)],
    samples: [...old.samples.filter(({ workload }) => !again.has(workload)), ...fresh.samples],
    starts: again.has('start') ? fresh.starts : old.starts,
    engines: again.has('engine') ? fresh.engines : old.engines,
  };
}

/** A line for each that no run could measure. */
export function leftOutOf({ runs, samples }: Measurements): string[] {
  const measured = new Set(samples.map(({ subject }) => subject));
  const lines = runs
    .flatMap(({ missing }) => missing)
    .filter(({ name }) => !measured.has(name))
    .map(({ name, why }) => `${name} (${why})`);
  return [...new Set(lines)];
}
