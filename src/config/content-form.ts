/** The form of `content:` in `gateway.yaml`: how long and how much is kept of what calls say. */
import { z } from 'zod';
import { span } from './ledger-form.ts';
import { size } from './limits-form.ts';

const mebibyte = 1024 ** 2;

export const contentForm = z
  .strictObject({
    keep: span(
      'How long it is kept, from 1h on, whatever ledger.keep says. Default 7d.',
      3_600_000,
    ),
    body: size({ least: 1024, most: 2 * mebibyte, text: '1KiB to 2MiB' }, [
      '256KiB',
      '1MiB',
    ]).describe(
      'Of each request and each answer; of what is longer beginning and end are kept. Default 256KiB.',
    ),
    total: size({ least: mebibyte, most: 1024 ** 4, text: '1MiB to 1TiB' }, [
      '1GiB',
      '20GiB',
    ]).describe(
      'What all of it may take in the store; the oldest goes first. Default 1GiB (storage: memory, 64MiB).',
    ),
  })
  .nullish()
  .describe('What is kept of calls of keys with log_content (docs/content.md).');
