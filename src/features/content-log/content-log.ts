/**
 * Stores what calls say, of keys whose content is logged (docs/user/content.md). After the answer and never before
 * it: a call's words are copied, sealed in a thread, and written a batch at a time. What has no room in memory
 * is dropped and counted; what is not yet written when the process dies is lost.
 */
import type { IncomingMessage } from 'node:http';
import { Worker } from 'node:worker_threads';
import type { AttemptReceipt } from '../../core/call.ts';
import type { Clock, Log } from '../../core/runtime.ts';
import type { ClientSink } from '../../gateway/answer/client-answer.ts';
import { nameOf } from '../../gateway/targets/health.ts';
import { secretHeaders } from '../../gateway/mask-credentials.ts';
import type { Pieces } from '../../json/pieces.ts';
import type { ContentStore, SealedContent } from '../../store/sealed.ts';
import { AnswerTee } from '../answer-tee.ts';
import type { ContentJob, ContentReply, SealedCall } from './content-worker.ts';
import type { SeenBody, SeenCall } from './sealed-content.ts';

export interface ContentLimits {
  /** Characters of each body. */
  readonly bodyBytes: number;
  /** Of everything that is not written yet. */
  readonly memoryBytes: number;
}

/** What became of calls, for metrics; each counts up from the start. */
export type ContentTallies = {
  kept: number;
  /** No room in memory, or the store took nothing for too long. */
  dropped: number;
  /** It could not be read or sealed. */
  failed: number;
};

export interface ContentLogDeps {
  readonly store: Pick<ContentStore, 'keep'>;
  readonly sealer: ContentSealer;
  readonly clock: Clock;
  readonly log: Log;
  /** The key that seals; undefined = there is none, and nothing is stored. Made at the first need. */
  readonly key: () => Uint8Array | undefined;
  /** The current ones: a reload replaces them. */
  readonly limits: () => ContentLimits;
}

interface Waiting {
  readonly content: SealedContent;
  readonly since: number;
  readonly done: () => void;
}

const writeEveryMs = 100;
const againMs = 1000;
const batchRows = 64;
const batchBytes = 2 * 1024 * 1024;
/** How long content waits for a store that is away. */
const maxWaitMs = 60_000;
/** How long a stop waits for content. Rows of the ledger are written after it. */
const maxStopMs = 5000;

export class ContentLog {
  readonly tallies: ContentTallies = { kept: 0, dropped: 0, failed: 0 };
  readonly #deps: ContentLogDeps;
  #memory = 0;
  #redacted = 0;
  readonly #sealing = new Set<Promise<void>>();
  #queue: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<boolean> | undefined;
  #warned = false;

  constructor(deps: ContentLogDeps) {
    this.#deps = deps;
  }

  /** Bytes of what is being seen, or waits for the store. */
  get memory(): number {
    return this.#memory;
  }

  /** Calls in whose words a key or a credential stood. */
  get redacted(): number {
    return this.#redacted;
  }

  /** Watches a call until its `end`. Undefined when nothing can be stored. */
  watch(deps: Omit<WatchedCallInput, 'hold' | 'over'>): WatchedCall | undefined {
    if (this.#key() === undefined) return undefined;
    let held = 0;
    const hold = (bytes: number): boolean => {
      if (this.#memory + bytes > this.#deps.limits().memoryBytes) return false;
      this.#memory += bytes;
      held += bytes;
      return true;
    };
    const giveBack = (): void => {
      this.#memory -= held;
      held = 0;
    };
    const over = (call: WatchedCall): void => this.#end(call, giveBack);
    return new WatchedCall({ ...deps, hold, over });
  }

  /** Writes what is there now. Never throws. */
  async flush(): Promise<void> {
    await Promise.all(this.#sealing);
    await this.#writing;
    while (this.#queue.length > 0 && (await this.#write()));
  }

  /** Writes the rest, as far as the store takes it within seconds, and stops. Never throws. */
  async close(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, maxStopMs);
    await Promise.race([this.flush(), late.promise]);
    clearTimeout(timer);
    clearTimeout(this.#timer);
    // What is not sealed by now counts as failed.
    this.tallies.dropped += this.#queue.length;
    const calls = this.#sealing.size + this.#queue.length;
    if (calls > 0) this.#deps.log.warn('contents_dropped', { calls, reason: 'a stop' });
    await this.#deps.sealer.close();
  }

  #key(): Uint8Array | undefined {
    try {
      const key = this.#deps.key();
      if (key === undefined) this.#tell('there is no key to seal it with');
      return key;
    } catch (error) {
      this.#tell(String(error));
      return undefined;
    }
  }

  #tell(reason: string): void {
    if (!this.#warned) this.#deps.log.warn('contents_not_kept', { reason });
    this.#warned = true;
  }

  #end(call: WatchedCall, giveBack: () => void): void {
    const seen = call.seen();
    const key = this.#key();
    if (seen === 'none' || key === undefined) return giveBack();
    if (seen === 'no room') {
      this.tallies.dropped += 1;
      return giveBack();
    }
    const { id, keyId, startedAt } = call;
    const sealing = this.#seal({ seen, key }, { id, keyId, startedAt, giveBack }).finally(() => {
      this.#sealing.delete(sealing);
    });
    this.#sealing.add(sealing);
  }

  /** Never rejects. */
  async #seal(
    job: { readonly seen: SeenCall; readonly key: Uint8Array },
    { giveBack, ...of }: Omit<SealedContent, 'sealed'> & { readonly giveBack: () => void },
  ): Promise<void> {
    const { sealer, limits, clock } = this.#deps;
    const made = await sealer.seal({ ...job, most: limits().bodyBytes });
    if (made === undefined) {
      this.tallies.failed += 1;
      return giveBack();
    }
    if (made.redacted) this.#redacted += 1;
    this.#queue.push({
      content: { ...of, sealed: made.sealed },
      since: clock.now(),
      done: giveBack,
    });
    this.#schedule(writeEveryMs);
  }

  #schedule(delayMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#write();
    }, delayMs).unref();
  }

  /** One batch, after the one that is being written; false when the store did not take it. */
  async #write(): Promise<boolean> {
    await this.#writing;
    const batch = this.#nextBatch();
    if (batch.length === 0) return true;
    const writing = this.#writeBatch(batch);
    this.#writing = writing;
    const written = await writing;
    if (this.#writing === writing) this.#writing = undefined;
    if (this.#queue.length > 0) this.#schedule(written ? 0 : againMs);
    return written;
  }

  /** Never rejects. */
  async #writeBatch(batch: readonly Waiting[]): Promise<boolean> {
    try {
      await this.#deps.store.keep(batch.map(({ content }) => content));
      this.#leave(batch, 'kept');
      return true;
    } catch (error) {
      const now = this.#deps.clock.now();
      const given = batch.filter(({ since }) => now - since > maxWaitMs);
      this.#deps.log.warn('contents_write_retried', {
        calls: this.#queue.length,
        reason: String(error),
      });
      if (given.length > 0) this.#leave(given, 'dropped');
      return false;
    }
  }

  #nextBatch(): readonly Waiting[] {
    const batch: Waiting[] = [];
    let bytes = 0;
    for (const each of this.#queue.slice(0, batchRows)) {
      bytes += each.content.sealed.length;
      if (batch.length > 0 && bytes > batchBytes) break;
      batch.push(each);
    }
    return batch;
  }

  #leave(batch: readonly Waiting[], how: 'kept' | 'dropped'): void {
    this.tallies[how] += batch.length;
    const gone = new Set(batch);
    this.#queue = this.#queue.filter((each) => !gone.has(each));
    for (const { done } of batch) done();
  }
}

// Seals what calls said, in a thread that starts with the first one that is to be stored.

// The published program is JavaScript; in development Node runs the TypeScript file itself.
const entry = new URL(
  import.meta.url.endsWith('.ts') ? './content-worker.ts' : './content-worker.js',
  import.meta.url,
);

const timeoutMs = 60_000;

interface ContentSealer {
  /** Undefined when it is not known in time, or not at all. Never throws. */
  seal(job: Omit<ContentJob, 'seq'>): Promise<SealedCall | undefined>;
  close(): Promise<void>;
}

export class ContentThread implements ContentSealer {
  readonly #waiting = new Map<number, (made: SealedCall | undefined) => void>();
  #worker: Worker | undefined;
  #sequence = 0;
  #closed = false;

  async seal(job: Omit<ContentJob, 'seq'>): Promise<SealedCall | undefined> {
    if (this.#closed) return undefined;
    const worker = this.#worker ?? this.#start();
    this.#sequence += 1;
    const seq = this.#sequence;
    const { request, answer } = job.seen;
    const bodies = [request.body, answer?.body].flatMap((body) =>
      body === undefined ? [] : [body.bytes.buffer],
    );
    return new Promise((resolve) => {
      const timer = setTimeout(() => void this.#lose(worker), timeoutMs);
      this.#waiting.set(seq, (made) => {
        clearTimeout(timer);
        resolve(made);
      });
      worker.postMessage({ ...job, seq } satisfies ContentJob, bodies);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#lose(this.#worker);
  }

  #start(): Worker {
    const worker = new Worker(entry, { execArgv: ['--disable-warning=ExperimentalWarning'] });
    this.#worker = worker;
    worker.unref();
    worker.on('message', ({ seq, made }: ContentReply) => {
      const resolve = this.#waiting.get(seq);
      this.#waiting.delete(seq);
      resolve?.(made);
    });
    worker.on('error', () => void this.#lose(worker));
    worker.on('exit', () => void this.#lose(worker));
    return worker;
  }

  /** Ends the thread; what waits is lost. The next one starts another. */
  async #lose(worker: Worker | undefined): Promise<void> {
    if (worker === undefined || this.#worker !== worker) return;
    this.#worker = undefined;
    const lost = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const resolve of lost) resolve(undefined);
    await worker.terminate();
  }
}

// One call whose content is stored, from its first byte to the hand-over. Nothing here waits or throws.

/** A longer body is not examined to its end: of what is cut away nothing is copied. */
const maxSeenBytes = 4 * 1024 * 1024;

interface WatchedCallInput {
  readonly id: string;
  readonly keyId: string;
  readonly startedAt: number;
  readonly path: string;
  readonly request: IncomingMessage;
  /** Takes memory for the copies; false when there is none. */
  readonly hold: (bytes: number) => boolean;
  /** Called once, when the call is over. */
  readonly over: (call: WatchedCall) => void;
}

/** Headers with public values. The values of all other upstream headers are never stored. */
const open: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'anthropic-beta',
  'anthropic-version',
  'content-length',
  'content-type',
  'user-agent',
]);
const clientSecrets = ['authorization', 'x-api-key', 'cookie', 'proxy-authorization'] as const;

export class WatchedCall {
  readonly #deps: WatchedCallInput;
  #body: Pieces | undefined;
  #answer: AnswerTee | undefined;
  #refused = false;
  #refusal: SeenCall['answer'];

  constructor(deps: WatchedCallInput) {
    this.#deps = deps;
  }

  get id(): string {
    return this.#deps.id;
  }

  get keyId(): string {
    return this.#deps.keyId;
  }

  get startedAt(): number {
    return this.#deps.startedAt;
  }

  /** The request's body is this. */
  asked(body: Pieces): void {
    this.#body = body;
  }

  /** What is written there is the answer. */
  watch(sink: ClientSink): ClientSink {
    this.#answer = new AnswerTee(sink, { maxBytes: maxSeenBytes, hold: this.#deps.hold });
    return this.#answer;
  }

  /** It was refused before its path began; the answer was this. */
  refused(status: number | undefined, body: unknown): void {
    this.#refused = true;
    if (status === undefined) return;
    const bytes = new TextEncoder().encode(JSON.stringify(body));
    const seen = { bytes, length: bytes.length };
    this.#refusal = { status, headers: [], body: seen, whole: true };
  }

  /** The call is over, whatever became of it. */
  end(): void {
    this.#deps.over(this);
  }

  /** `none`: there is no call, a stored answer was sent again. `no room`: no memory to copy it. */
  seen(): SeenCall | 'none' | 'no room' {
    const receipt = this.#answer?.receipt;
    if (receipt === undefined && !this.#refused) return 'none';
    const { id, keyId, path, request } = this.#deps;
    const body = this.#copied();
    if (body === 'no room') return body;
    const { attempts = [] } = receipt ?? {};
    return {
      id,
      keyId,
      request: { method: request.method ?? '', path, headers: request.rawHeaders, body },
      answer: this.#refusal ?? this.#given(),
      attempts: attempts.flatMap(failedAttempt),
      secrets: [...this.#ownSecrets(), ...attempts.flatMap(upstreamSecrets)],
    };
  }

  #given(): SeenCall['answer'] {
    const answer = this.#answer;
    if (answer?.status === undefined) return undefined;
    const { status, headers, copy, length, ended } = answer;
    return { status, headers, body: { bytes: new Uint8Array(copy), length }, whole: ended };
  }

  #copied(): SeenBody | 'no room' | undefined {
    if (this.#body === undefined) return undefined;
    const { length } = this.#body;
    const taken = Math.min(length, maxSeenBytes);
    if (!this.#deps.hold(taken)) return 'no room';
    const bytes = new Uint8Array(new ArrayBuffer(taken));
    let at = 0;
    for (const piece of this.#body.between(0, taken)) {
      bytes.set(piece, at);
      at += piece.length;
    }
    return { bytes, length };
  }

  #ownSecrets(): readonly string[] {
    const { headers } = this.#deps.request;
    return clientSecrets.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [name, value] : [];
    });
  }
}

function failedAttempt({ target, status, errorBody }: AttemptReceipt): SeenCall['attempts'] {
  return errorBody === undefined ? [] : [{ target: nameOf(target), status, error: errorBody }];
}

function upstreamSecrets({ target }: AttemptReceipt): readonly string[] {
  const headers = secretHeaders(target.provider.generate);
  return headers.filter((_, i) => !open.has((headers[i - (i % 2)] ?? '').toLowerCase()));
}
