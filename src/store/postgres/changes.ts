/**
 * Notifies of changes of keys or policies by other instances (S6): at once by LISTEN on its own connection, and
 * by polling for notifications that were sent while it was not connected.
 */
import { Socket } from 'node:net';
import type { Client } from 'pg';
import type { Log } from '../../core/runtime.ts';
import type { ServerAddress } from '../../core/addresses.ts';
import { asPostgresError, connectionConfig, endOrCut } from './pool.ts';
import { leaseChannel } from './budgets.ts';
import { changesChannel } from './keys.ts';

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
/** A server that takes the connection and says nothing is left for another try. */
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
    // An end that was not asked for is an error first; one of both is enough.
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
