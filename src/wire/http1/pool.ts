/** The connections to one origin, and the requests on them. There is no cap: a cap would queue streams silently. */
import type { Socket } from 'node:net';
import type { Connector, Peer } from '../connect.ts';
import { idleConnectionMs, maxIdleMs } from '../exchange.ts';
import type { Pieces } from '../../json/pieces.ts';
import { type ResponseHead, ResponseReader } from './response-reader.ts';

/** Subtracted from `keep-alive: timeout=N`: the server's close may be on the way. */
const promiseMarginMs = 2000;
const sweepMs = 1000;
const promised = /(?:^|[,;\s])timeout=(\d{1,6})/i;

export interface PoolOptions {
  readonly origin: string;
  readonly connector: Connector;
  /** Monotonic ms. */
  readonly now: () => number;
}

export type Connected = (error: Error | null, connection: Connection | undefined) => void;

export class Pool implements ConnectionOwner {
  readonly #peer: Peer;
  readonly #options: PoolOptions;
  /** Last in, first out, so that unused connections expire. */
  readonly #idle: Connection[] = [];
  /**
   * Freed in this turn of the event loop, and in the one before it. Surplus bytes after an answer close a connection when they
   * are read, so it is used again only after all sockets were polled once more.
   */
  #freed: Connection[] = [];
  #looked: Connection[] = [];
  #looks = false;
  readonly #all = new Set<Connection>();
  #sweep: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: PoolOptions) {
    const { protocol, hostname, port } = new URL(options.origin);
    this.#options = options;
    this.#peer = { protocol, hostname: hostname.replace(/^\[|\]$/g, ''), port };
  }

  get count(): { readonly open: number; readonly idle: number } {
    const idle = this.#idle.length + this.#freed.length + this.#looked.length;
    return { open: this.#all.size, idle };
  }

  /**
   * A connection that has carried a request before, or undefined.
   * @param sharer the connection must have the same one; undefined = a connection for all
   */
  takeIdle(sharer: string | undefined): Connection | undefined {
    for (let at = this.#idle.length - 1; at >= 0; at -= 1) {
      const connection = this.#idle[at];
      if (connection === undefined || connection.sharer !== sharer) continue;
      this.#idle.splice(at, 1);
      if (connection.expiresAt > this.#options.now()) return connection;
      connection.close(new ConnectionClosed('idle for too long'));
    }
    return undefined;
  }

  /** Calls back later with a connection, which must be used at once or given to `free`. */
  connect(sharer: string | undefined, connected: Connected): void {
    if (this.#closed) {
      queueMicrotask(() => connected(new ConnectionClosed('the gateway stops'), undefined));
      return;
    }
    this.#options.connector(this.#peer, (error, socket) => {
      if (socket === undefined) connected(error, undefined);
      else if (this.#closed) {
        socket.destroy();
        connected(new ConnectionClosed('the gateway stops'), undefined);
      } else connected(null, this.#open(socket, sharer));
    });
  }

  free(connection: Connection): void {
    if (connection.sharer === '') return connection.close(new ConnectionClosed('done'));
    connection.expiresAt = this.#options.now() + idleTime(connection.keepAlive);
    this.#freed.push(connection);
    if (!this.#looks) this.#lookLater();
    this.#sweep ??= setTimeout(() => this.#dropExpired(), sweepMs).unref();
  }

  gone(connection: Connection): void {
    this.#all.delete(connection);
    for (const list of [this.#idle, this.#freed, this.#looked]) {
      const at = list.indexOf(connection);
      if (at !== -1) list.splice(at, 1);
    }
  }

  /** Makes freed connections usable after the event loop has polled all sockets twice. */
  #lookLater(): void {
    this.#looks = true;
    setImmediate(() => {
      this.#idle.push(...this.#looked);
      this.#looked = this.#freed;
      this.#freed = [];
      if (this.#looked.length > 0) this.#lookLater();
      else this.#looks = false;
    });
  }

  /** Running requests fail. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#sweep);
    for (const connection of this.#all) connection.close(new ConnectionClosed('the gateway stops'));
  }

  #open(socket: Socket, sharer: string | undefined): Connection {
    const connection = new Connection(socket, this, sharer);
    this.#all.add(connection);
    return connection;
  }

  #dropExpired(): void {
    this.#sweep = undefined;
    const now = this.#options.now();
    for (const connection of this.#idle.filter(({ expiresAt }) => expiresAt <= now)) {
      connection.close(new ConnectionClosed('idle for too long'));
    }
    if (this.count.idle > 0) this.#sweep = setTimeout(() => this.#dropExpired(), sweepMs).unref();
  }
}

function idleTime(keepAlive: string | undefined): number {
  const seconds = keepAlive === undefined ? undefined : promised.exec(keepAlive)?.[1];
  if (seconds === undefined) return idleConnectionMs;
  return Math.min(Number(seconds) * 1000 - promiseMarginMs, maxIdleMs);
}

/** The sender of the running request. Nothing is called after `end` or `failed`. */
export interface ConnectionUser {
  head(head: ResponseHead): void;
  data(chunk: Buffer): void;
  end(): void;
  /** @param begun some of the answer had come. */
  failed(error: Error, begun: boolean): void;
}

/** The pool of a connection. */
export interface ConnectionOwner {
  /** The connection may carry another request. */
  free(connection: Connection): void;
  gone(connection: Connection): void;
}

/** The connection was closed before the answer was complete. */
export class ConnectionClosed extends Error {
  readonly code = 'ECONNRESET';
}

/** Smaller bodies are copied into one buffer with their head. */
const joinedBytes = 64 * 1024;

/**
 * All connections read into one buffer: a read is handled before the next one begins, and kept bytes are copied.
 * Node otherwise allocates 64 KiB for each read.
 */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);
const connections = new WeakMap<Socket, Connection>();

/** The `onread` option of `net.connect` and `tls.connect`: passes each read to the socket's connection. */
export const sharedReads = {
  buffer: readBuffer,
  callback(this: unknown, length: number): boolean {
    connections.get(this as Socket)?.received(readBuffer.subarray(0, length));
    return true;
  },
};

/** One connection to an upstream, with one request at a time on it (S18). */
export class Connection {
  /** Monotonic ms after which an idle connection is not used any more. */
  expiresAt = 0;
  /** Requests with this sharer may use it again: undefined = all, '' = none. */
  readonly sharer: string | undefined;
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #reader: ResponseReader;
  #user: ConnectionUser | undefined;
  #head: ResponseHead | undefined;
  #closed = false;

  constructor(socket: Socket, owner: ConnectionOwner, sharer?: string) {
    this.#socket = socket;
    this.sharer = sharer;
    this.#owner = owner;
    this.#reader = new ResponseReader({
      head: (head) => {
        this.#head = head;
        this.#user?.head(head);
      },
      data: (chunk) => this.#user?.data(Buffer.from(chunk)),
    });
    connections.set(socket, this);
    socket.on('data', (chunk: Buffer) => this.received(chunk));
    socket.on('end', () => this.#ended());
    socket.on('error', (error) => this.close(error));
    socket.on('close', () =>
      this.close(new ConnectionClosed('the upstream closed the connection')),
    );
  }

  /** The `keep-alive` header of the last answer. */
  get keepAlive(): string | undefined {
    const value: unknown = this.#head?.headers['keep-alive'];
    return typeof value === 'string' ? value : undefined;
  }

  /** The connection must be free. */
  send(head: string, body: Pieces | undefined, user: ConnectionUser): void {
    this.#user = user;
    const socket = this.#socket;
    if (body === undefined) socket.write(head, 'latin1');
    else if (body.length < joinedBytes) {
      const bytes = Buffer.allocUnsafe(head.length + body.length);
      bytes.write(head, 0, 'latin1');
      body.copy(bytes, head.length);
      socket.write(bytes);
    } else {
      // Corked they leave in one vectored write.
      socket.cork();
      socket.write(head, 'latin1');
      for (const piece of body.list) socket.write(piece);
      socket.uncork();
    }
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes the connection; its user hears nothing more. */
  abort(): void {
    this.#user = undefined;
    this.close(new ConnectionClosed('aborted'));
  }

  close(error: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reader.stop();
    this.#socket.destroy();
    const user = this.#user;
    this.#user = undefined;
    this.#owner.gone(this);
    user?.failed(error, this.#reader.begun);
  }

  /** @internal Called by the socket. */
  received(bytes: Buffer): void {
    // Unsolicited bytes could be taken for the answer to the next request.
    if (this.#user === undefined) {
      this.close(new ConnectionClosed('the upstream answered what was not asked'));
      return;
    }
    try {
      const exact = this.#reader.read(bytes);
      if (this.#reader.done && !this.#closed) this.#finish(exact);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      this.close(error);
    }
  }

  #ended(): void {
    if (this.#user !== undefined && this.#reader.close()) this.#finish(false);
    this.close(new ConnectionClosed('the upstream closed the connection'));
  }

  /** The connection is closed when the answer came before the whole request was sent, or with surplus bytes. */
  #finish(exact: boolean): void {
    const user = this.#user;
    this.#user = undefined;
    const again = exact && this.#head?.keepsAlive === true && this.#socket.writableLength === 0;
    if (again) {
      this.#reader.reset();
      if (this.#socket.isPaused()) this.#socket.resume();
      this.#owner.free(this);
    } else this.close(new ConnectionClosed('done'));
    user?.end();
  }
}
