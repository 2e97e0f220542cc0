/** A worker thread with one database connection. A thread that dies is replaced by the next request. */
import { Worker } from 'node:worker_threads';
import type {
  BookAnswer,
  BookArguments,
  BookOperation,
  ReplyMessage,
  WorkerOptions,
} from './sqlite-protocol.ts';
import { StoreError } from './store-error.ts';

// The published program is JavaScript; in development Node runs the TypeScript file itself.
const entry = new URL(
  import.meta.url.endsWith('.ts') ? './sqlite-worker.ts' : './sqlite-worker.js',
  import.meta.url,
);

/** Methods, not arrows: a caller knows the type of its own answer, the map holds them all. */
interface Waiting {
  resolve(value: unknown): void;
  reject(error: StoreError): void;
}

export class SqliteThread {
  readonly #options: WorkerOptions;
  readonly #waiting = new Map<number, Waiting>();
  #worker: Worker | undefined;
  #opened: Promise<void> | undefined;
  #sequence = 0;
  #mayCreate: boolean;
  #closed = false;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#mayCreate = options.mayCreate;
  }

  /** Starts the thread and opens the database. @throws StoreError */
  open(): Promise<void> {
    if (this.#closed) return Promise.reject(new StoreError('closed', 'The store is closed.'));
    this.#opened ??= this.#start();
    return this.#opened;
  }

  /** Asks for an operation. @throws StoreError */
  async ask<K extends BookOperation>(op: K, ...args: BookArguments<K>): Promise<BookAnswer<K>> {
    await this.open();
    return this.#post(op, args);
  }

  /** Finishes what was asked before, then ends the thread. */
  async close(): Promise<void> {
    if (this.#closed) return;
    const opened = this.#opened;
    this.#closed = true;
    if (opened === undefined) return;
    const isOpen = await opened.then(
      () => true,
      () => false,
    );
    if (isOpen && this.#worker !== undefined) await this.#post('close', []);
    await this.#worker?.terminate();
  }

  /** Ends the thread with what it has begun; what it has not answered fails. */
  async stop(): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
  }

  #start(): Promise<void> {
    const worker = new Worker(entry, {
      workerData: { ...this.#options, mayCreate: this.#mayCreate },
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#worker = worker;
    worker.on('message', (reply: ReplyMessage) => this.#settle(reply));
    worker.on('error', (error) => this.#lose(worker, error));
    worker.on('exit', () => this.#lose(worker, undefined));
    return new Promise<void>((resolve, reject) => {
      const resolveOpen = (): void => {
        this.#mayCreate = false;
        resolve();
      };
      this.#waiting.set(0, { resolve: resolveOpen, reject });
    });
  }

  #post<K extends BookOperation>(op: K, args: BookArguments<K>): Promise<BookAnswer<K>> {
    const worker = this.#worker;
    if (worker === undefined) return Promise.reject(threadEnded(this.#options.path, undefined));
    this.#sequence += 1;
    const seq = this.#sequence;
    return new Promise<BookAnswer<K>>((resolve, reject) => {
      const waiting = {
        resolve(value: BookAnswer<K>): void {
          resolve(value);
        },
        reject,
      };
      this.#waiting.set(seq, waiting);
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
      worker.postMessage({ seq, request: { op, args } });
    });
  }

  #settle(reply: ReplyMessage): void {
    const waiting = this.#waiting.get(reply.seq);
    this.#waiting.delete(reply.seq);
    if (reply.failure === undefined) waiting?.resolve(reply.value);
    else waiting?.reject(new StoreError(reply.failure.kind, reply.failure.message));
  }

  #lose(worker: Worker, cause: Error | undefined): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#opened = undefined;
    const error = threadEnded(this.#options.path, cause);
    const lost = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const waiting of lost) waiting.reject(error);
  }
}

function threadEnded(path: string, cause: Error | undefined): StoreError {
  return new StoreError('failed', `${path}: the store's thread ended.`, cause);
}
