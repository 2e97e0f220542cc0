/** `content:` of the file: how long and how much is kept of what calls say. */
import type { CheckedFile } from './config-file.ts';
import { daysText } from './ledger-section.ts';
import { sizeText } from './quantity.ts';
import { defaults, type ContentSettings, type OriginLine } from './settings.ts';

export function readContent(
  file: CheckedFile | undefined,
  book: 'memory' | 'sqlite' | 'postgres',
): ContentSettings {
  const form = file?.content.content ?? {};
  const { keepMs, bodyBytes, totalBytes, memoryTotalBytes } = defaults.content;
  return {
    keepMs: form.keep ?? keepMs,
    bodyBytes: form.body ?? bodyBytes,
    totalBytes: form.total ?? (book === 'memory' ? memoryTotalBytes : totalBytes),
  };
}

export function contentOrigins(
  content: ContentSettings,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  const form = file?.content.content ?? {};
  const line = (key: keyof typeof form, value: string): OriginLine => ({
    path: `content.${key}`,
    value,
    origin:
      file === undefined || form[key] === undefined ? 'default' : file.where(['content', key]),
  });
  return [
    line('keep', daysText(content.keepMs)),
    line('body', sizeText(content.bodyBytes)),
    line('total', sizeText(content.totalBytes)),
  ];
}
