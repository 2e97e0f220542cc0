/** The counted items of a call: token classes, and other items with a price. */

/**
 * A new class is one row here: the usage of the dialects, the columns and sums of the store, the counts of the admin
 * API and of `usage` follow. `sum`: the roll-ups keep a sum of it. `about`: its text in the admin API.
 */
export const tokenClasses = [
  {
    member: 'freshInputTokens',
    column: 'fresh_input_tokens',
    sum: false,
    about: 'Input neither read from nor written to a cache.',
  },
  {
    member: 'cacheReadTokens',
    column: 'cache_read_tokens',
    sum: true,
    about: 'Input read from a cache.',
  },
  {
    member: 'cacheWriteTokens',
    column: 'cache_write_tokens',
    sum: true,
    about: 'Input written to a cache, whatever its lifetime.',
  },
  {
    member: 'cacheWriteLongTokens',
    column: 'cache_write_1h_tokens',
    sum: false,
    about: 'The part of cache_write_tokens that is cached for an hour.',
  },
  {
    member: 'outputTokens',
    column: 'output_tokens',
    sum: true,
    about: 'All output, reasoning included.',
  },
  {
    member: 'reasoningTokens',
    column: 'reasoning_tokens',
    sum: false,
    about: 'The part of output_tokens spent on reasoning.',
  },
  {
    member: 'audioInputTokens',
    column: 'audio_input_tokens',
    sum: true,
    about: 'Audio tokens of all input, if the upstream reports them.',
  },
  {
    member: 'imageInputTokens',
    column: 'image_input_tokens',
    sum: true,
    about: 'Image tokens of all input, if the upstream reports them.',
  },
  {
    member: 'videoInputTokens',
    column: 'video_input_tokens',
    sum: true,
    about: 'Video tokens of all input, if the upstream reports them.',
  },
  {
    member: 'audioOutputTokens',
    column: 'audio_output_tokens',
    sum: true,
    about: 'Audio tokens of output_tokens, if the upstream reports them.',
  },
  {
    member: 'imageOutputTokens',
    column: 'image_output_tokens',
    sum: true,
    about: 'Image tokens of output_tokens, if the upstream reports them.',
  },
  {
    member: 'webSearches',
    column: 'web_searches',
    sum: true,
    about: 'Web searches that the provider ran.',
  },
  {
    member: 'images',
    column: 'images',
    sum: true,
    about: 'Images in the prompt, counted by the gateway where each has a price.',
  },
] as const;

type ClassRow = (typeof tokenClasses)[number];
export type SummedRow = Extract<ClassRow, { readonly sum: true }>;

/** The token classes that roll-ups sum. */
export const summedClasses: readonly SummedRow[] = tokenClasses.filter((row) => row.sum);

/** Counts of one call; absent = not known, never 0. */
export type CountedUsage = { readonly [C in ClassRow['member']]?: number };
