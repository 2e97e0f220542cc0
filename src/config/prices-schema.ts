/** The form of `prices:` in `gateway.yaml`. Dollars become integers here, exactly as they are written. */
import { z } from 'zod';
import { decimalText, isBelowUnit, scaledDecimal } from '../core/money.ts';

const mostDollars = 1_000_000;

/** Dollars of a number as it stands in the file, as units of 10^-places dollars. */
function dollars(places: number, description: string) {
  return z
    .number()
    .min(0, 'must be at least 0')
    .max(mostDollars, `must be at most ${mostDollars}`)
    .transform((value, context) => {
      // The shortest text of a number is what was written, up to 15 digits.
      const read = scaledDecimal(String(value), places);
      if (read?.exact === true) return read.units;
      const message = isBelowUnit(String(value), places)
        ? `is less than the smallest amount, ${decimalText(1, places)}`
        : `must have at most ${places} decimals and 15 digits`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .describe(description);
}

/** Dollars per million tokens: the sixth decimal is one picodollar a token. */
function rate(description: string) {
  return dollars(6, description);
}

const rates = {
  input: rate('Uncached input. Dollars per million tokens, like all rates.'),
  output: rate('Output.'),
  cache_read: rate('Input read from a cache. Default: as input.').optional(),
  cache_write: rate('Input written to a cache. Default: as input.').optional(),
  cache_write_1h: rate('The same, kept for an hour. Default: as cache_write.').optional(),
  reasoning: rate('Reasoning tokens. Default: as output.').optional(),
  audio_input: rate('Audio in the prompt. Default: as input.').optional(),
  image_input: rate('Images in the prompt. Default: as input.').optional(),
  video_input: rate('Video in the prompt. Default: as input.').optional(),
  audio_cache_read: rate('Audio read from a cache. Default: as cache_read.').optional(),
  audio_output: rate('Audio output. Default: as output.').optional(),
  image_output: rate('Image output. Default: as output.').optional(),
};

/** By the length of the prompt. */
function tiers() {
  return z
    .array(
      z.strictObject({
        above: z
          .number()
          .int('must be a whole number')
          .min(0, 'must be at least 0')
          .max(1_000_000_000, 'must be at most 1000000000')
          .describe('Applies to prompts with more tokens than this, including cached ones.'),
        ...rates,
      }),
    )
    .optional()
    .describe('Rates for the whole call when its prompt is long, in ascending order of `above`.');
}

const service = z.strictObject({
  ...rates,
  tiers: tiers(),
});

const price = z.strictObject({
  ...rates,
  service_tiers: z
    .record(z.string().regex(/^[\w.-]{1,64}$/, 'is the name of a tier, such as priority'), service)
    .optional()
    .describe(
      'Rates of service tiers by their names (priority, flex, batch, fast …), instead of those above. Tiers that are not named cost what stands above; on keys that have a budget, asking for a dearer one is refused unless it is named.',
    ),
  tiers: tiers(),
  call: dollars(12, 'Dollars per call, regardless of its size.').optional(),
  per_image: dollars(12, 'Dollars per image in the prompt, in addition to its tokens.').optional(),
  web_search: dollars(12, 'Dollars per web search that the provider runs.').optional(),
});
/** `default`, or what a target is called. */
const pattern = z
  .string()
  .regex(/^(?:default|[^/\s]+\/\S+)$/, 'is provider/model, a glob such as team-vllm/*, or default');

export const pricesForm = z
  .record(pattern, price)
  .nullish()
  .describe(
    'What models cost, before the price package: by provider/model or a glob of them (a full name first, then the first glob that fits). default: models without a price, on keys that have a budget; without it they are refused there.',
  );
