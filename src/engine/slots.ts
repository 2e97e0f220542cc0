/** A fixed number of generation slots and a bounded queue of waiting requests, in order. */
import { unavailable } from './engine-error.ts';

/** Which of the free slots suits a request best; they come with the longest unused one first. */
export type ChooseSlot<S> = (free: readonly S[]) => S | undefined;

export interface SlotsOptions {
  readonly maxWaiting: number;
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number;
}

interface Waiting<S> {
  readonly take: (slot: S) => void;
  readonly choose: ChooseSlot<S> | undefined;
}

/** How much the latest request counts in the mean time that a request holds its slot. */
const newest = 0.2;
const maxRetrySeconds = 60;

/** Slots of one model; each holds what one generation needs for itself. */
export class Slots<S> {
  /** The longest unused one first. */
  readonly #free: S[];
  readonly #takenAt = new Map<S, number>();
  readonly #waiting = new Set<Waiting<S>>();
  readonly #options: SlotsOptions;
  readonly #count: number;
  #meanMs: number | undefined;

  constructor(slots: readonly S[], options: SlotsOptions) {
    this.#free = [...slots];
    this.#count = slots.length;
    this.#options = options;
  }

  /** How many requests can generate at once. */
  get count(): number {
    return this.#count;
  }

  /** Requests that have a slot. */
  get running(): number {
    return this.#takenAt.size;
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
    if (this.#free.length > 0 || this.#waiting.size < this.#options.maxWaiting) return;
    const message = `The local model is busy: ${this.#waiting.size} requests are waiting.`;
    throw unavailable(message, 'server_is_overloaded', this.#retrySeconds());
  }

  /**
   * A slot, in the order of asking. Give it back with `release`.
   * @throws the signal's reason when it is aborted first; the place in the line is freed.
   */
  async acquire(signal: AbortSignal, choose?: ChooseSlot<S>): Promise<S> {
    signal.throwIfAborted();
    this.checkRoom();
    if (this.#free.length > 0) return this.#take(choose);
    return new Promise<S>((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(waiting);
        reject(signal.reason);
      };
      const waiting: Waiting<S> = {
        choose,
        take: (freed) => {
          signal.removeEventListener('abort', onAbort);
          resolve(freed);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(waiting);
    });
  }

  /** Hands the slot to the next in line. */
  release(slot: S): void {
    const heldMs = this.#options.nowMs() - (this.#takenAt.get(slot) ?? 0);
    this.#takenAt.delete(slot);
    this.#meanMs =
      this.#meanMs === undefined ? heldMs : this.#meanMs + newest * (heldMs - this.#meanMs);
    this.#free.push(slot);
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    next.take(this.#take(next.choose));
  }

  #take(choose: ChooseSlot<S> | undefined): S {
    const [oldest] = this.#free;
    if (oldest === undefined) throw new Error('there is no free slot');
    const slot = choose?.(this.#free) ?? oldest;
    this.#free.splice(this.#free.indexOf(slot), 1);
    this.#takenAt.set(slot, this.#options.nowMs());
    return slot;
  }

  /** When the line will have been worked off, by the time that requests took so far. */
  #retrySeconds(): number {
    const now = this.#options.nowMs();
    // Before the first has finished: at least as long as those that run have been running.
    const longest = Math.max(0, ...[...this.#takenAt.values()].map((since) => now - since));
    const seconds = ((this.#meanMs ?? longest) * this.#waiting.size) / this.#count / 1000;
    return Math.min(maxRetrySeconds, Math.max(1, Math.ceil(seconds)));
  }
}
