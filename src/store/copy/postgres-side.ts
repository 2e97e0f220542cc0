/** A PostgreSQL database as an end of a copy. No gateway starts on a target until it is complete. */
import { hash } from 'node:crypto';
import type { Client } from 'pg';
import type { ServerAddress } from '../../core/addresses.ts';
import { asPostgresError, connectionConfig } from '../postgres/pool.ts';
import { textId } from '../postgres/calls.ts';
import { prepareSchema } from '../postgres/prepare.ts';
import { requireSchemaVersion, schemaVersion, unfinishedCopy } from '../schema.ts';
import { StoreError } from '../store-error.ts';
import { groupMembers, orderedTables } from './tables.ts';
import {
  type CopyProgress,
  type CopyRow,
  type CopyTable,
  type CopyTarget,
  type CopyValue,
  exact,
  lastKey,
  readProgress,
  type TableSums,
} from './side.ts';

const separator = '\u001f';
const groupText = `concat_ws(chr(31), ${groupMembers.map((name) => `g.${name}`).join(', ')})`;

type Row = Readonly<Record<string, unknown>>;

export class PostgresSide implements CopyTarget {
  readonly shown: string;
  origin = '';
  readonly #client: Client;
  /** Types of all columns, by `table.column`. */
  readonly #types = new Map<string, string>();

  private constructor(client: Client, shown: string) {
    this.#client = client;
    this.shown = shown;
  }

  /** @throws StoreError while a gateway uses the database, or when it holds no store of this version */
  static async source(address: ServerAddress): Promise<PostgresSide> {
    const side = await PostgresSide.#open(address);
    try {
      requireSchemaVersion(await side.#version(), address.shown);
      const [open] = await side.#ask(
        'SELECT count(*)::integer AS n FROM budget_leases WHERE amount > 0',
      );
      if (Number(open?.['n']) > 0) {
        throw new StoreError(
          'failed',
          `${address.shown} has parts of budgets that a killed gateway had leased and may have spent. ` +
            'Let one gateway run for eleven minutes, which books them, then stop it with SIGTERM, and copy.',
        );
      }
      await side.#ask('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const [seal] = await side.#ask("SELECT value FROM settings WHERE name = 'seal_key'");
      side.origin = hash('sha256', `copy of ${String(seal?.['value'] ?? address.shown)}`);
      return side;
    } catch (error) {
      await side.close();
      throw error;
    }
  }

  /** Makes the tables where there are none. @throws StoreError while a gateway uses the database */
  static async target(address: ServerAddress): Promise<PostgresSide> {
    const side = await PostgresSide.#open(address);
    try {
      const version = await side.#version();
      if (version === -1) await prepareSchema(address);
      else if (version !== unfinishedCopy) requireSchemaVersion(version, address.shown);
      await side.#readTypes();
      return side;
    } catch (error) {
      await side.close();
      throw error;
    }
  }

  static async #open(address: ServerAddress): Promise<PostgresSide> {
    const pg = await import('pg');
    const client = new pg.Client(connectionConfig(address, 'model-gateway copy'));
    client.on('error', () => undefined);
    const side = new PostgresSide(client, address.shown);
    try {
      await client.connect();
    } catch (error) {
      throw asPostgresError(error, address.shown);
    }
    const users = await side.#ask(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND application_name LIKE 'model-gateway%'`,
    );
    if (users.length > 0) {
      await side.close();
      throw new StoreError(
        'in_use',
        `A gateway uses ${address.shown}. Stop every gateway on it first.`,
      );
    }
    await side.#readTypes();
    return side;
  }

  async #ask(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    try {
      return (await this.#client.query<Row>(text, [...values])).rows;
    } catch (error) {
      throw asPostgresError(error, this.shown);
    }
  }

  /** -1 where there are no tables. */
  async #version(): Promise<number> {
    const [there] = await this.#ask("SELECT to_regclass('gateway_schema') IS NOT NULL AS yes");
    if (there?.['yes'] !== true) return -1;
    const [row] = await this.#ask('SELECT max(version) AS version FROM gateway_schema');
    return Number(row?.['version'] ?? -1);
  }

  async #readTypes(): Promise<void> {
    const rows = await this.#ask(
      `SELECT table_name, column_name, data_type FROM information_schema.columns
       WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`,
    );
    for (const row of rows) {
      const name = `${String(row['table_name'])}.${String(row['column_name'])}`;
      this.#types.set(name, String(row['data_type']));
    }
  }

  async tables(): Promise<readonly CopyTable[]> {
    const keys = await this.#ask(
      `SELECT c.relname AS name, a.attname AS column FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
       JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
       WHERE i.indisprimary AND pg_table_is_visible(c.oid) AND c.relnamespace = current_schema()::regnamespace
       ORDER BY c.relname, array_position(i.indkey::smallint[], a.attnum)`,
    );
    const columns = Map.groupBy(this.#types.keys(), (name) => name.split('.')[0] ?? '');
    return orderedTables(
      [...columns].map(([name, all]) => ({
        name,
        columns: all.map((each) => each.split('.')[1] ?? ''),
        key: keys.filter((row) => row['name'] === name).map((row) => String(row['column'])),
      })),
    );
  }

  #typeOf(table: string, column: string): string {
    return this.#types.get(`${table}.${column}`) ?? 'text';
  }

  async rows(
    { name, columns, key }: CopyTable,
    after: CopyRow | undefined,
    most: number,
  ): Promise<readonly CopyRow[]> {
    const keys = key.map((column) => this.#ordered(name, column)).join(', ');
    const behind =
      after === undefined ? '' : `WHERE (${keys}) > (${key.map((_, i) => `$${i + 1}`).join(', ')})`;
    const from = /^usage_(hours|days)$/.test(name)
      ? `${name} t JOIN usage_groups g ON g.id = t.group_id`
      : `${name} t`;
    const list = columns.map((column) => `${expression(column)} AS ${column}`).join(', ');
    const rows = await this.#ask(
      `SELECT ${list} FROM ${from} ${behind} ORDER BY ${keys} LIMIT $${(after?.length ?? 0) + 1}`,
      [...(after ?? []), most],
    );
    return rows.map((row) =>
      columns.map((column) => fromPostgres(row[column], this.#typeOf(name, column))),
    );
  }

  /** Texts in the order of their bytes, as SQLite has it. */
  #ordered(table: string, column: string): string {
    const type = this.#typeOf(table, column);
    const isText = type === 'text' || column === 'group_id';
    return isText ? `${expression(column)} COLLATE "C"` : expression(column);
  }

  async sums({ name, columns }: CopyTable): Promise<TableSums> {
    const measures = columns.flatMap((column) => {
      const count = `count(${column})::text AS "${column} values"`;
      if (/^(price_id|group_id|call_id)$/.test(column)) return [count];
      const type = this.#typeOf(name, column);
      const number = type === 'boolean' ? `${column}::integer` : column;
      return /^(bigint|integer|boolean)$/.test(type)
        ? [
            count,
            `coalesce(sum(${number} >> 20), 0)::text AS "${column} high"`,
            `coalesce(sum(${number} & 1048575), 0)::text AS "${column} low"`,
          ]
        : type === 'double precision'
          ? [count]
          : [count, `coalesce(sum(octet_length(${column})), 0)::text AS "${column} bytes"`];
    });
    const [row] = await this.#ask(
      `SELECT count(*)::text AS rows, ${measures.join(', ')} FROM ${name}`,
    );
    return Object.fromEntries(
      Object.entries(row ?? {}).map(([measure, value]) => [measure, String(value)]),
    );
  }

  async progress(): Promise<CopyProgress | undefined> {
    const [there] = await this.#ask("SELECT to_regclass('gateway_copy') IS NOT NULL AS yes");
    if (there?.['yes'] !== true) return undefined;
    const rows = await this.#ask('SELECT name, value FROM gateway_copy');
    return readProgress(rows.map((row) => [String(row['name']), String(row['value'])]));
  }

  async begin(origin: string): Promise<void> {
    for (const { name } of await this.tables()) {
      if ((await this.#ask(`SELECT 1 FROM ${name} LIMIT 1`)).length === 0) continue;
      throw new StoreError(
        'failed',
        `${this.shown} has data already (${name}). Choose an empty database.`,
      );
    }
    await this.#together(async () => {
      await this.#ask('CREATE TABLE gateway_copy (name text PRIMARY KEY, value text NOT NULL)');
      await this.#ask("INSERT INTO gateway_copy VALUES ('origin', $1)", [origin]);
      await this.#ask('UPDATE gateway_schema SET version = $1', [unfinishedCopy]);
    });
  }

  async write(table: CopyTable, rows: readonly CopyRow[]): Promise<void> {
    const { name, columns, key } = table;
    const hasId = name === 'prices' || name === 'usage_groups';
    const names = hasId ? ['id', ...columns] : columns;
    const values = rows.flatMap((row) => [
      ...(hasId ? [ownId(name, row)] : []),
      ...row.map((value, i) =>
        toPostgres(value, columns[i] ?? '', this.#typeOf(name, columns[i] ?? '')),
      ),
    ]);
    const places = rows.map(
      (_, r) => `(${names.map((__, c) => `$${r * names.length + c + 1}`).join(', ')})`,
    );
    await this.#together(async () => {
      await this.#ask(
        `INSERT INTO ${name} (${names.join(', ')}) VALUES ${places.join(', ')}`,
        values,
      );
      await this.#ask(
        'INSERT INTO gateway_copy VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
        [`last ${name}`, lastKey(columns, key, rows)],
      );
    });
  }

  async finish(): Promise<void> {
    await this.#together(async () => {
      await this.#ask('UPDATE gateway_schema SET version = $1', [schemaVersion]);
      await this.#ask('DROP TABLE gateway_copy');
    });
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined);
  }

  async #together(work: () => Promise<void>): Promise<void> {
    await this.#ask('BEGIN');
    try {
      await work();
      await this.#ask('COMMIT');
    } catch (error) {
      await this.#ask('ROLLBACK').catch(() => undefined);
      throw error;
    }
  }
}

function expression(column: string): string {
  if (column === 'price_id') return '(SELECT p.price FROM prices p WHERE p.id = t.price_id)';
  return column === 'group_id' ? groupText : `t.${column}`;
}

function fromPostgres(value: unknown, type: string): CopyValue {
  if (value === null || value === undefined) return null;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (value instanceof Uint8Array) return value;
  if (type === 'bigint') return exact(BigInt(String(value)));
  const isNumber = /^(integer|double precision)$/.test(type);
  return isNumber ? Number(value) : String(value);
}

function toPostgres(value: CopyValue, column: string, type: string): unknown {
  if (value === null) return null;
  if (column === 'price_id') return textId(String(value));
  if (column === 'group_id') return textId(JSON.stringify(String(value).split(separator)));
  return type === 'boolean' ? value === 1 : value;
}

/** As the gateways make it. */
function ownId(table: string, row: CopyRow): string {
  return textId(table === 'prices' ? String(row[0]) : JSON.stringify(row));
}
