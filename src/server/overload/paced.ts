/**
 * Work that falls due for thousands at once, done a little in each turn of the event loop (G10): whoever
 * asks for something meanwhile has his turns in between. Half-open heads end in the crowds in which they came.
 */
const budgetMs = 2;

export class Paced {
  #waiting: (() => void)[] = [];
  #next = 0;

  /** Does it soon, in the order in which it came. */
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
