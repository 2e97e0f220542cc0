/** The connections to one origin. There is no cap: a cap would queue streams silently. */
import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { idleConnectionMs, longestIdleMs } from '../exchange.ts';
import { Connection, ConnectionClosed, type ConnectionOwner } from './connection.ts';

/** Taken off what a server promises in `keep-alive: timeout=N`: its close may be on the way. */
const promiseMarginMs = 2000;
const sweepMs = 1000;
const promised = /(?:^|[,;\s])timeout=(\d{1,6})/i;

export interface PoolOptions {
  readonly origin: string;
  readonly connector: buildConnector.connector;
  /** Monotonic ms. */
  readonly now: () => number;
}

export type Connected = (error: Error | null, connection: Connection | undefined) => void;

export class Pool implements ConnectionOwner {
  readonly #wanted: Parameters<buildConnector.connector>[0];
  readonly #options: PoolOptions;
  /** The one used last is taken first, so that the others can grow old. */
  readonly #idle: Connection[] = [];
  readonly #all = new Set<Connection>();
  #sweep: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: PoolOptions) {
    const { protocol, hostname, host, port } = new URL(options.origin);
    this.#options = options;
    this.#wanted = { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), host, port };
  }

  get count(): { readonly open: number; readonly idle: number } {
    return { open: this.#all.size, idle: this.#idle.length };
  }

  /** A connection that has carried a request before, or undefined. */
  takeIdle(): Connection | undefined {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined || connection.expiresAt > this.#options.now()) return connection;
      connection.close(new ConnectionClosed('idle for too long'));
    }
  }

  /** Calls back later, with a connection that is to be used at once or given to `free`. */
  connect(connected: Connected): void {
    if (this.#closed) {
      queueMicrotask(() => connected(new ConnectionClosed('the gateway stops'), undefined));
      return;
    }
    this.#options.connector(this.#wanted, (error, socket) => {
      if (error !== null) connected(error, undefined);
      else if (this.#closed) {
        socket.destroy();
        connected(new ConnectionClosed('the gateway stops'), undefined);
      } else connected(null, this.#open(socket));
    });
  }

  free(connection: Connection): void {
    connection.expiresAt = this.#options.now() + idleTime(connection.keepAlive);
    this.#idle.push(connection);
    this.#sweep ??= setTimeout(() => this.#dropExpired(), sweepMs).unref();
  }

  gone(connection: Connection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }

  /** Running requests fail. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#sweep);
    for (const connection of this.#all) connection.close(new ConnectionClosed('the gateway stops'));
  }

  #open(socket: Socket): Connection {
    const connection = new Connection(socket, this);
    this.#all.add(connection);
    return connection;
  }

  #dropExpired(): void {
    this.#sweep = undefined;
    const now = this.#options.now();
    for (const connection of this.#idle.filter(({ expiresAt }) => expiresAt <= now)) {
      connection.close(new ConnectionClosed('idle for too long'));
    }
    if (this.#idle.length > 0) this.#sweep = setTimeout(() => this.#dropExpired(), sweepMs).unref();
  }
}

function idleTime(keepAlive: string | undefined): number {
  const seconds = keepAlive === undefined ? undefined : promised.exec(keepAlive)?.[1];
  if (seconds === undefined) return idleConnectionMs;
  return Math.min(Number(seconds) * 1000 - promiseMarginMs, longestIdleMs);
}
