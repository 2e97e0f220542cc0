/** Responses on their way into the store, several at once: a write of its own would cost a call more than the call. */
import type { Later } from '../../core/runtime.ts';
import type { ResponseStore, ResponseToKeep } from '../../store/sealed.ts';

/** From one write to the next, at the least. A response that comes after a pause is written at once. */
const betweenWritesMs = 2;
const mostAtOnce = 64;
const mostBytesAtOnce = 4 * 1024 * 1024;

interface Waiting {
  readonly response: ResponseToKeep;
  resolve(kept: boolean): void;
  reject(error: unknown): void;
}

export class StoreQueue {
  readonly #store: Pick<ResponseStore, 'keep'>;
  readonly #later: Later;
  #waiting: Waiting[] = [];
  #busy = false;

  constructor(store: Pick<ResponseStore, 'keep'>, later: Later) {
    this.#store = store;
    this.#later = later;
  }

  /** As the store's `keep`. @throws StoreError; then none of those written together was kept */
  add(response: ResponseToKeep): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ response, resolve, reject });
      if (!this.#busy) void this.#write();
    });
  }

  async #write(): Promise<void> {
    this.#busy = true;
    const pause = Promise.withResolvers<void>();
    this.#later(betweenWritesMs, pause.resolve);
    const batch = this.#next();
    try {
      const kept = await this.#store.keep(batch.map(({ response }) => response));
      for (const [at, { resolve }] of batch.entries()) resolve(kept[at] === true);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    await pause.promise;
    this.#busy = false;
    if (this.#waiting.length > 0) void this.#write();
  }

  #next(): readonly Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex(({ response }, at) => {
      bytes += response.sealed.length;
      return at === mostAtOnce || (at > 0 && bytes > mostBytesAtOnce);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }
}
