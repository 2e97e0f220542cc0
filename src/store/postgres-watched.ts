/**
 * One connection for statements that may take long: a migration, the wait for one's turn. Nobody can say how
 * long they take; but somebody who looks by another connection can say whether they are still at work.
 */
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client, QueryResult, QueryResultRow } from 'pg';
import type { ServerAddress } from '../core/server-address.ts';
import { asPostgresError } from './postgres-failure.ts';
import { endOrCut } from './postgres-end.ts';
import { connectionConfig, isAtWork } from './postgres-pool.ts';
import { StoreError } from './store-error.ts';

/** How long silence is borne. */
export interface Patience {
  /** Of a short statement: the server ends it then, and is given two seconds more to say so. */
  readonly answerMs: number;
  /** Between two looks at a statement that may take long. */
  readonly lookEveryMs: number;
  /** Of a look: a server under a migration may be slow to take one more connection. */
  readonly lookMs: number;
}

export const usualPatience: Patience = { answerMs: 5000, lookEveryMs: 5000, lookMs: 10_000 };
const silenceMs = 2000;
/** One look may come while the answer is on its way, or into a server that is busy just then. */
const mostMisses = 3;

/** The server learns within half a minute of a client that is gone without a word: until then its locks stand. */
const introduce = `SELECT pg_backend_pid() AS pid, set_config('tcp_keepalives_idle', '15', false),
  set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false)`;

export class WatchedConnection {
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
    // A connection that dies is told by the statement that needs it.
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
      // What is asked behind an answer that does not come would wait as long.
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

  /** Ends it, also where the server says nothing to that. */
  async close(): Promise<void> {
    await endOrCut(this.#client.end(), () => this.#socket.destroy());
  }

  async #watch(over: AbortSignal): Promise<void> {
    const { shown } = this.#address;
    for (let misses = 0; misses < mostMisses;) {
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
