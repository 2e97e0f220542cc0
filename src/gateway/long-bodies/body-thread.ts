/**
 * Long bodies are read and written in one worker thread (decision 0045): the event loop hands over bytes and gets
 * finished bytes back, with what it needs to know of them. The thread starts with the first long body. It does one job
 * at a time, so that the values of one body are in memory at most; what waits costs its bytes only.
 */
import { Worker } from 'node:worker_threads';
import type { JsonSource } from '../../core/client-body.ts';
import type { DialectId } from '../../core/conversation.ts';
import type { RequestHead } from '../../core/dialect.ts';
import { GatewayError } from '../../core/errors.ts';
import type { PromptExcerpt } from '../../core/description.ts';
import { tryParseObject } from '../../json/parse.ts';
import type { Pieces } from '../../json/pieces.ts';
import type { Span } from '../../json/scan.ts';
import { type Feature, featureBits } from '../../json/skeleton.ts';
import type { JsonObject } from '../../json/value.ts';
import type { JobName, Jobs, OpenInput, OpenedBody, PromptSize } from './jobs.ts';
import { type SentError, packed, receivedError, unpacked } from './transfer.ts';

/** The start options of the thread. */
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
  /** Characters of texts that go to the thread besides the bytes; default 0. */
  readonly textLength?: number;
  /** The bytes are the thread's from now on; else it gets a copy. */
  readonly give?: boolean;
  /** Whether the result is still awaited; called before the job runs. */
  wanted?(): boolean;
}

/** The functions of the thread that the path needs. */
export interface LongBodies {
  /** A new id for a body. */
  nextId(): number;
  /**
   * @throws GatewayError what the job throws; `overloaded` where too many wait; `canceled` where it is not wanted;
   * `too_large` (a request) or `upstream_invalid` (an answer) where the thread has no room for it
   */
  run<N extends JobName>(
    name: N,
    input: Jobs[N]['input'],
    body: BodyOfJob,
  ): Promise<Jobs[N]['output']>;
  /** No further job uses the body. */
  forget(id: number): void;
  close(): Promise<void>;
}

/** Jobs that may wait: the bound is usually the memory for bodies (`body-budget.ts`). */
const maxWaiting = 256;
/** Bytes that may wait where an `asked` job is accepted: its call is over, so the budget of bodies no longer counts its body. */
const maxAskedBytes = 64 * 1024 * 1024;
/** The heap of the thread, where half of the memory is not less. */
const maxHeapBytes = 512 * 1024 * 1024;
/**
 * Heap that one byte of a job may need. V8 ends the process, and not the thread, where its own code (`JSON.parse`,
 * `JSON.stringify`) finds no room for a text. A character takes two bytes where one of the text is not Latin-1, and up to
 * three copies of a text exist at the same time (the body, its value, the new body), in addition to the values.
 */
const heapPerByte = 8;
/** Bytes of the jobs that may wait, in heaps of the thread: documents of upstreams have no other bound. */
const heapsWaiting = 2;
const mebibyte = 1024 * 1024;
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
  /** Called when the thread starts. */
  readonly data: () => ThreadData;
  /** Bytes that the process may use. */
  readonly memoryBytes: number;
  /** Called with the reason when a thread ends unexpectedly. */
  readonly failed?: (reason: string) => void;
}

export class BodyThread implements LongBodies {
  readonly #options: BodyThreadOptions;
  readonly #heapBytes: number;
  readonly #waiting: Waiting[] = [];
  /** The size of the waiting jobs. */
  #waitingBytes = 0;
  #running: Waiting | undefined;
  #worker: Worker | undefined;
  /** The body that the thread has kept. */
  #kept: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lastId = 0;
  #closed = false;

  constructor(options: BodyThreadOptions) {
    this.#options = options;
    this.#heapBytes = Math.min(maxHeapBytes, options.memoryBytes / 2);
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
    const bytes = sizeOf(body);
    const most = Math.floor(this.#heapBytes / heapPerByte);
    if (bytes > most) return Promise.reject(tooLong(name, bytes, most));
    const maxWaitingBytes = heapsWaiting * this.#heapBytes;
    const isLate = name === 'asked' && this.#waitingBytes + bytes > maxAskedBytes;
    if (
      isLate ||
      this.#waiting.length >= maxWaiting ||
      this.#waitingBytes + bytes > maxWaitingBytes
    ) {
      const why = 'The gateway has too many long bodies to work on; retry later.';
      // The gateway is short of time, not the target: nothing speaks against it.
      return Promise.reject(new GatewayError('overloaded', why, { retryable: false }));
    }
    return new Promise((resolve, reject) => {
      const settle = (output: Jobs[N]['output']): void => resolve(output);
      this.#waiting.push({ name, input, body, resolve: settle, reject });
      this.#waitingBytes += bytes;
      this.#next();
    });
  }

  forget(id: number): void {
    if (this.#kept !== id || this.#running !== undefined) return;
    this.#kept = undefined;
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    this.#worker?.postMessage({ forget: id } satisfies ThreadMessage);
  }

  /**
   * Ends the thread if it has no job: its heap may hold garbage of tens of megabytes. The next job starts another
   * thread.
   */
  endIdle(): void {
    if (this.jobs === 0) void this.#lose(this.#worker, stuck());
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#lose(this.#worker, new GatewayError('shutting_down', 'The gateway stops.'));
    const error = new GatewayError('shutting_down', 'The gateway stops.');
    this.#waitingBytes = 0;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }

  #next(): void {
    if (this.#running !== undefined) return;
    const next = this.#taken();
    if (next === undefined) return this.#rest();
    this.#waitingBytes -= sizeOf(next.body);
    if (next.body.wanted?.() === false) {
      next.reject(new GatewayError('canceled', 'The client left.'));
      return this.#next();
    }
    try {
      const { name, input, body } = next;
      const worker = this.#worker ?? this.#start();
      this.#running = next;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => void this.#lose(worker, stuck()), maxJobMs);
      this.#timer.unref();
      const kept = this.#kept === body.id;
      const bytes = kept ? undefined : bytesOf(body);
      const keep = name === 'open' || name === 'size';
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
    } catch (error) {
      next.reject(error);
      this.#running = undefined;
      this.#next();
    }
  }

  /** The first job about the body that the thread has; else the first one of all. */
  #taken(): Waiting | undefined {
    const at = this.#waiting.findIndex(({ body }) => body.id === this.#kept);
    return this.#waiting.splice(Math.max(at, 0), 1)[0];
  }

  #start(): Worker {
    const { entry, data } = this.#options;
    const worker = new Worker(entry, {
      workerData: data(),
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(this.#heapBytes / mebibyte) },
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#worker = worker;
    worker.unref();
    worker.on('message', (reply: JobReply) => this.#settle(worker, reply));
    const failed = (error: Error): void =>
      void this.#lose(worker, crashed(error, this.#running?.name));
    worker.on('error', failed);
    worker.on('exit', () => failed(new Error('it ended by itself')));
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
    // The call goes on first: its next job finds the body in the thread, or it would be sent and read again.
    setImmediate(() => this.#next());
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

function sizeOf({ pieces, textLength = 0 }: BodyOfJob): number {
  return pieces.length + textLength;
}

function tooLong(name: JobName, bytes: number, most: number): GatewayError {
  const mib = (count: number): string => `${(count / mebibyte).toFixed(1)} MiB`;
  const room = `the memory of the gateway is enough for at most ${mib(most)} (limits.memory)`;
  return withoutRoom(name, `has ${mib(bytes)}; ${room}`);
}

/**
 * The error of an oversized body: of a client's request it is the client's fault, of an upstream's answer not.
 * @param why the text after the name of the body
 */
function withoutRoom(name: JobName | undefined, why: string, detail?: string): GatewayError {
  const more = { retryable: false, ...(detail === undefined ? {} : { detail }) };
  return name === 'read' || name === 'answer'
    ? new GatewayError('upstream_invalid', `The answer of the upstream ${why}.`, more)
    : new GatewayError('too_large', `The request body ${why}.`, more);
}

function crashed(error: Error, name: JobName | undefined): GatewayError {
  const code: unknown = Reflect.get(error, 'code');
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return withoutRoom(name, 'holds more values than there is memory for', error.message);
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

// A client's body that is too long to be read on the event loop: its bytes, and what the worker thread found in it.

const noSpans: ReadonlyMap<string, Span> = new Map();

export class LongBody implements JsonSource, BodyOfJob {
  readonly id: number;
  readonly pieces: Pieces;
  /** Bounded: prompts are omitted (`thin-skeleton.ts`). */
  readonly skeleton: JsonObject;
  readonly tokens: number;
  readonly unambiguous: boolean;
  readonly spans = noSpans;
  readonly bodyStart = 0;
  /** Absent in a request to count tokens. */
  readonly head: RequestHead | undefined;
  readonly model: string;
  readonly reasonsWithTools: boolean;
  readonly excerpt: PromptExcerpt | undefined;
  readonly #features: number;
  readonly #sample: number;
  #size: PromptSize | undefined;

  constructor(id: number, pieces: Pieces, opened: OpenedBody) {
    this.id = id;
    this.pieces = pieces;
    this.skeleton = tryParseObject(opened.skeleton) ?? {};
    this.tokens = opened.tokens;
    this.unambiguous = opened.unambiguous;
    this.head = opened.head;
    this.model = opened.model;
    this.reasonsWithTools = opened.reasonsWithTools;
    this.excerpt = opened.excerpt;
    this.#features = opened.features;
    this.#sample = opened.sample;
  }

  /**
   * Has the prompt measured, which takes a parse: `opening`, `guess` and `images` are known from then on.
   * @param wanted whether its client is still there
   * @throws GatewayError `overloaded`, `canceled`
   */
  async measure(bodies: LongBodies, client: DialectId, wanted: () => boolean): Promise<void> {
    const { id, pieces } = this;
    this.#size = await bodies.run('size', { client }, { id, pieces, wanted });
  }

  /** The key of the conversation's beginning (`conversationKey` of routing.ts). */
  get opening(): string {
    return this.#measured.opening;
  }

  /** Tokens of the prompt by all of its characters. */
  get guess(): number {
    return this.#measured.guess;
  }

  /** Tokens of the prompt by a sample of them. */
  get sample(): number {
    return this.#size?.sample ?? this.#sample;
  }

  get images(): number {
    return this.#measured.images;
  }

  /** @throws TypeError for a body that was not measured */
  get #measured(): PromptSize {
    if (this.#size === undefined) throw new TypeError('The prompt of a long body is not measured.');
    return this.#size;
  }

  get bytes(): Buffer {
    return this.pieces.whole();
  }

  /** @throws TypeError always: the value is in the worker thread only. */
  get value(): JsonObject {
    throw new TypeError('The value of a long body is not read on the event loop.');
  }

  has(feature: Feature): boolean {
    return (this.#features & featureBits[feature]) !== 0;
  }

  lacks(): boolean {
    return false;
  }

  forget(): void {
    // There is no value here.
  }
}

/**
 * Has a body read in the worker thread.
 * @param wanted whether its client is still there
 * @throws GatewayError as the dialect refuses it, `overloaded`, `canceled`
 */
export async function openLongBody(
  bodies: LongBodies,
  pieces: Pieces,
  { wanted, ...input }: OpenInput & { readonly wanted: () => boolean },
): Promise<LongBody> {
  const id = bodies.nextId();
  const opened = await bodies.run('open', input, { id, pieces, wanted });
  return new LongBody(id, pieces, opened);
}
