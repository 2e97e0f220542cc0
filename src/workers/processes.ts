/**
 * The worker processes of a gateway: as many as are wanted, each connected by a stream of its own. One that
 * died can be replaced, later each time where they die at once. New connections go to them in turn (`node:cluster`).
 */
import cluster, { type Worker } from 'node:cluster';
import { Duplex, type Readable } from 'node:stream';
import { Handovers } from './handovers.ts';

export interface WorkerProcess {
  /** 1, 2, …; whoever takes the place of another has its number. */
  readonly number: number;
  readonly pid: number;
  readonly stream: Duplex;
  /** What it writes to its standard error. */
  readonly lines: Readable;
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

export interface ProcessesParts {
  /** The file that a worker runs. */
  readonly entry: string;
  readonly came: (worker: WorkerProcess) => void;
  /** It is gone, and all that it said was heard. */
  readonly went: (worker: WorkerProcess, how: WorkerEnd) => void;
}

export interface WorkerEnd {
  /** Whether all were to end. */
  readonly asked: boolean;
  readonly code: number | null;
  readonly signal: string | null;
}

/** Of the descriptor that a worker finds its stream at. */
export const streamFd = 4;

/** A worker that dies sooner than this is replaced later each time. */
const steadyMs = 5000;
const firstWaitMs = 50;
const lastWaitMs = 5000;

export class WorkerProcesses {
  readonly #parts: ProcessesParts;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** By number: when its last one was born, and how long the next one waits. */
  readonly #places = new Map<number, { readonly bornAt: number; readonly waitMs: number }>();
  readonly #handovers = new Handovers(() => this.#stopping);
  #stopping = false;

  constructor(parts: ProcessesParts) {
    this.#parts = parts;
  }

  start(count: number): void {
    cluster.schedulingPolicy = cluster.SCHED_RR;
    for (let number = 1; number <= count; number++) this.#fork(number);
  }

  /** Nobody is replaced from here on. */
  stop(): void {
    this.#stopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /** Another one begins beside it, now. */
  renew({ number }: WorkerProcess): void {
    if (!this.#stopping) this.#fork(number);
  }

  /** Another one takes the place of one that died or leaves: later each time where they do so at once. */
  replaceLater(worker: WorkerProcess): void {
    if (this.#stopping) return;
    const { bornAt = 0, waitMs = firstWaitMs } = this.#places.get(worker.number) ?? {};
    const steady = performance.now() - bornAt >= steadyMs;
    const timer = setTimeout(
      () => {
        this.#timers.delete(timer);
        this.#places.set(worker.number, {
          bornAt: performance.now(),
          waitMs: steady ? firstWaitMs : Math.min(lastWaitMs, 2 * waitMs),
        });
        this.#fork(worker.number);
      },
      steady ? firstWaitMs : waitMs,
    );
    this.#timers.add(timer);
  }

  #fork(number: number): void {
    const { entry, came, went } = this.#parts;
    cluster.setupPrimary({
      exec: entry,
      args: [],
      silent: true,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc', 'pipe'],
    });
    const worker = cluster.fork();
    const process = processOf(worker, number);
    const giveBack = this.#handovers.watch(worker.process);
    worker.process.on('error', () => worker.process.kill('SIGKILL'));
    // Not `exit`: what it said last may still be on its way.
    worker.process.on('close', (code, signal) => {
      const end = { asked: this.#stopping, code, signal };
      const gone = (): void => {
        giveBack();
        went(process, end);
      };
      if (worker.process.connected) worker.process.once('disconnect', gone);
      else gone();
    });
    came(process);
  }
}

function processOf({ process }: Worker, number: number): WorkerProcess {
  const stream = process.stdio[streamFd];
  const lines = process.stderr;
  if (!(stream instanceof Duplex) || lines === null) throw new Error('A worker has no stream.');
  return { number, pid: process.pid ?? 0, stream, lines, kill: (signal) => process.kill(signal) };
}
