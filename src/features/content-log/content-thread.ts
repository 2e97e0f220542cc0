/** Seals what calls said, in a thread that starts with the first one that is to be kept. */
import { Worker } from 'node:worker_threads';
import type { ContentJob, ContentReply, SealedCall } from './content-worker.ts';

// The published program is JavaScript; in development Node runs the TypeScript file itself.
const entry = new URL(
  import.meta.url.endsWith('.ts') ? './content-worker.ts' : './content-worker.js',
  import.meta.url,
);

const timeoutMs = 60_000;

export interface ContentSealer {
  /** Undefined when it cannot be told in time, or not at all. Never throws. */
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
