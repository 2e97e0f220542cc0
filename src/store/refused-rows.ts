/**
 * A row that a store always refuses must not block all others for ever: it is found among
 * the others, and moved to a file for a person to read.
 */
import { appendFile } from 'node:fs/promises';
import type { CallRow } from './calls.ts';
import { callText } from './call-rows.ts';
import { createPrivateFile } from './data-dir.ts';
import { StoreError } from './store-error.ts';

export interface RefusedRow {
  readonly row: CallRow;
  readonly reason: string;
}

/**
 * Records rows, and separates those that the store refuses.
 * @param record writes all of them or none, and takes rows that are there already
 * @returns those that are refused because of their content
 * @throws what `record` throws for another reason; then any of them may be written.
 */
export async function recordSeparately(
  rows: readonly CallRow[],
  record: (rows: readonly CallRow[]) => Promise<void>,
): Promise<readonly RefusedRow[]> {
  const [row] = rows;
  if (row === undefined) return [];
  try {
    await record(rows);
    return [];
  } catch (error) {
    if (!isOfRow(error)) throw error;
    if (rows.length === 1) return [{ row, reason: String(error) }];
  }
  const middle = Math.ceil(rows.length / 2);
  const refused = await recordSeparately(rows.slice(0, middle), record);
  return [...refused, ...(await recordSeparately(rows.slice(middle), record))];
}

/** Appends them to a private file, a line of JSON each. @throws the system's error */
export async function quarantine(path: string, refused: readonly RefusedRow[]): Promise<void> {
  createPrivateFile(path);
  await appendFile(path, refused.map(({ row }) => `${lineOf(row)}\n`).join(''), { flush: true });
}

/** A running call whose gateway is gone, and that cannot be recorded. */
export interface RefusedOrphan {
  readonly id: string;
  /** The note of the call. */
  readonly call: string;
  readonly reason: string;
}

/** Appends it to a private file, for a person to read. @throws the system's error */
export async function quarantineOrphan(path: string, orphan: RefusedOrphan): Promise<void> {
  createPrivateFile(path);
  await appendFile(path, `${JSON.stringify(orphan)}\n`, { flush: true });
}

/** Whether the content of a row is at fault, including values of a wrong type. */
export function isOfRow(error: unknown): boolean {
  if (error instanceof StoreError) return error.kind === 'refused' || error.kind === 'corrupt';
  return error instanceof TypeError;
}

/** The row as JSON, whole. */
export function lineOf(row: CallRow): string {
  try {
    return callText(row);
  } catch {
    return JSON.stringify(row);
  }
}
