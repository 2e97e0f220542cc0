/**
 * Guesses token counts where a number is needed before the upstream reports one (`message_start`, gaps
 * in usage, counts for models without a counter). A guess by the kinds of characters
 * (tokens/text-estimate.ts) is corrected by what the model has reported before; tokenising on the
 * request path would cost 5–12 ms per 100 KB (performance.md).
 */

/**
 * Bound of a guess before anything was learned: with this margin it is not more than 10 % below the
 * tokenizers in use (test/unit/tokens/text-estimate.test.ts). Media are outside of it.
 */
const margin = 1.05;
const defaultBytesPerToken = 4;
/** Weight of a new observation. */
const learningRate = 0.2;
/** How fast the high-water mark of a model falls back. */
const forgettingRate = 0.02;
/** The first calls of a model always train the estimator; later only calls whose estimate was used. */
const lessons = 8;
/** Fewer tokens or bytes say nothing about a ratio. */
const tiniestSample = 16;
const maxModels = 1000;

interface Learned {
  /** Reported prompt tokens by guessed ones: usual, and the highest of late. */
  usual: number;
  highest: number;
  lessons: number;
  /** Bytes of generated text by reported tokens. */
  output: number;
}

const unlearned: Readonly<Learned> = {
  usual: margin,
  highest: margin,
  lessons: 0,
  output: defaultBytesPerToken,
};

export class TokenEstimator {
  readonly #models = new Map<string, Learned>();

  /** Tokens of a prompt that was guessed at `guess`; at least 1. */
  prompt(model: string, guess: number): number {
    return Math.max(1, Math.ceil(guess * this.#of(model).usual));
  }

  /** The same where too low is worse than too high: what a client is told before it asks. */
  promptAtMost(model: string, guess: number): number {
    return Math.max(1, Math.ceil(guess * this.#of(model).highest));
  }

  /** Estimated tokens of this many bytes of generated text; 0 for none. */
  output(model: string, bytes: number): number {
    return Math.ceil(bytes / this.#of(model).output);
  }

  /** Whether a call with this many reported tokens should train the estimator even if that costs a count. */
  wantsLesson(model: string, tokens: number): boolean {
    return tokens >= tiniestSample && this.#of(model).lessons < lessons;
  }

  /** Learns from a finished call. Tiny samples are left out. */
  learnPrompt(model: string, sample: { readonly guess: number; readonly tokens: number }): void {
    if (sample.tokens < tiniestSample || sample.guess < tiniestSample) return;
    const observed = Math.min(4, Math.max(0.25, sample.tokens / sample.guess));
    const learned = this.#toLearn(model);
    learned.usual += (observed - learned.usual) * learningRate;
    const fallen = learned.highest + (observed - learned.highest) * forgettingRate;
    learned.highest = Math.max(observed, fallen);
    learned.lessons += 1;
  }

  /** The same of generated text. */
  learnOutput(model: string, sample: { readonly bytes: number; readonly tokens: number }): void {
    if (sample.tokens < tiniestSample || sample.bytes < tiniestSample) return;
    const observed = Math.min(16, Math.max(0.5, sample.bytes / sample.tokens));
    const learned = this.#toLearn(model);
    learned.output += (observed - learned.output) * learningRate;
  }

  #of(model: string): Readonly<Learned> {
    return this.#models.get(model) ?? unlearned;
  }

  #toLearn(model: string): Learned {
    const learned = this.#models.get(model) ?? { ...unlearned };
    if (this.#models.size < maxModels) this.#models.set(model, learned);
    return learned;
  }
}
