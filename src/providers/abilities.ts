/** The media and features that a model's API takes, from the traits with which its requests are written. */
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

/** The abilities of all targets. Undefined if one of the servers is unknown, since its traits are a guess. */
export function abilitiesOf(all: readonly UpstreamTraits[]): readonly Ability[] | undefined {
  if (all.length === 0 || all.some(({ known }) => known !== true)) return undefined;
  return abilities.filter((ability) => all.every((traits) => tests[ability](traits)));
}
