/** The form of `limits:` in `gateway.yaml`: bounds of the whole gateway. */
import { z } from 'zod';
import { whole } from './number-form.ts';
import { readSize, sizePattern } from './quantity.ts';
import { duration, orReference } from './time-form.ts';

interface Bounds {
  readonly least: number;
  readonly most: number;
  /** Both, as they are told. */
  readonly text: string;
}

/** A number of bytes, or nothing. */
export function size({ least, most, text }: Bounds, examples: string[]) {
  return z
    .union([
      z.string().meta({ pattern: sizePattern + orReference, examples }),
      z.number().int().meta({ description: 'Bytes' }),
    ])
    .transform((value, context) => {
      const bytes = typeof value === 'number' ? value : readSize(value);
      if (bytes !== undefined && bytes >= least && bytes <= most) return bytes;
      const form = `is no size (${examples.join(', ')}, bytes)`;
      const message = bytes === undefined ? form : `must be ${text}`;
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .optional();
}

const mebibyte = 1024 ** 2;

export const limitsForm = z
  .strictObject({
    body: size({ least: 1, most: 512 * mebibyte, text: '1B to 512MiB' }, [
      '32MiB',
      '10MB',
    ]).describe('Largest request body. Default 32MiB.'),
    streams: whole(1, 1_000_000).describe(
      'Calls at the same time; above it callers get "overloaded". Default 3000.',
    ),
    memory: size({ least: 128 * mebibyte, most: 1024 ** 4, text: '128MiB to 1TiB' }, [
      '512MiB',
      '2GB',
    ]).describe(
      'What the process may use: half of it is for request bodies; near it calls are refused, not killed. Default: what its container or machine has.',
    ),
    connections: whole(10, 1_000_000).describe(
      'Connections of clients at the same time; idle ones are closed first. Default 10000, or what the system lets it open.',
    ),
    key_share: whole(1, 100).describe(
      'Percent of the calls at the same time that one key may hold while others ask too and places are scarce. Default 50.',
    ),
    loop_delay: duration(
      'Fewer calls are taken while the usual turn of the event loop takes longer. Default 25ms.',
      5,
    ),
    body_rate: size({ least: 1, most: 16 * mebibyte, text: '1B to 16MiB' }, [
      '16KiB',
      '1KiB',
    ]).describe(
      'Bytes a second at which a request body must come, after 5s of grace; else 408. Default 16KiB.',
    ),
    bad_keys: whole(1, 1_000_000).describe(
      'Refused keys a minute and client address; above it 429 instead of 401. Default 20.',
    ),
  })
  .nullish()
  .describe('Bounds of the whole gateway (docs/overload.md).');
