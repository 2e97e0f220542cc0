/**
 * How many prompt tokens are read at once. Between two slices a request can be given up, and nothing
 * breaks into one: a slice that takes about 60 ms lets a place be free within 100 ms of its client's
 * leaving, on slow machines and with large models too.
 */
const wantedMs = 60;
/** Smaller batches are hardly faster than larger ones (measured with 8 to 64 on a processor). */
const fewest = 8;
/** Before anything was measured. */
const first = 16;
/** Weight of a new measurement. */
const learningRate = 0.5;

export class Pace {
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
    // The end of a prompt is short: its fixed cost tells nothing of the tokens.
    if (tokens < Math.min(fewest, this.#most)) return;
    const each = ms / tokens;
    const known = this.#msPerToken ?? each;
    this.#msPerToken = known + (each - known) * learningRate;
  }
}
