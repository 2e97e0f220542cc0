/**
 * Runs work that is due for thousands of connections at once, a part of it in each turn of the event loop
 * (G10), so that other requests are served in between. Half-open heads that arrive together also time out
 * together.
 */
const budgetMs = 2;

export class DeferredWork {
  #waiting: (() => void)[] = [];
  #next = 0;

  /** Runs the work soon, in the order of `add` calls. */
  add(work: () => void): void {
    this.#waiting.push(work);
    if (this.#waiting.length === 1) setImmediate(() => this.#turn());
  }

  #turn(): void {
    const until = performance.now() + budgetMs;
    while (this.#next < this.#waiting.length && performance.now() < until) {
      this.#waiting[this.#next]?.();
      this.#next += 1;
    }
    if (this.#next < this.#waiting.length) {
      setImmediate(() => this.#turn());
      return;
    }
    this.#waiting = [];
    this.#next = 0;
  }
}
