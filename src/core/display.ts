/** Output for people: sizes, colours of a terminal, CSV. */
import type { Json, JsonObject } from '../json/value.ts';

/** `1.6 GB`: decimal units as in file managers, three digits at most. */
export function bytesText(bytes: number): string {
  return scaled(bytes, ['B', 'kB', 'MB', 'GB', 'TB'], ' ');
}

/** `1.48M`, `7.62B`: as model names spell parameters. */
export function countText(count: number): string {
  return scaled(count, ['', 'K', 'M', 'B', 'T'], '');
}

function scaled(amount: number, units: readonly string[], gap: string): string {
  let value = amount;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
  return `${value.toFixed(digits)}${gap}${units[unit] ?? ''}`;
}

/**
 * Whether tables, the banner and the log are coloured. FORCE_COLOR decides where it is set (0 and false: no colours),
 * then NO_COLOR (any value), then the terminal.
 */
export function wantsColour(
  isTerminal: boolean,
  env: { readonly [name: string]: string | undefined },
): boolean {
  const forced = env['FORCE_COLOR'] ?? '';
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return isTerminal && env['TERM'] !== 'dumb' && (env['NO_COLOR'] ?? '') === '';
}

/**
 * CSV (RFC 4180) that a spreadsheet opens without running formulas: a header line and a line for each row. An absent
 * value is an empty field.
 */
export function csvText(names: readonly string[], rows: readonly JsonObject[]): string {
  return `${names.join(',')}\r\n${csvRows(names, rows)}`;
}

/** The lines of these rows without a header: of a file that is written in parts. */
export function csvRows(names: readonly string[], rows: readonly JsonObject[]): string {
  return rows.map((row) => `${names.map((name) => field(row[name])).join(',')}\r\n`).join('');
}

/**
 * Before a sign that makes a spreadsheet run the text behind it as a formula (S12): a quote there makes it text. A spreadsheet
 * that separates fields by semicolons or tabs begins a cell after them, and after each line end: it does not see that the
 * field is quoted, since its own cell began before.
 */
const formulaStart = /(^|[;\t\r\n]"*)(?=[=+\-@＝＋－＠])/g;

function field(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const stopped = text.replaceAll(formulaStart, "$1'");
  const safe = /^[\t\r\n]/.test(stopped) ? `'${stopped}` : stopped;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
