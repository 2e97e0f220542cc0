/** Members that several routes of the admin API have in common. */
import { z } from 'zod';

/** One page of a list. */
export const page = z.strictObject({
  limit: z.coerce
    .number('must be a number')
    .int('must be a whole number')
    .min(1, 'must be at least 1')
    .max(1000, 'must be at most 1000')
    .default(100)
    .describe('Entries at most.'),
  after: z.string().max(800).optional().describe('`next` of the page before.'),
});

export const next = z
  .string()
  .nullable()
  .describe('Pass as `after` for the next page; null on the last.');

export const noBody = z.strictObject({}).optional();

/** A time as the API writes it. */
export const time = z.iso.datetime();
