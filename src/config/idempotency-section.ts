/** `idempotency:` of the file: how long and how much is kept by `Idempotency-Key`. */
import type { CheckedFile } from './config-file.ts';
import { durationText, sizeText } from './quantity.ts';
import { defaults, type IdempotencySettings, type OriginLine } from './settings.ts';

export function readIdempotency(
  file: CheckedFile | undefined,
  book: 'memory' | 'sqlite' | 'postgres',
): IdempotencySettings {
  const form = file?.content.idempotency ?? {};
  const { keepMs, answerBytes, keyBytes, totalBytes, memoryTotalBytes } = defaults.idempotency;
  return {
    keepMs: form.keep ?? keepMs,
    answerBytes: form.answer ?? answerBytes,
    keyBytes: form.key ?? keyBytes,
    totalBytes: form.total ?? (book === 'memory' ? memoryTotalBytes : totalBytes),
  };
}

export function idempotencyOrigins(
  idempotency: IdempotencySettings,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  const form = file?.content.idempotency ?? {};
  const line = (key: keyof typeof form, value: string): OriginLine => ({
    path: `idempotency.${key}`,
    value,
    origin:
      file === undefined || form[key] === undefined ? 'default' : file.where(['idempotency', key]),
  });
  return [
    line('keep', durationText(idempotency.keepMs)),
    line('answer', sizeText(idempotency.answerBytes)),
    line('key', sizeText(idempotency.keyBytes)),
    line('total', sizeText(idempotency.totalBytes)),
  ];
}
