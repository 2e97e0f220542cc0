/** So many pieces of work at the same time, the others in the order in which they came. */
export class Lanes {
  readonly #count: number;
  readonly #waiting: (() => void)[] = [];
  #busy = 0;

  constructor(count: number) {
    this.#count = count;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.enter();
    try {
      return await work();
    } finally {
      this.leave();
    }
  }

  /** Takes a lane; to be left by `leave`. */
  async enter(): Promise<void> {
    if (this.#busy < this.#count) this.#busy += 1;
    // Whoever is through leaves the lane to the next one.
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#busy -= 1;
    else next();
  }
}
