/** `ledger:` of the file: how long calls are kept, and how surely they are written. */
import type { CheckedFile } from './config-file.ts';
import type { ConfigIssue } from './config-error.ts';
import { defaults, type LedgerSettings, type OriginLine } from './settings.ts';

export function readLedger(
  file: CheckedFile | undefined,
  { report }: { report(issue: ConfigIssue): void },
): LedgerSettings {
  const form = file?.content.ledger ?? {};
  const { keepMs, keepHoursMs, durability } = defaults.ledger;
  const keep = form.keep ?? keepMs;
  if (file !== undefined && form.keep_hours !== undefined && form.keep_hours < keep) {
    const message = 'must be at least as long as keep: the sums are what is left of older calls';
    report(file.issue(['ledger', 'keep_hours'], message));
  }
  return {
    keepMs: keep,
    keepHoursMs: form.keep_hours ?? Math.max(keepHoursMs, keep),
    durability: form.durability ?? durability,
  };
}

export function ledgerOrigins(
  ledger: LedgerSettings,
  file: CheckedFile | undefined,
): readonly OriginLine[] {
  const form = file?.content.ledger ?? {};
  const line = (key: keyof typeof form, value: string): OriginLine => ({
    path: `ledger.${key}`,
    value,
    origin: file === undefined || form[key] === undefined ? 'default' : file.where(['ledger', key]),
  });
  return [
    line('keep', daysText(ledger.keepMs)),
    line('keep_hours', daysText(ledger.keepHoursMs)),
    line('durability', ledger.durability),
  ];
}

/** `90d`, `36h`, `forever`. */
export function daysText(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return 'forever';
  return ms % 86_400_000 === 0 ? `${ms / 86_400_000}d` : `${ms / 3_600_000}h`;
}
