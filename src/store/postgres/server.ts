/**
 * Tracks whether the PostgreSQL server is available. While it is not, operations fail at once; a probe asks it
 * continuously, with pauses that differ between instances (F88).
 */
import type { Clock, Log } from '../../core/runtime.ts';
import type { ServerAddress } from '../../core/addresses.ts';
import { prepareSchema } from './prepare.ts';
import {
  type PostgresPool,
  type Rows,
  type Sql,
  type SqlValue,
  asPostgresError,
  isCrowded,
  isEnded,
  isPoolWait,
  knock,
  openPool,
} from './pool.ts';
import type { Statement } from '../statements.ts';
import { mayPass, StoreError } from '../store-error.ts';

export interface PostgresServerOptions {
  readonly address: ServerAddress;
  readonly log: Log;
  readonly clock: Clock;
  /** From 0, below 1. */
  random(): number;
}

const probe: Statement = { name: 'probe', text: 'SELECT 1' };
const whatTime: Statement = {
  name: 'what_time',
  text: 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
};
const heartbeatMs = 2000;
/** Longer than such a probe takes, so that there is never more than one. */
const knockAgainMs = 5000;
/** At a stop: twelve checks without an answer are three seconds, even if this process hung itself. */
const listenEveryMs = 250;
const maxSilentLooks = 12;
const firstPauseMs = 100;
const lastPauseMs = 2000;

/** Connections for writes and for queries that calls wait for. The admin pages have their own. */
const dataConnections = 6;
const adminConnections = 3;
const dataStatementMs = 5000;
const adminStatementMs = 20_000;

export class PostgresServer {
  readonly data: PostgresPool;
  readonly admin: PostgresPool;
  readonly #options: PostgresServerOptions;
  readonly #listeners: (() => void)[] = [];
  readonly #heartbeat: NodeJS.Timeout;
  #failure: StoreError | undefined;
  /** What was logged last, so that a long outage is not logged each second. */
  #logged = '';
  #timer: NodeJS.Timeout | undefined;
  #stopping: NodeJS.Timeout | undefined;
  #cut = false;
  #upSince: number | undefined;
  #aheadMs = 0;
  #knockAgainAt = Number.NEGATIVE_INFINITY;
  #tries = 0;
  #prepared = false;
  #closed = false;

  constructor(options: PostgresServerOptions, pools: { data: PostgresPool; admin: PostgresPool }) {
    this.#options = options;
    this.data = pools.data;
    this.admin = pools.admin;
    this.#failure = new StoreError('unavailable', `${options.address.shown}: not asked yet.`);
    this.#heartbeat = setInterval(() => this.look(), heartbeatMs);
    this.#heartbeat.unref();
  }

  /** Whether it answered the last time. */
  get up(): boolean {
    return this.#failure === undefined;
  }

  /** Since when it is up, ms on the monotonic clock; undefined while it is not. */
  get upSince(): number | undefined {
    return this.up ? this.#upSince : undefined;
  }

  /** How far its clock is ahead of this machine's, in whole seconds of ms (F90). */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** Why it is not up; undefined when it is. */
  get failure(): string | undefined {
    return this.#failure?.message;
  }

  /** Calls `listener` each time it is there again, the first time included. */
  onUp(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Asks it for the first time and makes the schema.
   * @throws StoreError unless it is only `unavailable` or `busy`: then it is tried again, and `up` reports the success.
   */
  async begin(): Promise<void> {
    try {
      await this.#bringUp();
    } catch (error) {
      if (!mayPass(error)) throw error;
      this.#goDown(error);
    }
  }

  /** One statement on the calls' connections, run as by `use`. @throws StoreError */
  run(statement: Statement, values?: readonly SqlValue[]): Promise<Rows> {
    return this.use(() => this.data.run(statement, values));
  }

  /** All or nothing on the calls' connections, run as by `use`. @throws StoreError */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    return this.use(() => this.data.transaction(work));
  }

  /**
   * Runs `work`, and once more where its connection broke or none came free: it must do no harm when it is
   * repeated. Connections that ended together are found one by one: it is run again for each of them.
   * @throws StoreError `unavailable` at once while it is down; `busy` where nothing was done; or what `work` throws.
   */
  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.#failure !== undefined) throw this.#failure;
    let first: StoreError | undefined;
    for (let tries = 1; ; tries += 1) {
      try {
        return await work();
      } catch (error) {
        if (first === undefined) {
          if (isPoolWait(error)) this.#knock();
          const again = isPoolWait(error) || isCrowded(error) || isUnavailable(error);
          if (!again || this.#failure !== undefined) throw error;
          first = asPostgresError(error, this.#options.address.shown);
        } else if (!isEnded(error) || tries > dataConnections || this.#failure !== undefined) {
          throw this.#repeatedFailure(first, error);
        }
      }
    }
  }

  #repeatedFailure(first: StoreError, last: unknown): unknown {
    const failure = this.#crowdedOut(last);
    if (isUnavailable(failure)) this.#goDown(failure);
    // The first time it may have been done, unless no connection was to be had for it.
    return failure instanceof StoreError && failure.kind === 'busy' && !isCrowded(first)
      ? first
      : failure;
  }

  /** Asks whether it is still there, so that readiness is correct for an idle gateway too. */
  look(): void {
    if (this.up) this.use(() => this.data.run(probe)).catch(() => undefined);
  }

  /**
   * From now on silence is tolerated for only three seconds: then waiting callers get `unavailable`. Finished
   * calls go to the local disk, and the stop does not wait for a server that does not answer.
   */
  stopping(): void {
    let heard = -1;
    let silentLooks = 0;
    this.#stopping ??= setInterval(() => {
      const isWaiting = this.data.waiting || this.admin.waiting;
      const bytes = this.data.heard + this.admin.heard;
      silentLooks = isWaiting && bytes === heard ? silentLooks + 1 : 0;
      heard = bytes;
      if (silentLooks < maxSilentLooks) return;
      silentLooks = 0;
      this.#cut = true;
      const { shown } = this.#options.address;
      const text = `${shown}: it said nothing for three seconds of the stop, and is not waited for.`;
      this.#goDown(new StoreError('unavailable', text));
      this.data.cut();
      this.admin.cut();
    }, listenEveryMs);
  }

  /** @returns whether the server was silent, and something was cut off. */
  async close(): Promise<boolean> {
    this.#closed = true;
    clearInterval(this.#heartbeat);
    clearInterval(this.#stopping);
    clearTimeout(this.#timer);
    this.#failure = new StoreError('closed', 'The store is closed.');
    const cut = await Promise.all([this.data.close(), this.admin.close()]);
    return this.#cut || cut.includes(true);
  }

  async #bringUp(): Promise<void> {
    // Once: a newer version may upgrade the tables while this one runs on.
    if (!this.#prepared) await prepareSchema(this.#options.address);
    this.#prepared = true;
    const { clock } = this.#options;
    const { rows } = await this.data.run(whatTime);
    if (this.#closed) return;
    this.#aheadMs = Math.round((Number(rows[0]?.['now']) - clock.wall()) / 1000) * 1000;
    this.#failure = undefined;
    this.#upSince = clock.now();
    this.#tries = 0;
    for (const listener of this.#listeners) listener();
  }

  /** An admin page that gets no connection is not a reason to close those that calls continue by. */
  #crowdedOut(error: unknown): unknown {
    if (!isUnavailable(error) || !isCrowded(error) || this.data.connected === 0) return error;
    return new StoreError('busy', error.message, error.cause);
  }

  /**
   * All connections may be at work, or wait for a server that no longer answers. The pool cannot distinguish them:
   * closing busy connections would cause an outage (F88).
   */
  #knock(): void {
    const now = this.#options.clock.now();
    if (now < this.#knockAgainAt) return;
    this.#knockAgainAt = now + knockAgainMs;
    knock(this.#options.address, 'model-gateway look').catch((error: unknown) => {
      if (isUnavailable(error)) this.#goDown(error);
    });
  }

  #goDown(failure: StoreError): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#fail(failure);
    this.data.reset();
    this.admin.reset();
    this.#askLater();
  }

  #fail(failure: StoreError): void {
    this.#failure = failure;
    if (this.#logged === failure.message) return;
    this.#logged = failure.message;
    this.#options.log.error('store_unavailable', { reason: failure.message });
  }

  #askLater(): void {
    const longest = Math.min(lastPauseMs, firstPauseMs * 2 ** this.#tries);
    this.#tries += 1;
    const pauseMs = longest / 2 + (longest / 2) * this.#options.random();
    this.#timer = setTimeout(() => void this.#askAgain(), pauseMs);
  }

  async #askAgain(): Promise<void> {
    try {
      await this.#bringUp();
      this.#timer = undefined;
      this.#logged = '';
      if (!this.#closed) this.#options.log.warn('store_available', {});
    } catch (error) {
      if (this.#closed) return;
      // A server that comes back may send any error first. The operator finds it in the log.
      this.#fail(asPostgresError(error, this.#options.address.shown));
      this.#askLater();
    }
  }
}

function isUnavailable(error: unknown): error is StoreError {
  return error instanceof StoreError && error.kind === 'unavailable';
}

/** Loads the driver; nothing is connected yet. */
export async function makePostgresServer(options: PostgresServerOptions): Promise<PostgresServer> {
  const { address } = options;
  const random = (): number => options.random();
  const data = await openPool({
    address,
    random,
    name: 'model-gateway data',
    connections: dataConnections,
    statementMs: dataStatementMs,
  });
  const admin = await openPool({
    address,
    random,
    name: 'model-gateway admin',
    connections: adminConnections,
    statementMs: adminStatementMs,
  });
  return new PostgresServer(options, { data, admin });
}
