/** One end of a copy: a database whose tables are read and written row by row, with the values of JavaScript. */
import { tryParse } from '../../json/parse.ts';

/** A bigint is beyond what a number holds exactly: sums of money may be. */
export type CopyValue = null | number | bigint | string | Uint8Array;
export type CopyRow = readonly CopyValue[];

/** Columns of a table that both engines have; ids that the engines number themselves are named by what they stand for. */
export interface CopyTable {
  readonly name: string;
  /** In the order of the rows' values. */
  readonly columns: readonly string[];
  /** The columns that no two rows share. Rows are read in their order. */
  readonly key: readonly string[];
}

/** The contents of a table, for comparison: by column the number of values and their sum, or the length of its texts. */
export type TableSums = { readonly [measure: string]: string };

export interface CopySource {
  /** Where it is, for people; without user and password. */
  readonly shown: string;
  /** Distinguishes this database from every other. */
  readonly origin: string;
  tables(): Promise<readonly CopyTable[]>;
  /** Rows after a key, in the order of the key; `after` undefined = from the first. */
  rows(table: CopyTable, after: CopyRow | undefined, most: number): Promise<readonly CopyRow[]>;
  sums(table: CopyTable): Promise<TableSums>;
  close(): Promise<void>;
}

/** How far a copy has come: the last key of each table that was begun. */
export interface CopyProgress {
  readonly origin: string;
  readonly last: ReadonlyMap<string, CopyRow>;
}

export interface CopyTarget extends CopySource {
  /** Undefined where no copy was begun. */
  progress(): Promise<CopyProgress | undefined>;
  /**
   * Notes that a copy begins; the database cannot be used by a gateway until `finish`. @throws StoreError when it has
   * data
   */
  begin(origin: string): Promise<void>;
  /** Writes rows and how far the copy is, all or nothing. */
  write(table: CopyTable, rows: readonly CopyRow[]): Promise<void>;
  finish(): Promise<void>;
}

/** A value of a row of an engine; null for types that no column has. */
export function copyValue(value: unknown): CopyValue {
  if (typeof value === 'bigint') return exact(value);
  if (typeof value === 'number' || typeof value === 'string') return value;
  return value instanceof Uint8Array ? value : null;
}

/** A number where one holds it exactly. */
export function exact(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** The key of the last row, as JSON: from there a copy continues. */
export function lastKey(
  columns: readonly string[],
  key: readonly string[],
  rows: readonly CopyRow[],
): string {
  const last = rows.at(-1) ?? [];
  return JSON.stringify(key.map((name) => last[columns.indexOf(name)] ?? null));
}

/** The notes of a target, by name. */
export function readProgress(marks: readonly (readonly [string, string])[]): CopyProgress {
  const last = new Map<string, CopyRow>();
  for (const [name, value] of marks) {
    if (!name.startsWith('last ')) continue;
    const key = tryParse(value);
    if (Array.isArray(key)) last.set(name.slice('last '.length), key.map(copyValue));
  }
  return { origin: new Map(marks).get('origin') ?? '', last };
}
