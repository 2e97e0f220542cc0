/** A fixed number of generation slots and a bounded queue of waiting requests, in order. */
import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import { unavailable } from './engine-error.ts';

// One of the model's sequences, and what is known of the state that it keeps.

/** A seeded request computes alone; all others share their batches. */
export const aloneInBatch = 1;
export const sharedBatch = 5;

interface PromptReading {
  readonly prompt: readonly Token[];
  /** Compute without others, in the same pieces each time, so that the result is the same each time. */
  readonly alone: boolean;
  readonly signal: AbortSignal;
}

interface SequenceSlotOptions {
  readonly sequence: LlamaContextSequence;
  /**
   * Tokens that a seeded request, which computes alone, reads at once: it can be given up after each slice.
   * The same slices each time are a part of what a seed promises.
   */
  readonly slice: number;
  /** Tokens that all others read at once; shared by all sequences of a model. */
  readonly sizer: SliceSizer;
  /** Monotonic ms. */
  readonly now: () => number;
  /** Shared by all sequences of a model. */
  readonly gate: StateGate;
}

export class SequenceSlot {
  readonly sequence: LlamaContextSequence;
  readonly gate: StateGate;
  /** An answer is generated on it and will request a next token. */
  generating = false;
  readonly #slice: number;
  readonly #sizer: SliceSizer;
  readonly #now: () => number;
  /** This many tokens at the beginning were computed alone, in whole slices. */
  #exactTokens = 0;

  constructor({ sequence, slice, sizer, now, gate }: SequenceSlotOptions) {
    this.sequence = sequence;
    this.gate = gate;
    this.#slice = slice;
    this.#sizer = sizer;
    this.#now = now;
  }

  /** How much of the prompt is there already. */
  sharedTokens(prompt: readonly Token[]): number {
    return this.sequence.compareContextTokens(prompt.slice(0, -1)).firstDifferentIndex;
  }

  /** Tokens that went through the model here so far. */
  get steps(): number {
    const { usedInputTokens, usedOutputTokens } = this.sequence.tokenMeter;
    return usedInputTokens + usedOutputTokens;
  }

  /** How many tokens the sequence holds. */
  get keptTokens(): number {
    return this.sequence.nextTokenIndex;
  }

  /**
   * Brings the sequence to the state after all prompt tokens but the last, keeping the prefix that it
   * shares with the request before. Returns how many tokens were kept.
   * @throws the signal's reason when it is aborted; takes effect after the current slice.
   */
  async readPrompt({ prompt, alone, signal }: PromptReading): Promise<number> {
    const { sequence } = this;
    const body = prompt.slice(0, -1);
    const kept = await this.gate.change(() => this.#keepPrefix(body, alone));
    const evaluationPriority = alone ? aloneInBatch : sharedBatch;
    let start = sequence.nextTokenIndex;
    while (start < body.length) {
      await this.gate.pause();
      signal.throwIfAborted();
      const slice = body.slice(start, start + (alone ? this.#slice : this.#sizer.tokens));
      const begun = this.#now();
      await sequence.evaluateWithoutGeneratingNewTokens(slice, { evaluationPriority });
      this.#sizer.took(slice.length, this.#now() - begun);
      start += slice.length;
      if (alone && slice.length === this.#slice) this.#exactTokens = start;
    }
    // Models whose state cannot be cut back anywhere keep a copy of it here, for the next turn.
    if (sequence.needsCheckpoints) await this.gate.change(() => sequence.takeCheckpoint());
    await this.gate.pause();
    return kept;
  }

  /** After a failed evaluation the state is unknown: the next request starts afresh. */
  async reset(): Promise<void> {
    this.#exactTokens = 0;
    await this.gate.change(() => this.sequence.clearHistory());
  }

  async #keepPrefix(body: Token[], alone: boolean): Promise<number> {
    const { sequence } = this;
    const shared = sequence.compareContextTokens(body).firstDifferentIndex;
    if (alone) {
      // What was read in company was rounded in another way, so it cannot be a part of a promise.
      const exact = sequence.needsCheckpoints ? 0 : Math.min(shared, this.#exactTokens);
      const kept = exact - (exact % this.#slice);
      this.#exactTokens = kept;
      await sequence.adaptStateToTokens(body.slice(0, kept), false);
      return kept;
    }
    const readAgain = sequence.needsCheckpoints
      ? sequence.getRestoreToPrefixIndexEvaluationSize(shared)
      : 0;
    await sequence.adaptStateToTokens(body, false);
    this.#exactTokens = Math.min(this.#exactTokens, sequence.nextTokenIndex);
    return sequence.nextTokenIndex - Math.max(0, readAgain);
  }
}

/**
 * The free slot that knows the prompt best. One that would lose most of what it holds is not taken for
 * a short shared beginning (all conversations of an agent begin alike): then the longest unused one is.
 */
export function chooseSlot(
  free: readonly SequenceSlot[],
  prompt: readonly Token[],
): SequenceSlot | undefined {
  let best = free[0];
  let most = 0;
  for (const slot of free) {
    const shared = slot.sharedTokens(prompt);
    if (shared <= most || shared * 2 < slot.keptTokens) continue;
    best = slot;
    most = shared;
  }
  return best;
}

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
   * @throws the signal's reason when it is aborted first; its entry in the queue is removed.
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

/**
 * How many prompt tokens are read at once. Between two slices a request can be given up, and nothing
 * breaks into one: a slice of about 60 ms frees a slot within 100 ms of its client's
 * leaving, on slow machines and with large models too.
 */
const wantedMs = 60;
/** Smaller batches are hardly faster than larger ones (measured with 8 to 64 on a processor). */
const fewest = 8;
/** Before anything was measured. */
const first = 16;
/** Weight of a new measurement. */
const learningRate = 0.5;

export class SliceSizer {
  readonly #most: number;
  #msPerToken: number | undefined;

  /** @param most tokens of a slice. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Tokens of the next slice. */
  get tokens(): number {
    if (this.#msPerToken === undefined) return Math.min(first, this.#most);
    const fit = Math.floor(wantedMs / this.#msPerToken);
    return Math.max(Math.min(fewest, this.#most), Math.min(this.#most, fit));
  }

  /** Records how long this many tokens took, including the wait for others in the same batch. */
  took(tokens: number, ms: number): void {
    // The end of a prompt is short: its fixed cost does not show the cost of a token.
    if (tokens < Math.min(fewest, this.#most)) return;
    const each = ms / tokens;
    const known = this.#msPerToken ?? each;
    this.#msPerToken = known + (each - known) * learningRate;
  }
}

/**
 * A pause that lets one sequence change its stored state while others generate. The library computes batches in
 * a loop that ends only when no sequence requests its next token, and locks the state until then: with one
 * answer running, another request could not begin before its end. Each generation therefore checks here before
 * each step, and pauses while a change is waiting.
 */
export class StateGate {
  #wanting = 0;
  #paused: PromiseWithResolvers<void> | undefined;

  /** Undefined when the next step can be taken; else settles when it can. */
  pause(): Promise<void> | undefined {
    return this.#paused?.promise;
  }

  /** Runs what needs the lock, while the others pause. */
  async change<T>(work: () => Promise<T>): Promise<T> {
    this.#wanting += 1;
    this.#paused ??= Promise.withResolvers<void>();
    try {
      return await work();
    } finally {
      this.#wanting -= 1;
      if (this.#wanting === 0) {
        this.#paused.resolve();
        this.#paused = undefined;
      }
    }
  }
}
