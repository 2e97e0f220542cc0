/** A worker thread with one database connection. A thread that dies is replaced by the next request. */
import { Worker } from 'node:worker_threads';
import { StoreError, type StoreFailure } from '../store-error.ts';
import type { EnginePart } from './engine.ts';

// The published program is JavaScript; in development Node runs the TypeScript file itself.
const entry = new URL(
  import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js',
  import.meta.url,
);

/** `full` loses no call even when the power fails, at the price of a sync of the disk per commit (F83). */
export type Durability = 'normal' | 'full';

export interface WorkerOptions {
  readonly path: string;
  /** A reader opens the file for queries only, so that a long one never holds up a write. */
  readonly readOnly: boolean;
  /** False once the file was open: a thread that replaces a dead one must find it (F87). */
  readonly mayCreate: boolean;
  readonly durability: Durability;
}

/** Reading every page is worth its time up to here (about 0.1 s); larger files are read after the start. */
export const checkedAtStartBytes = 64 * 1024 * 1024;

/** Values travel by structured clone. */
export interface RequestMessage {
  readonly seq: number;
  readonly part: EnginePart;
  readonly method: string;
  readonly args: readonly unknown[];
}

/** The answer to `seq`; 0 is the opening of the database. */
export interface ReplyMessage {
  readonly seq: number;
  readonly value?: unknown;
  readonly failure?: { readonly kind: StoreFailure; readonly message: string };
}

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

  /** Calls a method in the thread. @throws StoreError */
  async call(part: EnginePart, method: string, args: readonly unknown[]): Promise<unknown> {
    await this.open();
    return this.#post(part, method, args);
  }

  /** Finishes earlier operations, then ends the thread. */
  async close(): Promise<void> {
    if (this.#closed) return;
    const opened = this.#opened;
    this.#closed = true;
    if (opened === undefined) return;
    const isOpen = await opened.then(
      () => true,
      () => false,
    );
    if (isOpen && this.#worker !== undefined) await this.#post('engine', 'close', []);
    await this.#worker?.terminate();
  }

  /** Ends the thread after its current operation. Later ones fail. */
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

  #post(part: EnginePart, method: string, args: readonly unknown[]): Promise<unknown> {
    const worker = this.#worker;
    if (worker === undefined) return Promise.reject(threadEnded(this.#options.path, undefined));
    this.#sequence += 1;
    const seq = this.#sequence;
    return new Promise((resolve, reject) => {
      this.#waiting.set(seq, { resolve, reject });
      const request: RequestMessage = { seq, part, method, args };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
      worker.postMessage(request);
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

// SQLite's result codes as kinds of failure (sqlite.org/rescode.html; primary codes, low byte).

const kindOfCode: ReadonlyMap<number, StoreFailure> = new Map<number, StoreFailure>([
  [5, 'busy'], // SQLITE_BUSY
  [6, 'busy'], // SQLITE_LOCKED
  [8, 'full'], // SQLITE_READONLY
  [10, 'full'], // SQLITE_IOERR
  [11, 'corrupt'], // SQLITE_CORRUPT
  [13, 'full'], // SQLITE_FULL
  [14, 'full'], // SQLITE_CANTOPEN
  [18, 'refused'], // SQLITE_TOOBIG
  [19, 'refused'], // SQLITE_CONSTRAINT
  [20, 'refused'], // SQLITE_MISMATCH
  [25, 'refused'], // SQLITE_RANGE
  [26, 'corrupt'], // SQLITE_NOTADB
]);

/** For values that SQLite does not have, before the statement runs. */
const unfitValue = /^ERR_(?:INVALID_ARG_TYPE|INVALID_ARG_VALUE|OUT_OF_RANGE)$/;

/** Any thrown value as a StoreError that names the database file. */
export function asStoreError(thrown: unknown, path: string): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const kind =
    kindOfCode.get(primaryCode(thrown)) ??
    (thrown instanceof Error && 'code' in thrown && unfitValue.test(String(thrown.code))
      ? 'refused'
      : 'failed');
  if (kind === 'corrupt') return corrupt(path, thrown);
  const text = thrown instanceof Error ? thrown.message : 'unknown failure';
  return new StoreError(kind, `${path}: ${text}`, thrown);
}

/** The refusal of F86: names the file and the way out; nothing is ever re-created silently. */
export function corrupt(path: string, cause?: unknown): StoreError {
  return new StoreError(
    'corrupt',
    `${path} is damaged or not a gateway database. It is left as it is: restore it from a backup, ` +
      'or move it (with its -wal and -shm files) away to begin with an empty store and no keys.',
    cause,
  );
}

export function isBusy(thrown: unknown): boolean {
  return kindOfCode.get(primaryCode(thrown)) === 'busy';
}

function primaryCode(thrown: unknown): number {
  if (!(thrown instanceof Error) || !('errcode' in thrown)) return -1;
  return typeof thrown.errcode === 'number' ? thrown.errcode & 0xff : -1;
}
