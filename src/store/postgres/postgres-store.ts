/**
 * The store on PostgreSQL, for several gateways. While the server is away everything is refused
 * at once with `unavailable`, and continues when it is back, without a restart (F88).
 */
import { join } from 'node:path';
import { Socket } from 'node:net';
import type { Client } from 'pg';
import type { CallRow, OpenCall } from '../calls.ts';
import { quarantineOrphan, type RefusedOrphan } from '../refused-rows.ts';
import { overridden } from '../remote.ts';
import { StoreError, type StoreFailure } from '../store-error.ts';
import type { CallStore, Store, StoreParts } from '../store.ts';
import { PostgresAnswers, PostgresContents, PostgresResponses } from './sealed.ts';
import { PostgresCalls } from './calls.ts';
import { PostgresBudgets, leaseChannel } from './budgets.ts';
import type { DeadLeases, LeaseRegister } from '../leases/lease-expiry.ts';
import type { SeenInstance } from '../leases/lease-home.ts';
import {
  PostgresAudit,
  PostgresKeys,
  PostgresPolicies,
  PostgresSettings,
  changesChannel,
} from './keys.ts';
import { PostgresPeople } from './people.ts';
import { makePostgresServer, type PostgresServer, type PostgresServerOptions } from './server.ts';
import { Spool } from './spool.ts';
import { inTurn } from './prepare.ts';
import type { Log } from '../../core/runtime.ts';
import type { ServerAddress } from '../../core/addresses.ts';
import { asPostgresError, connectionConfig, endOrCut } from './pool.ts';

export interface PostgresStoreOptions extends PostgresServerOptions {
  /** Where finished calls wait while the server is away; a folder of this instance alone. */
  readonly spoolDirectory: string;
}

/**
 * Opens the store, and makes its tables at the first start. A server that is away now is not a failure.
 * @throws StoreError `newer_schema`, `failed` (wrong password, no right to make tables, …).
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { spoolDirectory: directory, log } = options;
  const spool = new Spool({ directory, log });
  const server = await makePostgresServer(options);
  const store = new PostgresStore({ server, spool, options });
  try {
    await server.begin();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** What passes: finished calls need not wait for it in memory. */
const passing: ReadonlySet<StoreFailure> = new Set(['unavailable', 'busy', 'full']);
const drainAgainMs = 5000;

function passes(error: unknown): boolean {
  return error instanceof StoreError && passing.has(error.kind);
}

/** Any number: who starts for the first time makes what all share. */
const startTurn = 5_563_204_122;

interface PostgresStoreDeps {
  readonly server: PostgresServer;
  readonly spool: Spool;
  readonly options: PostgresStoreOptions;
}

export class PostgresStore implements Store, LeaseRegister {
  /** Whether it is there; connections for others that keep something in the same database. */
  readonly server: PostgresServer;
  readonly keys: StoreParts['keys'];
  readonly policies: StoreParts['policies'];
  readonly audit: StoreParts['audit'];
  readonly calls: StoreParts['calls'];
  readonly answers: StoreParts['answers'];
  readonly contents: StoreParts['contents'];
  readonly responses: StoreParts['responses'];
  readonly people: StoreParts['people'];
  readonly settings: StoreParts['settings'];
  /** Where budgets are stored. */
  readonly budgets: PostgresBudgets;
  readonly #options: PostgresStoreOptions;
  readonly #spool: Spool;
  readonly #calls: PostgresCalls;
  #changes: PostgresChanges | undefined;
  #draining: NodeJS.Timeout | undefined;
  #closed = false;
  #onWritten: ((rows: readonly CallRow[]) => void) | undefined;
  #onAsked: ((counter: string, window: string) => void) | undefined;

  constructor({ server, spool, options }: PostgresStoreDeps) {
    this.server = server;
    this.#options = options;
    this.#spool = spool;
    this.#calls = new PostgresCalls(server, (orphan) => this.#setAside(orphan));
    this.keys = new PostgresKeys(server);
    this.policies = new PostgresPolicies(server);
    this.audit = new PostgresAudit(server);
    this.calls = overridden<CallStore>(this.#calls, {
      record: (rows) => this.#recordOrSpool(rows),
      open: (calls) => this.#open(calls),
    });
    this.answers = new PostgresAnswers(server);
    this.contents = new PostgresContents(server);
    this.responses = new PostgresResponses(server);
    this.budgets = new PostgresBudgets(server, this.#calls);
    this.people = new PostgresPeople(server);
    this.settings = new PostgresSettings(server);
    server.onUp(() => void this.#drain());
  }

  /** The address without user and password. */
  get shown(): string {
    return this.#options.address.shown;
  }

  /** Finished calls that wait on the disk of this instance. */
  get spooled(): number {
    return this.#spool.rows;
  }

  /** Calls `onChange` when keys or policies may have changed; it must not throw. */
  watch(onChange: () => void): void {
    // A start that waited for its turn may get so far while the gateway stops.
    if (this.#closed) return;
    const { address, log, random } = this.#options;
    const onBroken = (): void => this.server.look();
    const onAsked = (counter: string, window: string): void => this.#onAsked?.(counter, window);
    this.#changes ??= new PostgresChanges({ address, log, random, onChange, onAsked, onBroken });
  }

  /** Runs `work` while no other instance does the same. @throws StoreError, or what `work` throws. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return inTurn(this.#options.address, startTurn, work);
  }

  /** Calls `tell` with calls that have been written to the ledger. */
  onWritten(tell: (rows: readonly CallRow[]) => void): void {
    this.#onWritten = tell;
  }

  /**
   * Calls `tell` with budget windows in which another instance needs the unused part of this instance's lease.
   */
  onAsked(tell: (counter: string, window: string) => void): void {
    this.#onAsked = tell;
  }

  /** On the disk of this instance while the server is away (F88). @throws StoreError */
  async #recordOrSpool(rows: readonly CallRow[]): Promise<void> {
    try {
      await this.#record(rows);
    } catch (error) {
      if (!passes(error)) throw error;
      await this.#spool.append(rows);
      this.#drainLater();
    }
  }

  /** While the server is away nothing is noted, and no call is held up: the next sign of life counts. */
  async #open(calls: readonly OpenCall[]): Promise<readonly string[]> {
    try {
      return await this.#calls.open(calls);
    } catch (error) {
      if (!passes(error)) throw error;
      return [];
    }
  }

  /** Instances that hold leases of budgets. @throws StoreError */
  instances(): Promise<readonly SeenInstance[]> {
    return this.budgets.instances();
  }

  /** Ends the leases of an instance that is dead (`LeaseRegister`). @throws StoreError */
  expire(seen: SeenInstance): Promise<number | undefined> {
    return this.#calls.expire(seen);
  }

  /** Gives back what a dead instance did not spend (`LeaseRegister`). @throws StoreError */
  giveBack(dead: DeadLeases): Promise<number> {
    return this.#calls.giveBack(dead);
  }

  async backup(): Promise<void> {
    throw new StoreError(
      'failed',
      'The store is in PostgreSQL: back it up with its own tools (pg_dump, base backups).',
    );
  }

  /** The gateway stops: from now on a server that is silent is not waited for. */
  stopping(): void {
    this.server.stopping();
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#draining);
    const cut = await Promise.all([this.#changes?.close(), this.server.close()]);
    await this.#spool.close();
    if (cut.includes(true)) {
      const { spoolDirectory, log } = this.#options;
      const calls = this.#spool.rows;
      const left = `${calls} finished calls wait in ${spoolDirectory} for the next start with this data directory.`;
      const reason = `${this.shown} did not answer any more: its connections were cut. ${left}`;
      log.warn('store_silent_at_stop', { spooled: calls, reason });
    }
  }

  async #setAside(orphan: RefusedOrphan): Promise<void> {
    const path = join(this.#options.spoolDirectory, 'orphans.unread');
    await quarantineOrphan(path, orphan);
    const { id: call, reason } = orphan;
    this.#options.log.error('orphan_refused', { call, path, reason });
  }

  async #drain(): Promise<void> {
    try {
      await this.#spool.drain((rows) => this.#record(rows));
    } catch (error) {
      const reason = error instanceof Error ? error.message : 'unknown';
      if (this.server.up) this.#options.log.error('spool_not_written', { reason });
      if (!(error instanceof StoreError) || error.kind !== 'closed') this.#drainLater();
    }
  }

  async #record(rows: readonly CallRow[]): Promise<void> {
    await this.#calls.record(rows);
    this.#onWritten?.(rows);
  }

  /** Besides at each return of the server: it may be slow, or full, without being away. */
  #drainLater(): void {
    if (this.#draining !== undefined || this.#closed) return;
    this.#draining = setTimeout(() => {
      this.#draining = undefined;
      if (this.#spool.rows > 0) void this.#drain();
    }, drainAgainMs);
  }
}

// Notifies of changes of keys or policies by other instances (S6): at once by LISTEN on its own connection, and by
// polling for notifications that were sent while it was not connected.

export interface ChangesOptions {
  readonly address: ServerAddress;
  readonly log: Log;
  /** From 0, below 1. */
  random(): number;
  /** Reads again what may have changed; must not throw. */
  onChange(): void;
  /** Another instance needs what is free in a lease here; must not throw. */
  onAsked(counter: string, window: string): void;
  /** The connection ended: the server may be gone. */
  onBroken(): void;
}

/** S6 allows 30 s without notifications. */
const askEveryMs = 10_000;
/** A server that accepts the connection and does not answer gets another try later. */
const listenMs = 5000;
const firstPauseMs = 200;
const lastPauseMs = 5000;

export class PostgresChanges {
  readonly #options: ChangesOptions;
  readonly #asking: NodeJS.Timeout;
  #client: Client | undefined;
  #socket: Socket | undefined;
  #timer: NodeJS.Timeout | undefined;
  #tries = 0;
  #closed = false;

  /** Begins to listen. */
  constructor(options: ChangesOptions) {
    this.#options = options;
    this.#asking = setInterval(() => options.onChange(), askEveryMs);
    void this.#listen();
  }

  /** @returns whether the server did not answer to the end. */
  async close(): Promise<boolean> {
    this.#closed = true;
    clearInterval(this.#asking);
    clearTimeout(this.#timer);
    if (this.#client === undefined) return false;
    return endOrCut(this.#client.end(), () => this.#socket?.destroy());
  }

  async #listen(): Promise<void> {
    const { address, onChange, onAsked } = this.#options;
    const pg = await import('pg');
    if (this.#closed) return;
    const socket = new Socket();
    const client = new pg.Client({
      ...connectionConfig(address, 'model-gateway changes'),
      query_timeout: listenMs,
      stream: () => socket,
    });
    this.#client = client;
    this.#socket = socket;
    // An end that was not requested is an error first; one of both is enough.
    client.once('error', (error) => this.#again(client, error));
    client.once('end', () => this.#again(client, undefined));
    client.on('notification', ({ channel, payload = '' }) => {
      const at = payload.lastIndexOf('|');
      if (channel === leaseChannel) onAsked(payload.slice(0, at), payload.slice(at + 1));
      else onChange();
    });
    try {
      await client.connect();
      await client.query(`LISTEN ${changesChannel}`);
      await client.query(`LISTEN ${leaseChannel}`);
      this.#tries = 0;
      // Notifications before the connection were missed.
      onChange();
    } catch (error) {
      this.#again(client, error);
    }
  }

  #again(client: Client, error: unknown): void {
    if (this.#closed || this.#client !== client) return;
    this.#client = undefined;
    client.on('error', () => undefined);
    client.end().catch(() => undefined);
    const { address, log, random, onBroken } = this.#options;
    onBroken();
    if (this.#tries === 0 && error !== undefined) {
      log.warn('changes_not_received', { reason: asPostgresError(error, address.shown).message });
    }
    const longest = Math.min(lastPauseMs, firstPauseMs * 2 ** this.#tries);
    this.#tries += 1;
    this.#timer = setTimeout(() => void this.#listen(), longest / 2 + (longest / 2) * random());
  }
}
