/** The form of `idempotency:` in `gateway.yaml`: how long and how much is kept by `Idempotency-Key`. */
import { z } from 'zod';
import { size } from './limits-form.ts';
import { defaults } from './settings.ts';
import { duration } from './time-form.ts';

const mebibyte = 1024 ** 2;

export const idempotencyForm = z
  .strictObject({
    keep: duration('How long an answer is kept, 1m to 24h. Default 24h.', 60_000),
    answer: size({ least: 1024, most: 16 * mebibyte, text: '1KiB to 16MiB' }, [
      '1MiB',
      '256KiB',
    ]).describe('Longest answer that is kept. Default 1MiB.'),
    key: size({ least: mebibyte, most: 1024 ** 4, text: '1MiB to 1TiB' }, [
      '16MiB',
      '1GiB',
    ]).describe('What the answers of one API key may take; the oldest go first. Default 16MiB.'),
    total: size({ least: mebibyte, most: 1024 ** 4, text: '1MiB to 1TiB' }, [
      '256MiB',
      '10GiB',
    ]).describe(
      'What all answers in the store may take; whoever has most gives of its oldest. Default 256MiB (storage: memory, 64MiB).',
    ),
  })
  .superRefine(({ answer, key, total }, context) => {
    if (answer === undefined) return;
    for (const [name, room] of [
      ['key', key ?? defaults.idempotency.keyBytes],
      ['total', total],
    ] as const) {
      if (room === undefined || answer <= room) continue;
      const message = `must not be more than idempotency.${name}: an answer so long would have no room`;
      context.addIssue({ code: 'custom', path: ['answer'], message });
    }
  })
  .nullish()
  .describe('What is kept of calls with an Idempotency-Key (docs/idempotency.md).');
