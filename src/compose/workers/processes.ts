/**
 * The worker processes of a gateway, each connected to the parent by a stream. A worker that died is replaced, with a
 * growing delay where workers die soon after their start. Each worker listens for connections itself.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { Duplex, type Readable } from 'node:stream';

export interface WorkerProcess {
  /** 1, 2, …; a replacement has the number of the worker that it replaces. */
  readonly number: number;
  readonly pid: number;
  readonly stream: Duplex;
  /** Its standard error. */
  readonly lines: Readable;
  /** Descriptors, in the worker, of the listening sockets that it has inherited. */
  readonly sockets: readonly number[];
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

interface WorkerProcessesOptions {
  /** The file that a worker runs. */
  readonly entry: string;
  /** Descriptors of the sockets on which this worker listens. @throws the system's error where there are none */
  readonly sockets: (number: number) => readonly number[];
  /** Called when no process listens in this slot until the next one has started. */
  readonly vacant: (number: number) => void;
  readonly started: (worker: WorkerProcess) => void;
  /** Called when the process is gone and all of its output was read. */
  readonly ended: (worker: WorkerProcess, how: WorkerEnd) => void;
}

export interface WorkerEnd {
  /** Whether the gateway stops. */
  readonly asked: boolean;
  readonly code: number | null;
  readonly signal: string | null;
}

/** Descriptor of the stream in a worker. */
export const streamFd = 3;
/** The address of the first listening socket. */
const firstSocketFd = 4;

/** A worker that ends sooner than this after its start is replaced with a growing delay. */
const steadyMs = 5000;
const minWaitMs = 50;
const maxWaitMs = 5000;

export class WorkerProcesses {
  readonly #options: WorkerProcessesOptions;
  readonly #timers = new Set<NodeJS.Timeout>();
  /** By number: when its last process was started, and the delay of the next one. */
  readonly #starts = new Map<number, { readonly at: number; readonly waitMs: number }>();
  #stopping = false;

  constructor(options: WorkerProcessesOptions) {
    this.#options = options;
  }

  /** @throws the system's error of a process that cannot be started */
  start(count: number): void {
    for (let number = 1; number <= count; number++) this.#spawn(number);
  }

  /** Starts no more replacements. */
  stop(): void {
    this.#stopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  /** Starts a replacement now; the worker continues. */
  renew(worker: WorkerProcess): void {
    if (!this.#stopping) this.#replace(worker.number);
  }

  /** Starts a replacement after a delay that grows while workers end soon after their start. */
  replaceLater({ number }: Pick<WorkerProcess, 'number'>): void {
    if (this.#stopping) return;
    const { at = 0, waitMs = minWaitMs } = this.#starts.get(number) ?? {};
    const steady = performance.now() - at >= steadyMs;
    const delayMs = steady ? minWaitMs : waitMs;
    this.#options.vacant(number);
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#starts.set(number, {
        at: performance.now(),
        waitMs: steady ? minWaitMs : Math.min(maxWaitMs, 2 * waitMs),
      });
      this.#replace(number);
    }, delayMs);
    this.#timers.add(timer);
  }

  /** If no process can be started now (descriptors, memory), it is tried again later. */
  #replace(number: number): void {
    try {
      this.#spawn(number);
    } catch {
      this.replaceLater({ number });
    }
  }

  #spawn(number: number): void {
    const { entry, sockets, started, ended } = this.#options;
    const inherited = sockets(number);
    const child = spawn(process.execPath, [...process.execArgv, entry], {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', ...inherited],
    });
    // Without a listener an error would end the parent.
    child.on('error', () => child.kill('SIGKILL'));
    const worker = workerOf(child, {
      number,
      sockets: inherited.map((_, i) => firstSocketFd + i),
    });
    // After its last output, which `exit` is not.
    child.on('close', (code, signal) => ended(worker, { asked: this.#stopping, code, signal }));
    started(worker);
  }
}

/** @throws Error when the process could not be started */
function workerOf(
  child: ChildProcess,
  own: Pick<WorkerProcess, 'number' | 'sockets'>,
): WorkerProcess {
  const { pid, stderr: lines } = child;
  // Absent where the system had no descriptors left for them.
  const stream: unknown = child.stdio?.[streamFd];
  if (pid === undefined || !(stream instanceof Duplex) || lines === null) {
    throw new Error('A worker process could not be started.');
  }
  return { ...own, pid, stream, lines, kill: (signal) => child.kill(signal) };
}

// Notices that the other process of a link has stopped to answer.

interface HeartbeatOptions {
  /** Resolves when the other side has answered. */
  readonly ping: () => Promise<unknown>;
  /** How long the other side may be silent. */
  readonly silentMs: number;
  /** Called when the other side has been silent for longer; once until it answers. */
  readonly silent: () => void;
  /** Monotonic ms. */
  readonly now?: () => number;
}

const beatMs = 1000;

/** Pings once a second; the result ends it. Keeps no process alive. */
export function watchHeartbeat({
  ping,
  silentMs,
  silent,
  now = () => performance.now(),
}: HeartbeatOptions): () => void {
  let heardAt = now();
  let beatAt = heardAt;
  let reported = false;
  const heard = (): void => {
    heardAt = now();
    reported = false;
  };
  const timer = setInterval(() => {
    const at = now();
    // This process stood still itself, perhaps both did: the other side gets its time anew.
    if (at - beatAt > 2 * beatMs) heardAt = at;
    beatAt = at;
    if (at - heardAt > silentMs && !reported) {
      reported = true;
      silent();
    }
    ping().then(heard, () => undefined);
  }, beatMs).unref();
  return () => clearInterval(timer);
}
