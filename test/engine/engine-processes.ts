/** Finds the engine processes that a gateway in this process has started (Linux). */
import { readdirSync, readFileSync } from 'node:fs';

/** Ids of the engine processes whose parent is this process. */
export function enginePids(): readonly number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && isOwnEngine(pid));
}

function isOwnEngine(pid: number): boolean {
  try {
    if (!readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('/src/engine/main.ts')) return false;
    // "pid (name) state ppid …": the name may hold anything, also parentheses.
    const [state, parent] =
      readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return Number(parent) === process.pid && state !== 'Z';
  } catch {
    // It ended while it was looked at.
    return false;
  }
}

/** Resolves once a process has computed for a tenth of a second from now. */
export async function computes(pid: number): Promise<void> {
  const before = cpuTicks(pid);
  while (cpuTicks(pid) < before + 10) await new Promise((resolve) => setTimeout(resolve, 5));
}

function cpuTicks(pid: number): number {
  const fields = statOf(pid);
  return Number(fields[11]) + Number(fields[12]);
}

/** The fields behind "pid (name) "; the name may hold anything, also parentheses. */
function statOf(pid: number): readonly string[] {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
}

/** What a process was given as its environment, `NAME=value` each. */
export function environmentOf(pid: number): readonly string[] {
  return readFileSync(`/proc/${pid}/environ`, 'utf8')
    .split('\0')
    .filter((entry) => entry !== '');
}
