/**
 * Guesses token counts from bytes where a number is needed before the upstream reports one
 * (`message_start`, gaps in usage). The ratio is learned per model from reported usage; tokenising
 * on the request path would cost 5–12 ms per 100 KB (performance.md).
 */

const defaultBytesPerToken = 4;
/** Weight of a new observation. */
const learningRate = 0.2;
const maxModels = 1000;

interface Ratios {
  input: number;
  output: number;
}

export class TokenEstimator {
  readonly #ratios = new Map<string, Ratios>();

  /** Tokens of a prompt whose request body has so many bytes; at least 1. */
  input(model: string, bytes: number): number {
    return Math.max(1, Math.ceil(bytes / this.#of(model).input));
  }

  /** Tokens of so many bytes of generated text; 0 for none. */
  output(model: string, bytes: number): number {
    return Math.ceil(bytes / this.#of(model).output);
  }

  /** Learns from a finished call. Tiny samples say nothing about a ratio and are left out. */
  learn(model: string, side: 'input' | 'output', sample: { bytes: number; tokens: number }): void {
    if (sample.tokens < 16 || sample.bytes < 16) return;
    const ratios = this.#of(model);
    const observed = Math.min(16, Math.max(0.5, sample.bytes / sample.tokens));
    ratios[side] += (observed - ratios[side]) * learningRate;
    if (!this.#ratios.has(model) && this.#ratios.size < maxModels) this.#ratios.set(model, ratios);
  }

  #of(model: string): Ratios {
    return this.#ratios.get(model) ?? { input: defaultBytesPerToken, output: defaultBytesPerToken };
  }
}
