/** What the API of a model takes besides text, from the traits that its requests are written by. */
import type { UpstreamTraits } from '../core/traits.ts';

export const abilities = [
  'images',
  'files',
  'tools',
  'reasoning',
  'json_schema',
  'prompt_caching',
] as const;
export type Ability = (typeof abilities)[number];

const tests: { readonly [A in Ability]: (traits: UpstreamTraits) => boolean } = {
  images: ({ imageInput }) => imageInput !== 'none',
  files: ({ fileInput }) => fileInput,
  tools: ({ toolChoice }) => toolChoice,
  reasoning: ({ reasonsFirst, thinking, reasoningControl }) =>
    reasonsFirst === true || thinking !== 'none' || reasoningControl !== 'none',
  json_schema: ({ responseFormat }) => responseFormat === 'schema',
  prompt_caching: ({ cacheMarks, cacheBreakpoints }) => cacheMarks || cacheBreakpoints === true,
};

/** What all of them take; undefined: a server among them is not known, and its traits are a guess. */
export function abilitiesOf(all: readonly UpstreamTraits[]): readonly Ability[] | undefined {
  if (all.length === 0 || all.some(({ known }) => known !== true)) return undefined;
  return abilities.filter((ability) => all.every((traits) => tests[ability](traits)));
}
