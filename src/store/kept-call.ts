/** A call as one line of text, for what is not a row of the ledger yet: running calls, and the spool. */
import { isObject, tryParse } from '../core/json.ts';
import { pieceColumns, pieces, type CallRow } from './calls.ts';
import {
  attemptColumns,
  callColumns,
  callValues,
  readCallRow,
  type CallValues,
} from './sqlite-call-rows.ts';
import type { Columns, Value } from './sqlite-columns.ts';
import { StoreError } from './store-error.ts';

/** What is in the values, in their order. */
interface Columned {
  readonly call: readonly string[];
  readonly attempt: readonly string[];
}

const pieceNames: readonly string[] = pieces.map((piece) => pieceColumns[piece]);
const isOlder = (column: string): boolean =>
  !pieceNames.some((name) => column === `reported_${name}` || column === `charged_${name}`);
/** By the form: an array is of a version that did not count pieces. */
const older: Columned = {
  call: callColumns.filter(isOlder),
  attempt: attemptColumns.filter(isOlder),
};
const newer: Columned = { call: callColumns, attempt: attemptColumns };

export function keptCall(row: CallRow): string {
  return keptValues(callValues(row));
}

/** An object, so that a version that knows arrays only sets it aside instead of misreading it. */
export function keptValues(values: CallValues): string {
  return JSON.stringify({ call: values });
}

/** @throws StoreError `corrupt` */
export function readKeptCall(kept: string): CallRow {
  const flat = readKeptValues(kept);
  const { call, attempt } = newer;
  const attempts: Columns[] = [];
  for (let from = call.length; from < flat.length; from += attempt.length) {
    attempts.push(columnsOf(attempt, flat.slice(from)));
  }
  const price = flat[call.indexOf('price_id')] ?? null;
  return readCallRow({ ...columnsOf(call, flat), price }, attempts);
}

/** The values in today's order, whichever version kept them. @throws StoreError `corrupt` */
export function readKeptValues(kept: string): CallValues {
  const parsed = tryParse(kept);
  const [values, columns] = isObject(parsed) ? [parsed['call'], newer] : [parsed, older];
  if (!Array.isArray(values) || values.length < columns.call.length) throw unreadable();
  const flat = values.map((value): Value => {
    if (value === null || typeof value === 'string' || typeof value === 'number') return value;
    throw unreadable();
  });
  if (columns === newer) return flat;
  const all = inOrder(columnsOf(older.call, flat), newer.call);
  for (let from = older.call.length; from < flat.length; from += older.attempt.length) {
    all.push(...inOrder(columnsOf(older.attempt, flat.slice(from)), newer.attempt));
  }
  return all;
}

/** What the older one did not have is absent. */
function inOrder(columns: Columns, names: readonly string[]): Value[] {
  return names.map((name): Value => {
    const value = columns[name];
    return typeof value === 'string' || typeof value === 'number' ? value : null;
  });
}

function columnsOf(names: readonly string[], values: readonly Value[]): Columns {
  return Object.fromEntries(names.map((name, i) => [name, values[i] ?? null]));
}

function unreadable(): StoreError {
  return new StoreError('corrupt', 'A call that the store keeps cannot be read.');
}
