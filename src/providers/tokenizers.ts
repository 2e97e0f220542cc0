/** Tokenizers and image rules of models that publish them, by model name; the first row that fits. */
import type { ImageRule, ModelTokenizer } from '../core/tokenizer.ts';

const tiles = (base: number, tile: number): ImageRule => ({ kind: 'tiles', base, tile });
const patches = (factor: number): ImageRule => ({ kind: 'patches', factor });
const o200k = (image: ImageRule): ModelTokenizer => ({
  encoding: 'o200k_base',
  image,
  functionTokens: 7,
});
const cl100k: ModelTokenizer = {
  encoding: 'cl100k_base',
  image: tiles(85, 170),
  functionTokens: 10,
};

// Image rules: platform.openai.com/docs/guides/images-vision, "Calculating costs".
const rows: readonly (readonly [name: RegExp, tokenizer: ModelTokenizer])[] = [
  [/^gpt-(4\.1|5)(\.\d+)?-mini/, o200k(patches(1.62))],
  [/^gpt-(4\.1|5)(\.\d+)?-nano/, o200k(patches(2.46))],
  [/^o4-mini/, o200k(patches(1.72))],
  [/^gpt-4o-mini/, o200k(tiles(2833, 5667))],
  [/^gpt-5/, o200k(tiles(70, 140))],
  [/^o[13]/, o200k(tiles(75, 150))],
  [/^(chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-oss|codex|o\d)/, o200k(tiles(85, 170))],
  [/^gpt-(3\.5|4)/, cl100k],
];

/** The tokenizer of a model, whoever serves it; undefined where none is public. */
export function tokenizerOf(model: string): ModelTokenizer | undefined {
  // Resellers name models `openai/gpt-oss-120b`; fine-tunes are `ft:gpt-4o:…`.
  const name = model.slice(model.lastIndexOf('/') + 1).replace(/^ft:/, '');
  return rows.find(([pattern]) => pattern.test(name))?.[1];
}
