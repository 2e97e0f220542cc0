/** Who may generate now: a fixed number of slots and a bounded line of waiting requests, in order. */
import { unavailable } from './engine-error.ts';

interface Waiting<S> {
  readonly take: (slot: S) => void;
  readonly leave: (reason: unknown) => void;
}

/** Slots of one model; each holds what one generation needs for itself. */
export class Slots<S> {
  readonly #free: S[];
  readonly #waiting = new Set<Waiting<S>>();
  readonly #maxWaiting: number;

  constructor(slots: readonly S[], maxWaiting: number) {
    this.#free = [...slots];
    this.#maxWaiting = maxWaiting;
  }

  /** Requests that wait for a slot. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Refuses a request before any of its answer was sent.
   * @throws EngineError 503 when the line is full.
   */
  checkRoom(): void {
    if (this.#free.length > 0 || this.#waiting.size < this.#maxWaiting) return;
    const message = `The local model is busy: ${this.#waiting.size} requests are waiting.`;
    throw unavailable(message, 'server_is_overloaded', 2);
  }

  /**
   * A slot, in the order of asking. Give it back with `release`.
   * @throws the signal's reason when it is aborted first; the place in the line is freed.
   */
  async acquire(signal: AbortSignal): Promise<S> {
    signal.throwIfAborted();
    this.checkRoom();
    const slot = this.#free.shift();
    if (slot !== undefined) return slot;
    return new Promise<S>((resolve, reject) => {
      const waiting: Waiting<S> = {
        take: (freed) => {
          signal.removeEventListener('abort', onAbort);
          resolve(freed);
        },
        leave: reject,
      };
      const onAbort = (): void => {
        this.#waiting.delete(waiting);
        waiting.leave(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(waiting);
    });
  }

  /** Hands the slot to the next in line. */
  release(slot: S): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free.push(slot);
      return;
    }
    this.#waiting.delete(next);
    next.take(slot);
  }
}
