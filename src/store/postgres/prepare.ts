/**
 * Creates the tables at the first start. Instances that start together take turns: the second one finds the
 * tables. Tables and version are one transaction.
 */
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, QueryResult, QueryResultRow } from 'pg';
import type { ServerAddress } from '../../core/addresses.ts';
import { requireSchemaVersion, schemaVersion } from '../schema.ts';
import { StoreError } from '../store-error.ts';
import { type Row, asPostgresError, connectionConfig, endOrCut, isAtWork } from './pool.ts';
import { postgresSchema } from './schema.ts';

/** How long silence is borne. */
export interface Patience {
  /** Of a short statement: the server ends it then, and is given two seconds more to say so. */
  readonly answerMs: number;
  /** Between two checks: a statement that may take long. */
  readonly lookEveryMs: number;
  /** Of a look: a server under a migration may be slow to take one more connection. */
  readonly lookMs: number;
}

const usualPatience: Patience = { answerMs: 5000, lookEveryMs: 5000, lookMs: 10_000 };
const silenceMs = 2000;
/** One look may come while the answer is on its way, or into a server that is busy just then. */
const maxMisses = 3;

/** The server learns within half a minute of a client that is gone without a word: until then its locks stay. */
const introduce = `SELECT pg_backend_pid() AS pid, set_config('tcp_keepalives_idle', '15', false),
  set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`;

class WatchedConnection {
  readonly #client: Client;
  readonly #socket: Socket;
  readonly #address: ServerAddress;
  readonly #patience: Patience;
  #pid = 0;
  #lost: StoreError | undefined;

  private constructor(
    parts: { readonly client: Client; readonly socket: Socket },
    address: ServerAddress,
    patience: Patience,
  ) {
    this.#client = parts.client;
    this.#socket = parts.socket;
    this.#address = address;
    this.#patience = patience;
    // If a connection dies, the statement that needs it fails.
    this.#client.on('error', () => undefined);
  }

  /** @param name what the server's administrator sees. @throws StoreError when it cannot be had in time. */
  static async open(
    address: ServerAddress,
    name: string,
    patience: Patience = usualPatience,
  ): Promise<WatchedConnection> {
    const pg = await import('pg');
    const socket = new Socket();
    const client = new pg.Client({
      ...connectionConfig(address, name),
      statement_timeout: patience.answerMs,
      stream: () => socket,
    });
    const connection = new WatchedConnection({ client, socket }, address, patience);
    try {
      await client.connect();
      const { rows } = await connection.ask<{ readonly pid: number }>(introduce);
      connection.#pid = rows[0]?.pid ?? 0;
    } catch (error) {
      await connection.close();
      throw asPostgresError(error, address.shown);
    }
    return connection;
  }

  /** A statement that is short wherever the server is well. @throws StoreError */
  async ask<R extends QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<QueryResult<R>> {
    const limit = { query_timeout: this.#patience.answerMs + silenceMs };
    try {
      return await this.#client.query<R>({ text, values: [...values], ...limit });
    } catch (error) {
      const failure = asPostgresError(error, this.#address.shown);
      // Statements after one whose answer does not come would wait as long.
      if (failure.kind === 'unavailable') this.#socket.destroy();
      throw failure;
    }
  }

  /**
   * One that may take as long as it likes, where `statement_timeout` is 0.
   * @throws StoreError, `unavailable` where the server does not answer any more, or no longer works on it.
   */
  async work<R extends QueryResultRow>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<QueryResult<R>> {
    const over = new AbortController();
    void this.#watch(over.signal);
    try {
      return await this.#client.query<R>(text, [...values]);
    } catch (error) {
      throw this.#lost ?? asPostgresError(error, this.#address.shown);
    } finally {
      over.abort();
    }
  }

  /** Ends it, even if the server does not answer. */
  async close(): Promise<void> {
    await endOrCut(this.#client.end(), () => this.#socket.destroy());
  }

  async #watch(over: AbortSignal): Promise<void> {
    const { shown } = this.#address;
    for (let misses = 0; misses < maxMisses;) {
      await delay(this.#patience.lookEveryMs, undefined, { signal: over, ref: false }).catch(
        () => undefined,
      );
      if (over.aborted) return;
      const isMissed = !(await isAtWork(this.#address, this.#pid, this.#patience.lookMs));
      if (over.aborted) return;
      misses = isMissed ? misses + 1 : 0;
    }
    const text =
      `${shown}: a statement was given up, since the server neither answered nor worked on it any ` +
      'more. See whether the database runs, and whether a pooler or a firewall drops connections.';
    this.#lost = new StoreError('unavailable', text);
    this.#socket.destroy();
  }
}

/** Any number; the same in all versions. */
const turn = 5_563_204_119;

/** The wait for a table in use is bounded, since all other queries would queue behind it. */
const lockMs = 10_000;

const versionTable = `CREATE TABLE gateway_schema (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT now()
)`;

/**
 * @param schema the tables; others only in tests.
 * @throws StoreError `newer_schema`, `older_schema`; `unavailable`; `failed` when the user may not, or a statement
 * went wrong: then nothing of it is there, and nothing is recorded.
 */
export async function prepareSchema(
  address: ServerAddress,
  schema: string = postgresSchema,
  patience: Patience = usualPatience,
): Promise<void> {
  const client = await WatchedConnection.open(address, 'model-gateway schema', patience);
  try {
    const version = await readVersion((text) => client.ask(text));
    if (version === undefined) await makeTables(client, schema);
    else requireSchemaVersion(version, address.shown);
  } catch (error) {
    const failure = asPostgresError(error, address.shown);
    // No row of a caller is at fault here.
    throw failure.kind === 'refused' ? new StoreError('failed', failure.message, error) : failure;
  } finally {
    await client.close();
  }
}

async function readVersion(
  ask: (text: string) => Promise<QueryResult<Row>>,
): Promise<number | undefined> {
  // Not by `to_regclass`: that may remember, from before the wait for the turn, that there was none.
  const { rows } = await ask(
    "SELECT relname FROM pg_class WHERE relname = 'gateway_schema' AND pg_table_is_visible(oid)",
  );
  if (rows.length === 0) return undefined;
  const found = await ask('SELECT max(version) AS version FROM gateway_schema');
  return Number(found.rows[0]?.['version'] ?? 0);
}

/**
 * None where another instance was faster. Both that one and the statements may take long: they are watched, and
 * nothing ends them while the server is at work on them.
 */
async function makeTables(client: WatchedConnection, schema: string): Promise<void> {
  await client.ask('BEGIN');
  try {
    await client.ask("SELECT set_config('statement_timeout', '0', true)");
    // An instance that is disconnected between two statements must not keep the lock.
    await client.ask("SELECT set_config('idle_in_transaction_session_timeout', '20000', true)");
    // Ends with the transaction, however that ends.
    await client.work('SELECT pg_advisory_xact_lock($1)', [turn]);
    await client.ask("SELECT set_config('lock_timeout', $1, true)", [String(lockMs)]);
    if ((await readVersion((text) => client.work(text))) === undefined) {
      await client.work(versionTable);
      await client.work(schema);
      await client.work('INSERT INTO gateway_schema (version) VALUES ($1)', [schemaVersion]);
    }
    await client.work('COMMIT');
  } catch (error) {
    await client.ask('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

/**
 * Waits for the lock and runs `work`. The lock ends with its connection, so that a process that dies while
 * holding it blocks no other.
 * @throws StoreError, or what `work` throws.
 */
export async function inTurn<T>(
  address: ServerAddress,
  turn: number,
  work: () => Promise<T>,
): Promise<T> {
  const connection = await WatchedConnection.open(address, 'model-gateway turn');
  try {
    await connection.ask("SELECT set_config('statement_timeout', '0', false)");
    await connection.work('SELECT pg_advisory_lock($1)', [turn]);
    return await work();
  } finally {
    await connection.close();
  }
}
