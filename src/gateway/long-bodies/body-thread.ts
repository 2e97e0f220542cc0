/**
 * Long bodies are read and written in one worker thread (decision 0045): the event loop hands over bytes and gets
 * finished bytes back, with what it needs to know of them. The thread starts with the first long body. It does one job
 * at a time, so that the values of one body are in memory at most; what waits costs its bytes only.
 */
import { Worker } from 'node:worker_threads';
import { GatewayError } from '../../core/errors.ts';
import type { Pieces } from '../../json/pieces.ts';
import type { JobName, Jobs } from './jobs.ts';
import { packed, receivedError, unpacked, type SentError } from './transfer.ts';

/** What the thread is started with. */
export interface ThreadData {
  /** The key of the sealer: 32 bytes. */
  readonly sealKey: Uint8Array;
}

export interface JobMessage<N extends JobName = JobName> {
  readonly name: N;
  readonly input: Jobs[N]['input'];
  /** Of the body. */
  readonly id: number;
  /** Absent where the thread has kept the body of this id. */
  readonly bytes?: Uint8Array;
  /** The next job may be about the same body. */
  readonly keep: boolean;
}

export type ThreadMessage = JobMessage | { readonly forget: number };

/** @template T what the job gives; on the receiving side it is what the sender's job of the same name gives. */
export type JobReply<T = never> = { readonly output: T } | { readonly error: SentError };

/** The bytes that a job is about. */
export interface BodyOfJob {
  /** Bodies with the same id are the same. */
  readonly id: number;
  readonly pieces: Pieces;
  /** The bytes are the thread's from now on; else it gets a copy. */
  readonly give?: boolean;
  /** Whether anybody still waits for the result; asked when the job's turn comes. */
  wanted?(): boolean;
}

/** What the path needs of the thread. */
export interface LongBodies {
  /** A new id for a body. */
  nextId(): number;
  /** @throws GatewayError what the job throws; `overloaded` where too many wait; `canceled` where it is not wanted */
  run<N extends JobName>(
    name: N,
    input: Jobs[N]['input'],
    body: BodyOfJob,
  ): Promise<Jobs[N]['output']>;
  /** Nothing more is asked of the body. */
  forget(id: number): void;
  close(): Promise<void>;
}

/** Jobs that may wait: the memory for bodies is the bound as a rule (`body-budget.ts`). */
const maxWaiting = 256;
/** The longest job takes some seconds; a thread that takes longer is stuck. */
const maxJobMs = 60_000;
/** A thread without a job ends: it holds tens of megabytes. */
const idleMs = 60_000;

interface Waiting {
  readonly name: JobName;
  readonly input: Jobs[JobName]['input'];
  readonly body: BodyOfJob;
  readonly resolve: (output: never) => void;
  readonly reject: (error: unknown) => void;
}

export interface BodyThreadOptions {
  /** The module that runs in the thread. */
  readonly entry: URL;
  /** Asked when the thread starts. */
  readonly data: () => ThreadData;
  /** Told why a thread ended that should not have. */
  readonly failed?: (reason: string) => void;
}

export class BodyThread implements LongBodies {
  readonly #options: BodyThreadOptions;
  readonly #waiting: Waiting[] = [];
  #running: Waiting | undefined;
  #worker: Worker | undefined;
  /** The body that the thread has kept. */
  #kept: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastId = 0;
  #closed = false;

  constructor(options: BodyThreadOptions) {
    this.#options = options;
  }

  /** Jobs that wait or run. */
  get jobs(): number {
    return this.#waiting.length + (this.#running === undefined ? 0 : 1);
  }

  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  run<N extends JobName>(
    name: N,
    input: Jobs[N]['input'],
    body: BodyOfJob,
  ): Promise<Jobs[N]['output']> {
    if (this.#closed)
      return Promise.reject(new GatewayError('shutting_down', 'The gateway stops.'));
    if (this.#waiting.length >= maxWaiting) {
      const why = 'The gateway has too many long bodies to work on; retry later.';
      // The gateway is short of time, not the target: nothing speaks against it.
      return Promise.reject(new GatewayError('overloaded', why, { retryable: false }));
    }
    return new Promise((resolve, reject) => {
      const settle = (output: Jobs[N]['output']): void => resolve(output);
      this.#waiting.push({ name, input, body, resolve: settle, reject });
      this.#next();
    });
  }

  forget(id: number): void {
    if (this.#kept !== id || this.#running !== undefined) return;
    this.#kept = undefined;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    this.#worker?.postMessage({ forget: id } satisfies ThreadMessage);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#lose(this.#worker, new GatewayError('shutting_down', 'The gateway stops.'));
    this.#rejectAll(new GatewayError('shutting_down', 'The gateway stops.'));
  }

  #rejectAll(error: GatewayError): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  #next(): void {
    if (this.#running !== undefined) return;
    const next = this.#waiting.shift();
    if (next === undefined) return this.#rest();
    if (next.body.wanted?.() === false) {
      next.reject(new GatewayError('canceled', 'The client left.'));
      return this.#next();
    }
    try {
      this.#send(next);
    } catch (error) {
      next.reject(error);
      this.#running = undefined;
      this.#next();
    }
  }

  #send(job: Waiting): void {
    const { name, input, body } = job;
    const worker = this.#worker ?? this.#start();
    this.#running = job;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#lose(worker, stuck()), maxJobMs);
    this.#timer.unref();
    const kept = this.#kept === body.id;
    const bytes = kept ? undefined : bytesOf(body);
    const keep = name === 'open';
    this.#kept = keep ? body.id : undefined;
    const message: ThreadMessage = {
      name,
      input: packed(input),
      id: body.id,
      keep,
      ...(bytes === undefined ? {} : { bytes }),
    };
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    worker.postMessage(message, bytes === undefined ? [] : [bytes.buffer]);
  }

  #start(): Worker {
    const { entry, data } = this.#options;
    const worker = new Worker(entry, {
      workerData: data(),
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#worker = worker;
    worker.unref();
    worker.on('message', (reply: JobReply) => this.#settle(worker, reply));
    worker.on('error', (error: Error) => void this.#lose(worker, crashed(error)));
    worker.on('exit', () => void this.#lose(worker, crashed(new Error('it ended by itself'))));
    return worker;
  }

  #settle(worker: Worker, reply: JobReply): void {
    const job = this.#running;
    if (worker !== this.#worker || job === undefined) return;
    this.#running = undefined;
    if ('error' in reply) {
      this.#kept = undefined;
      job.reject(receivedError(reply.error));
    } else {
      try {
        job.resolve(unpacked(reply.output));
      } catch (error) {
        job.reject(error);
      }
    }
    this.#next();
  }

  #rest(): void {
    clearTimeout(this.#timer);
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#timer = setTimeout(() => void this.#lose(worker, stuck()), idleMs);
    this.#timer.unref();
  }

  /** Ends the thread. The job that it does fails; those that wait are done by a new one. */
  async #lose(worker: Worker | undefined, error: GatewayError): Promise<void> {
    if (worker === undefined || this.#worker !== worker) return;
    this.#worker = undefined;
    this.#kept = undefined;
    clearTimeout(this.#timer);
    const job = this.#running;
    this.#running = undefined;
    if (job !== undefined) {
      if (!this.#closed) this.#options.failed?.(error.detail ?? error.message);
      job.reject(error);
    }
    if (!this.#closed) this.#next();
    await worker.terminate();
  }
}

/** @returns memory of its own, which can be moved */
function bytesOf({ pieces, give }: BodyOfJob): Uint8Array<ArrayBuffer> {
  const [first] = pieces.list;
  if (give === true && pieces.list.length === 1 && first !== undefined) {
    const { buffer } = first;
    if (buffer instanceof ArrayBuffer && buffer.byteLength === first.byteLength) {
      return new Uint8Array(buffer);
    }
  }
  const bytes = Buffer.allocUnsafeSlow(pieces.length);
  pieces.copy(bytes);
  return bytes;
}

function crashed(error: Error): GatewayError {
  const code: unknown = Reflect.get(error, 'code');
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') {
    const why = 'The body holds more values than there is memory for.';
    return new GatewayError('too_large', why, { detail: error.message });
  }
  return internal(`the thread for long bodies failed: ${error.message}`);
}

function stuck(): GatewayError {
  return internal(`a job on a long body took longer than ${maxJobMs} ms`);
}

function internal(detail: string): GatewayError {
  const why = 'Internal server error: the gateway failed to handle this call, which was aborted.';
  return new GatewayError('internal', why, { detail, cause: new Error(detail) });
}
