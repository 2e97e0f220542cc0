/** The forms of times in `gateway.yaml`: durations, limits of calls, what waiting clients are told. */
import { z } from 'zod';
import { durationPattern, readDuration, readSize, sizePattern } from './quantity.ts';

/** A value may be a reference before it is resolved: editors see the text as it stands in the file. */
export const orReference = '|\\$\\{';
const maxDurationMs = 24 * 3_600_000;
const maxRate = 1024 * 1024;

/** In quotes it would be none either. */
const unitMissing = 'is a number without a unit; write a duration (500ms, 2s, 30m, 1h)';

/** A length of time, in ms once it is read. */
export function duration(description: string, leastMs = 1) {
  return z
    .string({ error: ({ input }) => (typeof input === 'number' ? unitMissing : undefined) })
    .meta({ pattern: durationPattern + orReference, examples: ['2s', '500ms', '30m'] })
    .transform((text, context) => {
      const ms = readDuration(text);
      if (ms !== undefined && ms >= leastMs && ms <= maxDurationMs) return ms;
      context.addIssue({
        code: 'custom',
        message:
          ms === undefined ? 'is no duration (500ms, 2s, 30m, 1h)' : `must be ${leastMs}ms to 24h`,
      });
      return z.NEVER;
    })
    .optional()
    .describe(description);
}

const rate = z
  .union([
    z.string().meta({ pattern: sizePattern + orReference, examples: ['64B', '1KiB'] }),
    z.number().int().meta({ description: 'Bytes' }),
  ])
  .transform((value, context) => {
    const bytes = typeof value === 'number' ? value : readSize(value);
    if (bytes !== undefined && bytes >= 1 && bytes <= maxRate) return bytes;
    context.addIssue({
      code: 'custom',
      message: bytes === undefined ? 'is no size (64B, 1KiB, bytes)' : 'must be 1B to 1MiB',
    });
    return z.NEVER;
  })
  .optional();

/** `timeouts:` wherever it stands. */
export const timeoutsForm = z
  .strictObject({
    connect: duration('Until the connection stands. Default 2s.'),
    first_event: duration(
      'Until the first event of a stream. Default 60s. Where it is set and reasoning is not, it holds for reasoning too.',
    ),
    reasoning: duration(
      'The same where a model reasons first: it is known to, or the call asks for it. Default 5m.',
    ),
    document: duration(
      'Until the whole of an answer that the provider sends as one document. Default 10m.',
    ),
    idle: duration('Between two events of a stream. Default 60s.'),
    total: duration('The whole call. Default 30m.'),
    min_rate: rate.describe(
      'Bytes a second that a stream must bring at least, on average of each rate_window. Default: not looked at.',
    ),
    rate_window: duration('What min_rate is the average of. Default 30s.', 1000),
  })
  .nullish();

/** `never`, or a duration; one form, so that a mistake is told as what it is. */
function orNever(description: string) {
  return z
    .string()
    .meta({ pattern: `^never$|${durationPattern}${orReference}`, examples: ['15s', 'never'] })
    .transform((text, context) => {
      if (text === 'never') return Number.POSITIVE_INFINITY;
      const ms = readDuration(text);
      if (ms !== undefined && ms >= 1 && ms <= maxDurationMs) return ms;
      context.addIssue({
        code: 'custom',
        message:
          ms === undefined
            ? 'is neither never nor a duration (500ms, 2s, 30m, 1h)'
            : 'must be 1ms to 24h',
      });
      return z.NEVER;
    })
    .optional()
    .describe(description);
}

/** `clients:` of the file. */
export const clientsForm = z
  .strictObject({
    keep_alive: z
      .union([
        orNever(''),
        z.strictObject({
          chat: orNever(
            'Comments (: ping) in chat streams; never for clients that stumble on them.',
          ),
          messages: orNever('ping events and comments in messages streams.'),
        }),
      ])
      .optional()
      .describe(
        'After so much silence, from the start of the call on, a stream gets a sign of life. Default 15s; never = not at all.',
      ),
    stalled: duration(
      'A client that takes no bytes of its answer for so long is cut. Default 60s.',
    ),
  })
  .nullish();
