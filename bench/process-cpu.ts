/**
 * What the operating system says a process used: CPU time and resident memory, from `/proc` (Linux).
 * `utime` and `stime` of `/proc/PID/stat` count all threads of the process.
 */
import { readFileSync, readdirSync } from 'node:fs';

/** One tick of `utime`/`stime` in µs: USER_HZ is 100 on every Linux that Node runs on. */
const tickUs = 10_000;

/** The process and its descendants, as they are now. */
export function processTree(pid: number): number[] {
  const pids = [pid];
  for (const parent of pids) {
    for (const thread of list(`/proc/${parent}/task`)) {
      const children = read(`/proc/${parent}/task/${thread}/children`).split(' ');
      for (const child of children) if (child.trim() !== '') pids.push(Number(child));
    }
  }
  return pids;
}

/** User plus system time of the processes since their start, in µs. A process that is gone counts 0. */
export function cpuUs(pids: readonly number[]): number {
  let ticks = 0;
  for (const pid of pids) {
    const stat = read(`/proc/${pid}/stat`);
    // The command name may hold spaces and brackets: fields are counted from the last bracket.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  }
  return ticks * tickUs;
}

/** Resident memory of the processes in KB. */
export function residentKb(pids: readonly number[]): number {
  let total = 0;
  for (const pid of pids) {
    total += Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);
  }
  return total;
}

/** CPU time of the whole machine since boot, in µs: used by anyone, and taken by the hypervisor. */
export interface MachineCpu {
  readonly busyUs: number;
  readonly stealUs: number;
}

export function machineCpu(): MachineCpu {
  const fields = read('/proc/stat').split('\n', 1)[0]?.split(/\s+/).slice(1).map(Number) ?? [];
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return { busyUs: (user + nice + system + irq + softirq) * tickUs, stealUs: steal * tickUs };
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
