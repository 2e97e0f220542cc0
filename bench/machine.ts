/** The machine that was measured on, and what about it would spoil a measurement. */
import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release } from 'node:os';
import { machineCpu } from './process-cpu.ts';

/** Shares of one core over which a measurement on that machine is doubtful. */
export const busyLimit = 0.1;
export const stealLimit = 0.02;

export interface Machine {
  readonly description: string;
  readonly commit: string;
  /** Why the figures may not be trusted, found before the first measurement. */
  readonly warnings: readonly string[];
}

/** @throws Error where the bench cannot work at all. */
export async function inspectMachine(): Promise<Machine> {
  if (process.platform !== 'linux') throw new Error('the bench reads /proc: it needs Linux');
  if (spawnSync('taskset', ['--version']).status !== 0) {
    throw new Error('the bench pins processes to cores: it needs taskset (util-linux)');
  }
  const cores = availableParallelism();
  const load = loadavg()[0] ?? 0;
  const quiet = await watchCpu(1000);
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  return {
    description: `${model}, ${cores} cores, Linux ${release()}, Node ${process.versions.node}`,
    commit: commitOf(),
    warnings: [
      ...(cores < 2 ? ['one core only: load and gateway compete for it'] : []),
      ...(load > 0.5 ? [`the load average was ${load.toFixed(2)} at the start`] : []),
      ...(quiet.busy > busyLimit ? [`${percent(quiet.busy)} of a core was busy at the start`] : []),
      ...(quiet.steal > stealLimit ? [`${percent(quiet.steal)} of a core was stolen`] : []),
    ],
  };
}

async function watchCpu(ms: number): Promise<{ readonly busy: number; readonly steal: number }> {
  const from = machineCpu();
  await new Promise((resolve) => setTimeout(resolve, ms));
  const to = machineCpu();
  return {
    busy: (to.busyUs - from.busyUs) / (ms * 1000),
    steal: (to.stealUs - from.stealUs) / (ms * 1000),
  };
}

function commitOf(): string {
  const git = (...args: string[]): string =>
    spawnSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).stdout?.trim() ?? '';
  const commit = git('rev-parse', '--short', 'HEAD');
  if (commit === '') return 'not a git checkout';
  return git('status', '--porcelain', '--', '../src') === '' ? commit : `${commit} with changes`;
}

/** Keeps the bench's own process off the core of what is measured. */
export function pinMyself(core: number): void {
  spawnSync('taskset', ['-a', '-cp', String(core), String(process.pid)]);
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
