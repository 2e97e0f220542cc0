/** Columns of SQLite rows as values; NULL is absent. */
import type { SQLInputValue, SQLOutputValue } from 'node:sqlite';

export type Columns = Record<string, SQLOutputValue>;
export type Value = string | number | null;

export function text(row: Columns, column: string): string {
  return optionalText(row, column) ?? '';
}

export function optionalText(row: Columns, column: string): string | undefined {
  const value = row[column];
  return typeof value === 'string' ? value : undefined;
}

export function number(row: Columns, column: string): number {
  return optionalNumber(row, column) ?? 0;
}

export function optionalNumber(row: Columns, column: string): number | undefined {
  const value = row[column];
  return typeof value === 'number' ? value : undefined;
}

/** A number that a STRICT integer column takes: one odd number must not hold up a whole batch. */
export function whole(value: number | undefined): number | null {
  const rounded = Math.round(value ?? Number.NaN);
  return Number.isSafeInteger(rounded) ? rounded : null;
}

export function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}

/** A member only when there is a value: absent stays absent. */
export function present<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  const member: { [P in K]?: V } = {};
  if (value !== undefined) member[key] = value;
  return member;
}

/** `INSERT` of these columns, all of them parameters. */
export function insertInto(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
}

export type { SQLInputValue };
