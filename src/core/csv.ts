/** CSV (RFC 4180) that a spreadsheet opens without running anything. */
import type { Json, JsonObject } from './conversation.ts';

/** A head line and a line for each row; what is not there is an empty field. */
export function csvText(names: readonly string[], rows: readonly JsonObject[]): string {
  const lines = [
    names.join(','),
    ...rows.map((row) => names.map((name) => field(row[name])).join(',')),
  ];
  return lines.map((line) => `${line}\r\n`).join('');
}

function field(value: Json | undefined): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number') return String(value);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  // A text that begins like a formula would be run as one (S12): the quote makes it text.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
