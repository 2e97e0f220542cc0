/**
 * Copies a whole store from one engine to the other. It may be ended at any moment and continues where it was; at its end
 * counts and sums of every column of every table are compared.
 */
import { StoreError } from '../store-error.ts';
import type { CopyRow, CopySource, CopyTable, CopyTarget } from './side.ts';

export interface CopiedTable {
  readonly name: string;
  readonly rows: number;
  /** How many measures of both sides were compared. */
  readonly compared: number;
}

/** Rows of a write. Contents and answers may have a megabyte each. */
const usualRows = 500;
const blobRows = 20;
const tablesWithBlobs = new Set(['kept_answers', 'kept_contents', 'kept_responses']);

export interface CopyOptions {
  readonly from: CopySource;
  readonly to: CopyTarget;
  /** Called when a table is complete. */
  onTable?(name: string, rows: number): void;
  /** Tables that stay behind. */
  readonly without?: ReadonlySet<string>;
}

/**
 * @throws StoreError when the target has data of another origin, lacks a table or a column, or when the copied data
 *   differs from the source
 */
export async function copyStore({
  from,
  to,
  onTable,
  without = new Set(),
}: CopyOptions): Promise<readonly CopiedTable[]> {
  const begun = await to.progress();
  if (begun === undefined) await to.begin(from.origin);
  else if (begun.origin !== from.origin) {
    throw new StoreError(
      'failed',
      `${to.shown} holds an unfinished copy of another store. Finish that copy, or choose an empty target.`,
    );
  }
  const tables = matching(await from.tables(), await to.tables(), to.shown);
  for (const table of tables) {
    if (without.has(table.name)) continue;
    const written = await copyTable(from, to, table, begun?.last.get(table.name));
    onTable?.(table.name, written);
  }
  const copied: CopiedTable[] = [];
  for (const table of tables) {
    if (!without.has(table.name)) copied.push(await compare(from, to, table));
  }
  await to.finish();
  return copied;
}

/** The source's tables; the target must have the same. */
function matching(
  from: readonly CopyTable[],
  to: readonly CopyTable[],
  shown: string,
): readonly CopyTable[] {
  for (const { name, columns } of from) {
    const there = to.find((each) => each.name === name)?.columns ?? [];
    const missing = columns.find((column) => !there.includes(column));
    if (missing !== undefined) {
      throw new StoreError('failed', `${shown} has no column ${name}.${missing}.`);
    }
  }
  return from;
}

/** @returns the rows that this run has written */
async function copyTable(
  from: CopySource,
  to: CopyTarget,
  table: CopyTable,
  last: CopyRow | undefined,
): Promise<number> {
  const most = tablesWithBlobs.has(table.name) ? blobRows : usualRows;
  const indexes = table.key.map((name) => table.columns.indexOf(name));
  let after = last;
  for (let written = 0; ;) {
    const rows = await from.rows(table, after, most);
    const end = rows.at(-1);
    if (end === undefined) return written;
    await to.write(table, rows);
    written += rows.length;
    after = indexes.map((index) => end[index] ?? null);
  }
}

async function compare(from: CopySource, to: CopySource, table: CopyTable): Promise<CopiedTable> {
  const [there, here] = [await from.sums(table), await to.sums(table)];
  const measures = Object.keys(there);
  const wrong = measures.find((measure) => there[measure] !== here[measure]);
  if (wrong !== undefined) {
    throw new StoreError(
      'failed',
      `The copy of ${table.name} is not equal: ${wrong} is ${there[wrong] ?? ''} in ${from.shown} and ` +
        `${here[wrong] ?? 'nothing'} in ${to.shown}. The copy stays unfinished; empty the target and copy again.`,
    );
  }
  return { name: table.name, rows: Number(there['rows'] ?? 0), compared: measures.length };
}
