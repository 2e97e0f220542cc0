/**
 * Connections to one PostgreSQL server. New ones are examined before they are used: a read-only server
 * (a replica, yesterday's primary) is as good as none. Statements are constants with parameters (S21).
 */
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { checkServerIdentity } from 'node:tls';
import type { ClientBase, ClientConfig, Pool, PoolClient, QueryResult } from 'pg';
import type { ServerAddress } from '../../core/addresses.ts';
import type { Columns } from '../columns.ts';
import type { Statement } from '../statements.ts';
import { StoreError, type StoreFailure } from '../store-error.ts';

export interface PoolOptions {
  readonly address: ServerAddress;
  /** What the server's administrator sees in pg_stat_activity. */
  readonly name: string;
  /** Maximum number of connections. */
  readonly connections: number;
  /** The time after which the server ends a statement. */
  readonly statementMs: number;
  /** In [0, 1); spreads retries. */
  random(): number;
}

/** Columns are texts, numbers or NULL; `bigint` is a number too. */
export type Row = Columns;

export interface Rows {
  readonly rows: readonly Row[];
  /** How many rows the statement read or changed. */
  readonly count: number;
}

/** Texts, numbers, JSON texts, bytes, null; lists become arrays. */
export type SqlValue =
  string | number | boolean | null | Uint8Array | readonly string[] | readonly number[];

/** Runs statements: each in a transaction of its own, or all in the one that is open. */
export interface Sql {
  run(statement: Statement, values?: readonly SqlValue[]): Promise<Rows>;
}

const connectMs = 2000;
/** The server's limit comes first; this one is for a server that no longer answers. */
const silenceMs = 2000;
const idleMs = 30_000;
/** Names are looked up again in time, without a restart. */
const connectionLifeSeconds = 1800;

const conflictTries = 5;
const conflictPauseMs = 20;

/** Oid of `bigint`: counts, times and nanodollars, all safe integers. */
const bigintType = 20;

/** Loads the driver; nothing is connected yet. */
export async function openPool(options: PoolOptions): Promise<PostgresPool> {
  const { Pool: PgPool, types } = await import('pg');
  const sockets = new Set<Socket>();
  const stream = (): Socket => {
    const socket = new Socket();
    sockets.add(socket);
    return socket.once('close', () => sockets.delete(socket));
  };
  const make = (): Pool =>
    new PgPool({
      ...connectionConfig(options.address, options.name),
      stream,
      max: options.connections,
      idleTimeoutMillis: idleMs,
      maxLifetimeSeconds: connectionLifeSeconds,
      statement_timeout: options.statementMs,
      query_timeout: options.statementMs + silenceMs,
      types: {
        getTypeParser: (oid: number, format?: 'text' | 'binary') =>
          oid === bigintType && format !== 'binary'
            ? Number
            : types.getTypeParser(oid, format ?? 'text'),
      },
      onConnect: (client) => verify(client, options.address.shown),
    });
  return new PostgresPool({ make, sockets }, options);
}

/** What every connection to the server needs. */
export function connectionConfig(address: ServerAddress, name: string): ClientConfig {
  const { host, port, user, password, database, tls } = address;
  return {
    host,
    port,
    database,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { password: password.reveal() }),
    ssl:
      tls === undefined
        ? false
        : {
            ...(tls.ca === undefined ? {} : { ca: tls.ca }),
            ...(tls.cert === undefined ? {} : { cert: tls.cert }),
            ...(tls.key === undefined ? {} : { key: tls.key.reveal() }),
            rejectUnauthorized: true,
            // The driver passes no server name to TLS if the host is an IP address.
            checkServerIdentity: (_, certificate) =>
              tls.checkHost ? checkServerIdentity(host, certificate) : undefined,
          },
    application_name: name,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

const lookAround =
  "SELECT current_setting('transaction_read_only') AS read_only, current_setting('server_encoding') AS encoding";

async function verify(client: ClientBase, shown: string): Promise<void> {
  const { rows }: QueryResult<Row> = await client.query(lookAround);
  if (rows[0]?.['read_only'] === 'on') {
    throw new StoreError('unavailable', `${shown}: the server takes no writes now (a replica?).`);
  }
  if (rows[0]?.['encoding'] !== 'UTF8') {
    throw new StoreError('failed', `${shown}: the database must have the encoding UTF8.`);
  }
}

/**
 * Whether the server answers on a new connection within seconds.
 * @throws StoreError
 */
export async function knock(address: ServerAddress, name: string): Promise<void> {
  const { Client } = await import('pg');
  const client = new Client({ ...connectionConfig(address, name), query_timeout: silenceMs });
  client.on('error', ignore);
  try {
    await client.connect();
    await verify(client, address.shown);
  } catch (error) {
    if (!isCrowded(error)) throw asPostgresError(error, address.shown);
  } finally {
    client.end().catch(ignore);
  }
}

const activity = 'SELECT state FROM pg_stat_activity WHERE pid = $1';

/**
 * Whether another connection's statement is being worked on, by what the server says of it. A server without a
 * connection left for the question is at work; one that does not answer within `ms` is not.
 */
export async function isAtWork(address: ServerAddress, pid: number, ms: number): Promise<boolean> {
  const { Client } = await import('pg');
  const limits = { connectionTimeoutMillis: ms, query_timeout: ms };
  const client = new Client({ ...connectionConfig(address, 'model-gateway look'), ...limits });
  client.on('error', ignore);
  try {
    await client.connect();
    const { rows }: QueryResult<Row> = await client.query(activity, [pid]);
    // Idle: it has answered, and the answer was lost. `disabled` and similar states prove nothing.
    return rows.length > 0 && !String(rows[0]?.['state']).startsWith('idle');
  } catch (error) {
    return asPostgresError(error, address.shown).kind !== 'unavailable' || isCrowded(error);
  } finally {
    client.end().catch(ignore);
  }
}

interface PoolDeps {
  readonly make: () => Pool;
  /** Of all connections, also of those of a pool that was left. */
  readonly sockets: ReadonlySet<Socket>;
}

export class PostgresPool implements Sql {
  /** For messages: the address without user and password. */
  readonly shown: string;
  readonly #make: () => Pool;
  readonly #sockets: ReadonlySet<Socket>;
  readonly #random: () => number;
  #pool: Pool;
  #connected: ReadonlySet<PoolClient> = new Set();
  #closed = false;

  constructor(deps: PoolDeps, options: Pick<PoolOptions, 'address' | 'random'>) {
    this.shown = options.address.shown;
    this.#make = deps.make;
    this.#sockets = deps.sockets;
    this.#random = () => options.random();
    this.#pool = this.#open();
  }

  /** How many connections there are; those that are still being made are none yet. */
  get connected(): number {
    return this.#connected.size;
  }

  /** Whether queries wait for an answer of the server. */
  get waiting(): boolean {
    return this.#pool.totalCount > this.#pool.idleCount;
  }

  /** Bytes that the connections which are open have brought: a growing number shows that the server answers. */
  get heard(): number {
    let bytes = 0;
    for (const socket of this.#sockets) bytes += socket.bytesRead;
    return bytes;
  }

  /** One statement in a transaction of its own. @throws StoreError */
  run(statement: Statement, values: readonly SqlValue[] = []): Promise<Rows> {
    return this.#withClient((client) => query(client, statement, values));
  }

  /**
   * Runs `work` in one transaction; again from its beginning when others made it fail.
   * @throws StoreError, or what `work` throws; then nothing was changed, unless it is `unavailable`:
   * then the end of the transaction may have been lost on the way.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#transaction('BEGIN', work);
  }

  /** Reads in one transaction that sees no change of others. @throws StoreError */
  snapshot<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#transaction(
      `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${readSettings}`,
      work,
    );
  }

  #transaction<T>(begin: string, work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.#withClient(async (client) => {
      await client.query(begin);
      try {
        const sql: Sql = { run: (statement, values) => query(client, statement, values ?? []) };
        const result = await work(sql);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        // A connection that cannot even do that is thrown away below.
        await client.query('ROLLBACK').catch(() => undefined);
        throw error;
      }
    });
  }

  /** Leaves all connections for new ones: they lead to a server that is no longer the right one. */
  reset(): void {
    const old = this.#pool;
    this.#pool = this.#open();
    old.end().catch(() => undefined);
  }

  /** Breaks all connections: callers that wait for an answer get `unavailable` at once. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** @returns whether something had to be cut off, since the server did not answer in time. */
  async close(): Promise<boolean> {
    if (this.#closed) return false;
    this.#closed = true;
    // The pool itself is over when it has said goodbye, heard or not.
    const closed = [...this.#sockets].map(
      (socket) => new Promise((resolve) => socket.once('close', resolve)),
    );
    return endOrCut(Promise.all([this.#pool.end(), ...closed]), () => this.cut());
  }

  async #withClient<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#once(work);
      } catch (error) {
        if (!isConflict(error) || tries === conflictTries) throw error;
        await pause(conflictPauseMs * tries * this.#random());
      }
    }
  }

  async #once<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    if (this.#closed) throw new StoreError('closed', 'The store is closed.');
    let client: PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      const failure = asPostgresError(error, this.shown);
      // The server refuses new connections; existing ones continue to work.
      const servesOn = isCrowded(error) && this.connected > 0;
      throw servesOn ? new StoreError('busy', failure.message, error) : failure;
    }
    // A connection may die between two statements; the next one then fails with the reason.
    client.on('error', ignore);
    let broken = false;
    try {
      return await work(client);
    } catch (error) {
      const failure = asPostgresError(error, this.shown);
      broken = failure.kind === 'unavailable';
      throw failure;
    } finally {
      client.off('error', ignore);
      client.release(broken);
    }
  }

  #open(): Pool {
    const pool = this.#make();
    // Idle connections die when the server goes; a caller that needs one gets the error.
    pool.on('error', ignore);
    const connected = new Set<PoolClient>();
    pool.on('connect', (client) => connected.add(client));
    pool.on('remove', (client) => connected.delete(client));
    this.#connected = connected;
    return pool;
  }
}

function ignore(): void {
  // On purpose: see where it is used.
}

async function query(
  client: PoolClient,
  { name, text }: Statement,
  values: readonly SqlValue[],
): Promise<Rows> {
  const result: QueryResult<Row> = await client.query({ name, text, values: values.map(clean) });
  return { rows: result.rows, count: result.rowCount ?? 0 };
}

/**
 * Questions of the admin pages differ in their period and filter from one to the next: from the sixth time on
 * the server would take one plan for all of them, which at ten million calls took 12 s instead of 0.3.
 * What is compiled for them (JIT) costs more than it saves.
 */
const readSettings = 'SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL jit = off';

/** PostgreSQL text cannot contain NUL: an odd name must not block other rows. */
function clean(value: SqlValue): SqlValue {
  return typeof value === 'string' && value.includes('\0')
    ? value.replaceAll('\0', '\ufffd')
    : value;
}

/** Rows for `jsonb_array_elements`, which refuses NUL and half a surrogate pair even escaped. */
export function rowsText(rows: readonly (readonly unknown[])[]): string {
  const text = JSON.stringify(rows);
  return text.includes('\\u') ? text.replace(unfitEscapes, '\\ufffd') : text;
}

const unfitEscapes = /\\u(?:0000|d[89a-f][0-9a-f]{2})/g;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** A server that is well closes its side within milliseconds. */
const closeMs = 1000;

/**
 * Waits until `ending` is over, for a second at most, and then destroys what is still open.
 * @returns whether it was not over by then
 */
export async function endOrCut(ending: Promise<unknown>, destroy: () => void): Promise<boolean> {
  const over = new AbortController();
  const ended = ending.then(
    () => false,
    () => false,
  );
  const waited = delay(closeMs, true, { signal: over.signal, ref: false }).catch(() => true);
  const isCut = await Promise.race([ended, waited]);
  over.abort();
  destroy();
  return isCut;
}

// What a failed statement or connection means (postgresql.org/docs/current/errcodes-appendix.html).

/** Exact codes before classes (their first two characters). */
const kindOfState: ReadonlyMap<string, StoreFailure> = new Map<string, StoreFailure>([
  ['25006', 'unavailable'], // read_only_sql_transaction: a replica, or the primary of yesterday
  ['40001', 'busy'], // serialization_failure
  ['40P01', 'busy'], // deadlock_detected
  ['55P03', 'busy'], // lock_not_available
  ['57014', 'busy'], // query_canceled: the statement's time is up
  ['25P03', 'unavailable'], // idle_in_transaction_session_timeout: the connection is gone
  ['57P01', 'unavailable'], // admin_shutdown
  ['57P02', 'unavailable'], // crash_shutdown
  ['57P03', 'unavailable'], // cannot_connect_now: it starts up
  ['57P05', 'unavailable'], // idle_session_timeout
  ['08', 'unavailable'], // connection exceptions
  ['22', 'refused'], // data exceptions: out of range, not a text, …
  ['23', 'refused'], // integrity constraint violations
  ['54', 'refused'], // program limits: too large for an index, …
  ['53100', 'full'], // disk_full
  ['53', 'unavailable'], // too_many_connections and other lack of resources
  ['58', 'full'], // system_error, io_error
  ['XX001', 'corrupt'], // data_corrupted
  ['XX002', 'corrupt'], // index_corrupted
]);

/** Of sockets and name look-ups. */
const brokenConnection: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'EMFILE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT', // the Unix socket of a server that is not there
]);

/** Errors of the client library without a code. */
const brokenTexts =
  /^Connection terminated|^timeout expired|^Client has encountered a connection error|^Query read timeout|^Client was closed/;

/** Of the pool: all its connections are at work. That says nothing about the server. */
const poolWait = /^timeout exceeded when trying to connect/;

/** What the operator can do about it; by exact code. */
const advice: ReadonlyMap<string, string> = new Map([
  ['28P01', 'check user and password of the storage address'],
  [
    '28000',
    'the server wants another kind of login; check its pg_hba.conf, or add sslmode=verify-full',
  ],
  ['3D000', 'make it: CREATE DATABASE … OWNER … ENCODING UTF8'],
  [
    '42501',
    'the user must own the tables, or be allowed to make them: GRANT CREATE ON SCHEMA public',
  ],
  ['42P07', 'the database holds tables of another program; give the gateway a database of its own'],
]);

/** Errors of the client library that say too little, and what they say instead. */
const plainTexts: ReadonlyMap<string, string> = new Map([
  ['timeout expired', 'no answer to a new connection in time'],
  ['Query read timeout', 'it took a connection and a question, and did not answer in time'],
]);
const silenceAdvice =
  'see whether the database runs, and whether a pooler or a firewall holds what it says';

/** Any thrown value as a StoreError that names the server, without user and password. */
export function asPostgresError(thrown: unknown, shown: string): StoreError {
  if (thrown instanceof StoreError) return thrown;
  const code = codeOf(thrown);
  const text = thrown instanceof Error ? textOf(thrown) : 'unknown failure';
  if (code === '' && poolWait.test(text)) {
    return new StoreError('busy', `${shown}: no connection of the pool came free in time.`, thrown);
  }
  const plain = code === '' ? plainTexts.get(text) : undefined;
  const hint = plain === undefined ? advice.get(code) : silenceAdvice;
  const message = `${shown}: ${plain ?? text}${hint === undefined ? '' : ` (${hint})`}`;
  return new StoreError(kindOf(code, text), message, thrown);
}

/** Whether a transaction was undone only because of others, and may work when it is run again. */
function isConflict(thrown: unknown): boolean {
  const code = codeOf(thrown);
  return code === '40001' || code === '40P01';
}

/** Whether no connection of the pool came free in time: no statement was sent to the server. */
export function isPoolWait(thrown: unknown): thrown is StoreError {
  if (!(thrown instanceof StoreError) || !(thrown.cause instanceof Error)) return false;
  return thrown.kind === 'busy' && poolWait.test(thrown.cause.message);
}

const endedStates: ReadonlySet<string> = new Set(['57P01', '57P02', 'ECONNRESET', 'EPIPE']);
/** The texts of `pg` for an open connection. That of a new one, `… due to connection timeout`, is another case. */
const endedTexts: ReadonlySet<string> = new Set([
  'Connection terminated',
  'Connection terminated unexpectedly',
]);

/** Whether a connection ended under its statement, by the server or on the way: others may have ended with it. */
export function isEnded(thrown: unknown): boolean {
  if (!(thrown instanceof StoreError)) return false;
  const { cause } = thrown;
  if (endedStates.has(codeOf(thrown))) return true;
  return cause instanceof Error && endedTexts.has(cause.message);
}

/** Whether the server is there, and has no connection left for one more. */
export function isCrowded(thrown: unknown): boolean {
  return codeOf(thrown) === '53300';
}

/** Whether a row with this key is there already. */
export function isDuplicate(thrown: unknown): boolean {
  return codeOf(thrown) === '23505';
}

function kindOf(code: string, text: string): StoreFailure {
  if (brokenConnection.has(code)) return 'unavailable';
  const kind = kindOfState.get(code) ?? kindOfState.get(code.slice(0, 2));
  if (kind !== undefined) return kind;
  return code === '' && brokenTexts.test(text) ? 'unavailable' : 'failed';
}

/** SQLSTATE or the system's code; of several tries to connect, that of the first. */
function codeOf(thrown: unknown): string {
  if (thrown instanceof StoreError) return codeOf(thrown.cause);
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return codeOf(thrown.errors[0]);
  if (!(thrown instanceof Error) || !('code' in thrown)) return '';
  return typeof thrown.code === 'string' ? thrown.code : '';
}

function textOf(error: Error): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined;
  const { message } = first instanceof Error ? first : error;
  return message === '' ? 'it cannot be reached' : message;
}
