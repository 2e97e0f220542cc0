/**
 * Lets one sequence change its kept state while others generate. The library computes batches in a
 * loop that ends only when no sequence asks for its next token, and keeps the state locked until then:
 * with one answer running, another request could not begin before that answer's end. So whoever
 * generates asks here before each step, and pauses while somebody wants to change something.
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
