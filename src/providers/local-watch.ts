/** Tells a hung engine from a slow one: by its signs of life, and by whether its tokens move. */
import type { Beat } from './local-process.ts';

/** Counts in ticks, not by the clock: a machine that slept, or a gateway that was busy, has none. */
export class Watch {
  readonly #ticksAllowed: number;
  readonly #hangMs: number;
  #unanswered = 0;
  #standing = 0;
  #steps = -1;

  constructor(hangMs: number, tickMs: number) {
    this.#hangMs = hangMs;
    this.#ticksAllowed = Math.ceil(hangMs / tickMs);
  }

  /** Before each question. Returns what is wrong, once it is. */
  tick(): string | undefined {
    this.#unanswered += 1;
    // The first tick only asks.
    if (this.#unanswered <= this.#ticksAllowed + 1) return undefined;
    return `gave no sign of life for ${this.#hangMs} ms`;
  }

  /** With each answer. Returns what is wrong, once it is. */
  beat({ computing, steps }: Beat): string | undefined {
    this.#unanswered = 0;
    if (computing === 0 || steps !== this.#steps) this.#standing = 0;
    else this.#standing += 1;
    this.#steps = steps;
    if (this.#standing < this.#ticksAllowed) return undefined;
    return `computed no token for ${this.#hangMs} ms`;
  }
}
