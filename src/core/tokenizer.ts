/** Which public tokenizer counts a model's prompts, as data (providers/http-provider.ts has the rows). */

export type Encoding = 'o200k_base' | 'cl100k_base';

/** How a vendor counts an image, by its published rule. */
export type ImageRule =
  /** Scaled to 2048 px, then to 768 px on the short side, then cut into tiles of 512 px. */
  | { readonly kind: 'tiles'; readonly base: number; readonly tile: number }
  /** Patches of 32 px, 1,536 at most, each worth `factor` tokens. */
  | { readonly kind: 'patches'; readonly factor: number };

export interface ModelTokenizer {
  readonly encoding: Encoding;
  readonly image: ImageRule;
  /** Tokens of a function's frame in the prompt: 7 with o200k, 10 before it. */
  readonly functionTokens: number;
}
