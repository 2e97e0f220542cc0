/** From tokens to text while they arrive: a character may be spread over several tokens. */
import type { Token } from 'node-llama-cpp';

/** Text of `tokens` where `before` are the tokens that stand ahead of them. */
export type Detokenize = (tokens: readonly Token[], before: readonly Token[]) => string;

const replacement = '\uFFFD';
/** A character has at most four bytes; what is still broken after that many tokens stays broken. */
const maxHeldTokens = 4;
/** Some tokenizers decide on a leading space by the tokens before. */
const tokensBefore = 4;

/** Detokenises one answer; holds back incomplete characters. */
export class TextPieces {
  readonly #detokenize: Detokenize;
  readonly #held: Token[] = [];
  #before: readonly Token[];

  constructor(detokenize: Detokenize, prompt: readonly Token[]) {
    this.#detokenize = detokenize;
    this.#before = prompt.slice(-tokensBefore);
  }

  /** The text that is complete with this token; '' while a character is incomplete. */
  push(token: Token): string {
    this.#held.push(token);
    const text = this.#detokenize(this.#held, this.#before);
    if (!text.endsWith(replacement)) {
      this.#release(this.#held.length);
      return text;
    }
    return this.#held.length < maxHeldTokens ? '' : this.#releaseWhole(text);
  }

  /** What was held back, when no more tokens come. */
  end(): string {
    if (this.#held.length === 0) return '';
    const text = this.#detokenize(this.#held, this.#before);
    this.#release(this.#held.length);
    return text;
  }

  /**
   * Gives what stands before an incomplete character: the replacement character may be the model's
   * own, complete one, with a character behind it that has only begun.
   */
  #releaseWhole(text: string): string {
    for (let begun = 1; begun < maxHeldTokens; begun++) {
      const count = this.#held.length - begun;
      const whole = this.#detokenize(this.#held.slice(0, count), this.#before);
      if (whole + replacement !== text) continue;
      this.#release(count);
      return whole;
    }
    this.#release(this.#held.length);
    return text;
  }

  #release(count: number): void {
    const released = this.#held.splice(0, count);
    this.#before = [...this.#before, ...released].slice(-tokensBefore);
  }
}
