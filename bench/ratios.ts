/**
 * The guard: ratios to nginx as they were committed, and whether a new run costs more. Ratios, since
 * microseconds are those of one machine on one day.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cpuPerUnit, type Results } from './analysis.ts';
import type { Workload } from './workloads.ts';

/** By workload: CPU of the gateway by that of nginx, the median over the rounds. */
export type Ratios = Readonly<Record<string, number>>;

/** The tolerated growth of a ratio. A smaller growth cannot be distinguished from noise. */
export const mayGrowBy = 0.15;

const file = join(import.meta.dirname, 'ratios.json');

export function ratiosOf(results: Results, workloads: readonly Workload[]): Ratios {
  const ratios: Record<string, number> = {};
  for (const workload of workloads) {
    if (workload.kind !== 'cpu') continue;
    const own = { workload: workload.id, subject: 'gateway' };
    const floor = { workload: workload.floor, subject: 'nginx' };
    const ratio = results.paired(own, floor, cpuPerUnit(workload), (a, b) => a / b);
    if (ratio !== undefined) ratios[workload.id] = Math.round(ratio.median * 100) / 100;
  }
  return ratios;
}

/** What was measured takes the place of what is known of the same workloads. */
export function keepRatios(measured: Ratios, path = file): void {
  writeFileSync(
    path,
    `${JSON.stringify({ ...committedRatios(path), ...measured }, undefined, 2)}\n`,
  );
}

/** Empty where none were committed. @throws Error for a file that holds something else */
export function committedRatios(path = file): Ratios {
  if (!existsSync(path)) return {};
  const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
  if (typeof value !== 'object' || value === null) throw new Error(`${path} holds no ratios.`);
  const ratios: Record<string, number> = {};
  for (const [id, ratio] of Object.entries(value)) {
    if (typeof ratio !== 'number') throw new Error(`${path}: the ratio of ${id} is no number.`);
    ratios[id] = ratio;
  }
  return ratios;
}

export interface Verdict {
  readonly lines: readonly string[];
  readonly failed: boolean;
}

/** A line for each workload of both; failed where one grew too much, or where nothing can be compared. */
export function judge(committed: Ratios, measured: Ratios): Verdict {
  const lines: string[] = [];
  let failed = false;
  for (const [id, now] of Object.entries(measured)) {
    const before = committed[id];
    if (before === undefined) continue;
    const higher = now > before * (1 + mayGrowBy);
    failed ||= higher;
    const change = `${now >= before ? '+' : ''}${((100 * (now - before)) / before).toFixed(0)} %`;
    lines.push(
      `${higher ? 'HIGHER' : 'ok    '} ${id}: ${now.toFixed(2)} × nginx, committed ${before.toFixed(2)} × (${change})`,
    );
  }
  if (lines.length > 0) return { lines, failed };
  return { lines: ['nothing to compare: no workload has a committed ratio'], failed: true };
}
