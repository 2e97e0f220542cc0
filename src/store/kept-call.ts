/** A call as one line of text, for what is not a row of the ledger yet: running calls, and the spool. */
import { tryParse } from '../core/json.ts';
import type { CallRow } from './calls.ts';
import { attemptColumns, callColumns, callValues, readCallRow } from './sqlite-call-rows.ts';
import type { Columns, Value } from './sqlite-columns.ts';
import { StoreError } from './store-error.ts';

const priceAt = callColumns.indexOf('price_id');

export function keptCall(row: CallRow): string {
  return JSON.stringify(callValues(row));
}

/** @throws StoreError `corrupt` */
export function readKeptCall(kept: string): CallRow {
  const values = tryParse(kept);
  if (!Array.isArray(values) || values.length < callColumns.length) throw unreadable();
  const flat = values.map((value): Value => {
    if (value === null || typeof value === 'string' || typeof value === 'number') return value;
    throw unreadable();
  });
  const attempts: Columns[] = [];
  for (let from = callColumns.length; from < flat.length; from += attemptColumns.length) {
    attempts.push(columnsOf(attemptColumns, flat.slice(from)));
  }
  return readCallRow({ ...columnsOf(callColumns, flat), price: flat[priceAt] ?? null }, attempts);
}

function columnsOf(names: readonly string[], values: readonly Value[]): Columns {
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? null]));
}

function unreadable(): StoreError {
  return new StoreError('corrupt', 'A call that the store keeps cannot be read.');
}
