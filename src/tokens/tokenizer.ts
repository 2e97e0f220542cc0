/** Counts texts with a public tokenizer, in a thread that starts when it is first needed. */
import { Worker } from 'node:worker_threads';
import type { Encoding } from '../core/provider.ts';
import type { TokenizerJob, TokenizerReply } from './tokenizer-worker.ts';

/** What the gateway needs of it; tests hand in their own. */
export interface TextCounter {
  /** Tokens of all texts together; undefined when it is not known in time. Never throws. */
  count(encoding: Encoding, texts: readonly string[]): Promise<number | undefined>;
}

// The published program is JavaScript; in development Node runs the TypeScript file itself.
const entry = new URL(
  import.meta.url.endsWith('.ts') ? './tokenizer-worker.ts' : './tokenizer-worker.js',
  import.meta.url,
);

/** A bound of the work that one client can cause, and of the queue. */
const maxLength = 8_000_000;
const maxWaiting = 64;
const timeoutMs = 10_000;
/** The tables are large: they are freed after this long without a count. */
const idleMs = 300_000;

export class TokenizerThread implements TextCounter {
  readonly #waiting = new Map<number, (tokens: number | undefined) => void>();
  #worker: Worker | undefined;
  #idle: NodeJS.Timeout | undefined;
  #sequence = 0;
  #closed = false;

  async count(encoding: Encoding, texts: readonly string[]): Promise<number | undefined> {
    if (this.#closed || this.#waiting.size >= maxWaiting) return undefined;
    let length = 0;
    for (const text of texts) length += text.length;
    if (length > maxLength) return undefined;
    const worker = this.#worker ?? this.#start();
    clearTimeout(this.#idle);
    this.#sequence += 1;
    const job: TokenizerJob = { seq: this.#sequence, encoding, texts };
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#lose(worker), timeoutMs);
      this.#waiting.set(job.seq, (tokens) => {
        clearTimeout(timer);
        resolve(tokens);
      });
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
      worker.postMessage(job);
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
    worker.on('message', ({ seq, tokens }: TokenizerReply) => this.#settle(worker, seq, tokens));
    worker.on('error', () => void this.#lose(worker));
    worker.on('exit', () => void this.#lose(worker));
    return worker;
  }

  #settle(worker: Worker, seq: number, tokens: number): void {
    const resolve = this.#waiting.get(seq);
    this.#waiting.delete(seq);
    resolve?.(tokens);
    if (this.#waiting.size > 0) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => void this.#lose(worker), idleMs);
    this.#idle.unref();
  }

  /** Ends the thread; waiting callers get no count. The next request starts a new thread. */
  async #lose(worker: Worker | undefined): Promise<void> {
    if (worker === undefined || this.#worker !== worker) return;
    this.#worker = undefined;
    clearTimeout(this.#idle);
    const lost = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const resolve of lost) resolve(undefined);
    await worker.terminate();
  }
}
