/**
 * Two processes of one gateway, talking over a stream: questions with answers, and news without. What is
 * said in one turn of the event loop travels in one frame, so that a busy process pays for few writes.
 */
import type { Duplex } from 'node:stream';
import { deserialize, serialize } from 'node:v8';
import { type ErrorCode, GatewayError } from '../../core/errors.ts';
import { StoreError, type StoreFailure } from '../../store/store-error.ts';

/** The operations that one side offers: plain data in, plain data out. */
type Operations = { readonly [op: string]: (...args: never[]) => unknown };

type Answer<T extends Operations, K extends keyof T> = Awaited<ReturnType<T[K]>>;

interface LinkDeps<Ours> {
  readonly stream: Duplex;
  /** Answers the other side. */
  readonly serve: Ours;
  /** Called with a message that could not be handled; default: no listener. */
  readonly failed?: (op: string, error: unknown) => void;
}

/** `seq` 0 is news, which has no answer. */
interface Said {
  readonly seq: number;
  readonly op: string;
  readonly args: readonly unknown[];
}

interface Answered {
  readonly to: number;
  readonly value?: unknown;
  readonly failure?: Failure;
}

/** Methods, not arrows: a caller knows the type of its own answer, the map holds them all. */
interface Waiting {
  readonly until: number;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Time limit of an answer where the caller sets none; after it the other side counts as stopped. */
const defaultWaitMs = 10_000;
const lookEveryMs = 500;

export class Link<Theirs extends Operations, Ours extends Operations = Operations> {
  readonly #deps: LinkDeps<Ours>;
  readonly #waiting = new Map<number, Waiting>();
  readonly #look: NodeJS.Timeout;
  #outbox: (Said | Answered)[] = [];
  #sequence = 0;
  #closed = false;

  constructor(deps: LinkDeps<Ours>) {
    this.#deps = deps;
    const { stream } = deps;
    const reader = new FrameReader((body) => this.#heard(body));
    stream.on('data', (chunk: Buffer) => reader.read(chunk));
    stream.on('error', () => this.close());
    stream.on('close', () => this.close());
    this.#look = setInterval(() => this.#endOld(), lookEveryMs).unref();
  }

  /** @throws what the other side threw; StoreError `unavailable` when it does not answer for `waitMs` */
  ask<K extends keyof Theirs & string>(
    op: K,
    args: Parameters<Theirs[K]>,
    waitMs: number = defaultWaitMs,
  ): Promise<Answer<Theirs, K>> {
    if (this.#closed) return Promise.reject(gone());
    this.#sequence += 1;
    const seq = this.#sequence;
    return new Promise<Answer<Theirs, K>>((resolve, reject) => {
      const waiting = {
        until: performance.now() + waitMs,
        resolve(value: Answer<Theirs, K>): void {
          resolve(value);
        },
        reject,
      };
      this.#waiting.set(seq, waiting);
      this.#say({ seq, op, args });
    });
  }

  /** Never throws: who is gone hears nothing. */
  tell<K extends keyof Theirs & string>(op: K, args: Parameters<Theirs[K]>): void {
    if (!this.#closed) this.#say({ seq: 0, op, args });
  }

  /** Sends what is still to be sent, at once. */
  flush(): void {
    const said = this.#outbox;
    if (said.length === 0 || this.#closed) return;
    this.#outbox = [];
    const { stream } = this.#deps;
    const [head, body] = frameOf(serialize(said));
    stream.cork();
    stream.write(head);
    stream.write(body);
    stream.uncork();
  }

  close(): void {
    if (this.#closed) return;
    this.flush();
    this.#closed = true;
    clearInterval(this.#look);
    this.#deps.stream.end();
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of left) reject(gone());
  }

  #say(message: Said | Answered): void {
    this.#outbox.push(message);
    // After all that this turn reads: one frame for it.
    if (this.#outbox.length === 1) setImmediate(() => this.flush());
  }

  #heard(body: Buffer): void {
    const messages: readonly (Said | Answered)[] = deserialize(body);
    for (const message of messages) {
      if ('to' in message) this.#settle(message);
      else this.#serve(message);
    }
  }

  #settle({ to, value, failure }: Answered): void {
    const waiting = this.#waiting.get(to);
    this.#waiting.delete(to);
    if (failure === undefined) waiting?.resolve(value);
    else waiting?.reject(errorOf(failure));
  }

  /** Requests with synchronous answers are answered in this turn. */
  #serve({ seq, op, args }: Said): void {
    try {
      const value = this.#run(op, args);
      if (value instanceof Promise) {
        value.then(
          (settled: unknown) => this.#answer(seq, settled),
          (error: unknown) => this.#fail({ seq, op, error }),
        );
      } else this.#answer(seq, value);
    } catch (error) {
      this.#fail({ seq, op, error });
    }
  }

  #run(op: string, args: readonly unknown[]): unknown {
    const { serve } = this.#deps;
    const run: ((...given: readonly never[]) => unknown) | undefined = serve[op];
    if (run === undefined) throw new Error(`There is no operation "${op}".`);
    return Reflect.apply(run, serve, args);
  }

  #answer(to: number, value: unknown): void {
    if (to !== 0 && !this.#closed) this.#say({ to, value });
  }

  #fail({ seq, op, error }: { seq: number; op: string; error: unknown }): void {
    if (seq === 0) this.#deps.failed?.(op, error);
    else if (!this.#closed) this.#say({ to: seq, failure: failureOf(error) });
  }

  #endOld(): void {
    const now = performance.now();
    for (const [seq, { until, reject }] of this.#waiting) {
      if (now < until) continue;
      this.#waiting.delete(seq);
      reject(new StoreError('unavailable', 'The process that counts and keeps does not answer.'));
    }
  }
}

function gone(): StoreError {
  return new StoreError('closed', 'The other process of the gateway is gone.');
}

// Errors on their way to another process: the kinds that callers decide by arrive as what they were.

type Failure =
  | { readonly of: 'store'; readonly kind: StoreFailure; readonly message: string }
  | {
      readonly of: 'gateway';
      readonly code: ErrorCode;
      readonly message: string;
      readonly retryAfterMs?: number;
      readonly retryable: boolean;
    }
  | { readonly of: 'process'; readonly message: string };

function failureOf(error: unknown): Failure {
  if (error instanceof StoreError) {
    return { of: 'store', kind: error.kind, message: error.message };
  }
  if (error instanceof GatewayError) {
    const { code, message, retryAfterMs, retryable } = error;
    const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
    return { of: 'gateway', code, message, retryable, ...wait };
  }
  return { of: 'process', message: error instanceof Error ? error.message : String(error) };
}

function errorOf(failure: Failure): Error {
  if (failure.of === 'store') return new StoreError(failure.kind, failure.message);
  if (failure.of === 'process') return new Error(failure.message);
  const { code, message, retryable, retryAfterMs } = failure;
  return new GatewayError(code, message, {
    retryable,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

// Frames on a stream of bytes: four bytes of length, then that many bytes.

const headBytes = 4;

/** The frame of one body. */
function frameOf(body: Uint8Array): readonly [Uint8Array, Uint8Array] {
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32BE(body.length);
  return [head, body];
}

/** Puts frames together, however they were cut on their way. */
class FrameReader {
  readonly #onBody: (body: Buffer) => void;
  #chunks: Buffer[] = [];
  #held = 0;
  /** The length of the current body; undefined = its head is awaited. */
  #length: number | undefined;

  constructor(onBody: (body: Buffer) => void) {
    this.#onBody = onBody;
  }

  read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    for (;;) {
      const wanted = this.#length ?? headBytes;
      if (this.#held < wanted) return;
      const bytes = this.#take(wanted);
      if (this.#length === undefined) {
        this.#length = bytes.readUInt32BE();
      } else {
        this.#length = undefined;
        this.#onBody(bytes);
      }
    }
  }

  #take(length: number): Buffer {
    const [first] = this.#chunks;
    const all =
      first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    this.#held -= length;
    this.#chunks = this.#held === 0 ? [] : [all.subarray(length)];
    return all.subarray(0, length);
  }
}
