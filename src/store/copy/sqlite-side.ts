/** A data directory as an end of a copy. A target has another name until it is complete. */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { hash } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { lockDataDir, type DataDirLock } from '../data-dir.ts';
import { openForReading, openForWriting } from '../sqlite/database.ts';
import { StoreError } from '../store-error.ts';
import { groupMembers, orderedTables } from './tables.ts';
import {
  copyValue,
  type CopyProgress,
  type CopyRow,
  type CopyTable,
  type CopyTarget,
  lastKey,
  readProgress,
  type TableSums,
} from './side.ts';

const marks = 'CREATE TABLE gateway_copy (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT';
const groupText = groupMembers.map((name) => `g.${name}`).join(' || char(31) || ');

/** How a column of the copy is read. */
function expression(table: string, column: string): string {
  if (table === 'attempts' && column === 'call_id') return 'c.id';
  if (column === 'price_id') return '(SELECT p.price FROM prices p WHERE p.id = t.price_id)';
  if (column === 'group_id') return groupText;
  return `t.${column}`;
}

function sourceOf(table: string): string {
  if (table === 'attempts') return 'attempts t JOIN calls c ON c.n = t.call_n';
  if (/^usage_(hours|days)$/.test(table))
    return `${table} t JOIN usage_groups g ON g.id = t.group_id`;
  return `${table} t`;
}

/** How a value of the copy is written. */
function placeholder(column: string): string {
  if (column === 'price_id') return '(SELECT id FROM prices WHERE price = ?)';
  if (column === 'group_id') {
    return `(SELECT g.id FROM usage_groups g WHERE ${groupText} = ?)`;
  }
  return '?';
}

export class SqliteSide implements CopyTarget {
  readonly shown: string;
  readonly #db: DatabaseSync;
  readonly #lock: DataDirLock;
  readonly #dir: string;
  /** Absent for a source. */
  readonly #unfinished: string | undefined;

  private constructor(dir: string, db: DatabaseSync, lock: DataDirLock, unfinished?: string) {
    this.shown = dir;
    this.#dir = dir;
    this.#db = db;
    this.#lock = lock;
    this.#unfinished = unfinished;
  }

  /** @throws StoreError `in_use` while a gateway runs there, `failed` where there is no store */
  static source(dir: string): SqliteSide {
    const path = join(dir, 'gateway.db');
    if (!existsSync(path)) throw new StoreError('failed', `${dir} has no gateway.db.`);
    const lock = lockDataDir(dir, '');
    try {
      return new SqliteSide(dir, openForReading(path), lock);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  /** @throws StoreError `in_use` while a gateway runs there, `failed` where there is a store already */
  static target(dir: string): SqliteSide {
    const lock = lockDataDir(dir, '');
    try {
      if (existsSync(join(dir, 'gateway.db'))) {
        throw new StoreError(
          'failed',
          `${dir} has a gateway.db already. Choose an empty directory.`,
        );
      }
      const unfinished = join(dir, 'gateway.db.copying');
      const db = openForWriting({ path: unfinished, durability: 'full', mayCreate: true });
      return new SqliteSide(dir, db, lock, unfinished);
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  get origin(): string {
    const row = this.#db.prepare("SELECT value FROM settings WHERE name = 'seal_key'").get();
    return hash('sha256', `copy of ${String(row?.['value'] ?? this.#dir)}`);
  }

  async tables(): Promise<readonly CopyTable[]> {
    const names = this.#db
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .all()
      .map((row) => String(row['name']));
    return orderedTables(
      names.map((name) => {
        const columns = this.#db.prepare('SELECT name, pk FROM pragma_table_info(?)').all(name);
        const key = columns
          .filter((row) => Number(row['pk']) > 0)
          .toSorted((a, b) => Number(a['pk']) - Number(b['pk']));
        const named = (rows: typeof columns): string[] => rows.map((row) => String(row['name']));
        return { name, columns: named(columns), key: named(key) };
      }),
    );
  }

  async rows(
    { name, columns, key }: CopyTable,
    after: CopyRow | undefined,
    most: number,
  ): Promise<readonly CopyRow[]> {
    const of = (column: string): string => expression(name, column);
    const keys = key.map(of).join(', ');
    const behind =
      after === undefined ? '' : `WHERE (${keys}) > (${key.map(() => '?').join(', ')})`;
    const statement = this.#db.prepare(
      `SELECT ${columns.map((column) => `${of(column)} AS ${column}`).join(', ')}
       FROM ${sourceOf(name)} ${behind} ORDER BY ${keys} LIMIT ?`,
    );
    statement.setReadBigInts(true);
    return statement
      .all(...inputs(after ?? []), most)
      .map((row) => columns.map((column) => copyValue(row[column])));
  }

  async sums({ name, columns }: CopyTable): Promise<TableSums> {
    const types = new Map(
      this.#db
        .prepare('SELECT name, type FROM pragma_table_info(?)')
        .all(name)
        .map((row) => [String(row['name']), String(row['type'])]),
    );
    const measures = columns.flatMap((column) => {
      const own = column === 'call_id' && name === 'attempts' ? 'call_n' : column;
      const count = `count(${own}) AS "${column} values"`;
      const type = types.get(column);
      if (/^(price_id|group_id|call_id)$/.test(column) || type === 'REAL') return [count];
      // In two parts: times of ten million calls are beyond 64 bits together.
      return type === 'INTEGER'
        ? [
            count,
            `coalesce(sum(${column} >> 20), 0) AS "${column} high"`,
            `coalesce(sum(${column} & 1048575), 0) AS "${column} low"`,
          ]
        : [count, `coalesce(sum(octet_length(${column})), 0) AS "${column} bytes"`];
    });
    const row = this.#db
      .prepare(`SELECT count(*) AS rows, ${measures.join(', ')} FROM ${name}`)
      .get();
    return Object.fromEntries(
      Object.entries(row ?? {}).map(([measure, value]) => [measure, String(value)]),
    );
  }

  async progress(): Promise<CopyProgress | undefined> {
    const has = this.#db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'gateway_copy'").get();
    if (has === undefined) return undefined;
    const rows = this.#db.prepare('SELECT name, value FROM gateway_copy').all();
    return readProgress(rows.map((row) => [String(row['name']), String(row['value'])]));
  }

  async begin(origin: string): Promise<void> {
    this.#db.exec(marks);
    this.#mark('origin', origin);
  }

  async write(table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
    const { name, columns, key } = table;
    const isAttempts = name === 'attempts';
    const names = columns.map((column) => (isAttempts && column === 'call_id' ? 'call_n' : column));
    const places = columns.map((column) =>
      isAttempts && column === 'call_id'
        ? '(SELECT n FROM calls WHERE id = ?)'
        : placeholder(column),
    );
    const insert = this.#db.prepare(
      `INSERT INTO ${name} (${names.join(', ')}) VALUES (${places.join(', ')})`,
    );
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      for (const row of rows) insert.run(...inputs(row));
      this.#mark(`last ${name}`, lastKey(columns, key, rows));
      this.#db.exec('COMMIT');
    } catch (error) {
      this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  async finish(): Promise<void> {
    if (this.#unfinished === undefined) return;
    this.#db.exec('DROP TABLE gateway_copy; PRAGMA wal_checkpoint(TRUNCATE);');
    this.#db.close();
    rmSync(`${this.#unfinished}-wal`, { force: true });
    rmSync(`${this.#unfinished}-shm`, { force: true });
    renameSync(this.#unfinished, join(this.#dir, 'gateway.db'));
  }

  async close(): Promise<void> {
    if (this.#db.isOpen) this.#db.close();
    this.#lock.release();
  }

  #mark(name: string, value: string): void {
    const text = 'INSERT OR REPLACE INTO gateway_copy (name, value) VALUES (?, ?)';
    this.#db.prepare(text).run(name, value);
  }
}

function inputs(row: CopyRow): SQLInputValue[] {
  return row.map((value) => value);
}
