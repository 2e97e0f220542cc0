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
    if (text.endsWith(replacement) && this.#held.length < maxHeldTokens) return '';
    this.#release();
    return text;
  }

  /** What was held back, when no more tokens come. */
  end(): string {
    if (this.#held.length === 0) return '';
    const text = this.#detokenize(this.#held, this.#before);
    this.#release();
    return text;
  }

  #release(): void {
    this.#before = [...this.#before, ...this.#held].slice(-tokensBefore);
    this.#held.length = 0;
  }
}
