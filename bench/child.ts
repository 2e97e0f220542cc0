/** Processes that the bench starts: pinned to a core, and stopped by their id, whatever happens. */
import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Cores: what is measured has the first to itself; whatever makes the load shares the second. */
export const subjectCore = 0;
export const loadCore = 1;

/** For what shall run as it would without a bench; who starts it is pinned himself. */
export const everyCore = { name: `0-${cpus().length - 1}`, count: cpus().length } as const;

const running = new Set<ChildProcess>();
const scratch = new Set<string>();

/** A new folder for files of one process. */
export function makeScratch(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `bench-${name}-`));
  scratch.add(folder);
  return folder;
}

export function removeScratch(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  scratch.delete(folder);
}

export interface StartOptions {
  /** One, or a list of them as `taskset` takes it. Absent: where the bench runs. */
  readonly core?: number | string;
  readonly stdio: StdioOptions;
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

/** Starts a program. `taskset` replaces itself by it, so the child's id is the program's. */
export function startProcess(command: readonly string[], options: StartOptions): ChildProcess {
  const [program = '', ...args] =
    options.core === undefined ? command : ['taskset', '-c', String(options.core), ...command];
  const child = spawn(program, args, {
    stdio: options.stdio,
    ...(options.env === undefined ? {} : { env: options.env }),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
  });
  running.add(child);
  child.on('exit', () => running.delete(child));
  child.on('error', () => running.delete(child));
  return child;
}

/** SIGTERM, and after `graceMs` SIGKILL. */
export async function stopProcess(child: ChildProcess, graceMs = 5000): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  await gone;
  clearTimeout(timer);
}

/** For the way out after an error or Ctrl-C. Not SIGKILL: nginx's worker would outlive its master. */
export function stopAll(): void {
  for (const child of running) child.kill('SIGTERM');
  for (const folder of scratch) removeScratch(folder);
}

/** A child of the bench that answers each message with one message. */
export interface Helper {
  readonly pid: number;
  /** Sends a message and waits for its answer. */
  ask(message: object): Promise<unknown>;
  /** Waits for a message that it sends unasked. */
  next(): Promise<unknown>;
  stop(): Promise<void>;
}

export interface HelperOptions {
  /** Absent: the load core. */
  readonly core?: number | string;
  readonly args?: readonly string[];
}

/** Starts one of the bench's own modules. */
export function startHelper(
  file: string,
  { core = loadCore, args = [] }: HelperOptions = {},
): Helper {
  const child = startProcess(
    [process.execPath, '--disable-warning=ExperimentalWarning', file, ...args],
    { core, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
  );
  const next = (): Promise<unknown> => {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const ended = (): void => reject(new Error(`${file} ended before it answered`));
    child.once('exit', ended);
    child.once('message', (message) => {
      child.off('exit', ended);
      resolve(message);
    });
    return promise;
  };
  return {
    pid: child.pid ?? 0,
    next,
    ask: (message) => {
      const answer = next();
      child.send(message);
      return answer;
    },
    stop: () => stopProcess(child),
  };
}
