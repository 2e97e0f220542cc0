/**
 * A pause that lets one sequence change its stored state while others generate. The library computes batches in
 * a loop that ends only when no sequence asks for its next token, and locks the state until then: with one
 * answer running, another request could not begin before its end. Each generation therefore checks here before
 * each step, and pauses while a change is waiting.
 */
export class Turns {
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
