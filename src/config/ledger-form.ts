/** The form of `ledger:` in `gateway.yaml`. */
import { z } from 'zod';

const unitMs: ReadonlyMap<string, number> = new Map([
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
]);
const spanPattern = '^(\\d{1,5}(h|d|w)|forever)$';
const dayMs = 86_400_000;
const maxMs = 3660 * 86_400_000;

/** A length of time in hours, days or weeks, in ms once it is read. @param leastMs a day, or an hour */
export function span(description: string, leastMs: 3_600_000 | 86_400_000 = dayMs) {
  return z
    .string()
    .meta({ pattern: `${spanPattern}|\\$\\{`, examples: ['90d', '26w', 'forever'] })
    .transform((text, context) => {
      if (text === 'forever') return Number.POSITIVE_INFINITY;
      const isSpan = new RegExp(spanPattern).test(text);
      const ms = isSpan ? Number(text.slice(0, -1)) * (unitMs.get(text.slice(-1)) ?? NaN) : NaN;
      if (ms >= leastMs && ms <= maxMs) return ms;
      const message = isSpan
        ? `must be ${leastMs === dayMs ? '1d' : '1h'} to 3660d, or forever`
        : 'is no span (90d, 26w, forever)';
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .optional()
    .describe(description);
}

export const ledgerForm = z
  .strictObject({
    keep: span('How long each call is kept, with its attempts. Default 90d.'),
    keep_hours: span(
      'How long sums by hour are kept, at least as long as calls; sums by day stay for ever. Default 400d.',
    ),
    durability: z
      .enum(['normal', 'full'])
      .optional()
      .describe(
        'SQLite: normal (default) may lose the last second of calls when the power fails, and nothing when only the process dies; full waits for the disk at each commit and loses nothing.',
      ),
  })
  .nullish()
  .describe('How long calls are kept, and how surely.');
