/**
 * The HTTP client of the request path: callbacks, no streams and no promises per chunk. It has one pool of
 * connections for each origin and way (proxy, authorities) to it.
 */
import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { getCACertificates } from 'node:tls';
import { GatewayError } from '../core/errors.ts';
import type { Deferrable, DefersWork } from '../core/event-loop-budget.ts';
import type { Endpoint, NetworkWay } from '../core/provider.ts';
import { type Connector, guardedConnector, proxyConnector, withLastAddresses } from './connect.ts';
import { type Decompressor, decompressor } from './decompress.ts';
import type { Exchange, UpstreamHandler, UpstreamRequest } from './exchange.ts';
import {
  type Connection,
  ConnectionClosed,
  type ConnectionUser,
  Pool,
  type PoolOptions,
  sharedReads,
} from './http1/pool.ts';
import { type ResponseHead, requestHead } from './http1/response-reader.ts';
import { asUpstreamError } from './upstream-error.ts';

export interface HttpClientOptions {
  /** Finds the addresses of a name; default: the system's resolver. */
  readonly lookup?: LookupFunction;
  /** Makes the connections instead: for simulated time (test/simulation). */
  readonly connector?: (connectMs: number) => Connector;
  /** Monotonic ms. */
  readonly now?: () => number;
  /** Defers reads beyond its budget of one turn of the event loop; absent = nothing is deferred. */
  readonly turns?: DefersWork;
}

/** The pool of an endpoint's last request. */
interface Known {
  readonly connectMs: number;
  /** A restarted engine has another socket. */
  readonly socketPath: string | undefined;
  readonly connections: SocketConnections;
}

export class HttpClient {
  readonly #connections = new Map<string, { origin: string; connections: SocketConnections }>();
  #byEndpoint = new WeakMap<Endpoint, Known>();
  readonly #lookup: LookupFunction;
  readonly #connector: HttpClientOptions['connector'];
  readonly #now: () => number;
  readonly #turns: DefersWork | undefined;

  constructor(options: HttpClientOptions = {}) {
    this.#lookup = withLastAddresses(options.lookup ?? lookup);
    this.#connector = options.connector;
    this.#now = options.now ?? (() => performance.now());
    this.#turns = options.turns;
  }

  /** Sends one request. The handler is called later, never inside this call. */
  send(request: UpstreamRequest, handler: UpstreamHandler): Exchange {
    const { endpoint, connectMs } = request;
    const { socketPath } = endpoint;
    const known = this.#byEndpoint.get(endpoint);
    if (known?.connectMs === connectMs && known.socketPath === socketPath) {
      return known.connections.send(request, handler);
    }
    const connections = this.#connectionsTo(endpoint, connectMs);
    this.#byEndpoint.set(endpoint, { connectMs, socketPath, connections });
    return connections.send(request, handler);
  }

  /** Connections to each origin, by whatever way. */
  counts(): readonly { readonly origin: string; readonly open: number; readonly idle: number }[] {
    const sums = new Map<string, { origin: string; open: number; idle: number }>();
    for (const { origin, connections } of this.#connections.values()) {
      const sum = sums.get(origin) ?? { origin, open: 0, idle: 0 };
      const { open, idle } = connections.count;
      sums.set(origin, { origin, open: sum.open + open, idle: sum.idle + idle });
    }
    return [...sums.values()];
  }

  /** Closes all connections; running requests fail. */
  async close(): Promise<void> {
    const all = [...this.#connections.values()];
    this.#connections.clear();
    this.#byEndpoint = new WeakMap();
    for (const { connections } of all) connections.close();
    await Promise.resolve();
  }

  /** Equal ways share connections, whichever providers they are of. */
  #connectionsTo(endpoint: Endpoint, connectMs: number): SocketConnections {
    const { origin, socketPath, way, connections: sharing } = endpoint;
    const parts = [socketPath ?? origin, connectMs, sharing, ...wayKey(way)];
    const key = JSON.stringify(parts);
    let connections = this.#connections.get(key)?.connections;
    if (connections === undefined) {
      const connector = this.#connector?.(connectMs) ?? this.#connectorTo(endpoint, connectMs);
      connections = new SocketConnections({
        origin,
        connector,
        now: this.#now,
        turns: this.#turns,
      });
      this.#connections.set(key, { origin, connections });
    }
    return connections;
  }

  #connectorTo({ socketPath, way }: Endpoint, timeoutMs: number): Connector {
    const ca = way?.ca === undefined ? undefined : [...getCACertificates('default'), way.ca];
    const options = { timeoutMs, lookup: this.#lookup, socketPath, ca };
    // The answer of a proxy to CONNECT is read from the socket's stream.
    if (way?.proxy !== undefined) {
      return proxyConnector(way.proxy, guardedConnector(options), timeoutMs);
    }
    return guardedConnector({ ...options, onread: sharedReads });
  }
}

function wayKey(way: NetworkWay | undefined): readonly (string | undefined)[] {
  return way === undefined ? [] : [way.proxy?.origin, way.proxy?.authorization, way.ca];
}

// HTTP/1.1 requests over the sockets of a pool: callbacks, one chunk for each read, no stream objects. A request that
// fails on a reused connection before any byte of its answer is sent once more, since the server may just have
// closed the connection (F7).

interface SocketOptions extends PoolOptions {
  /** Defers data beyond its budget of one turn of the event loop; absent = nothing is deferred. */
  readonly turns?: DefersWork | undefined;
}

/** Held data at most; then the connection is paused. */
const maxHeldBytes = 32 * 1024;

/** The connections to one origin by one way. */
class SocketConnections {
  readonly #pool: Pool;
  readonly #turns: DefersWork | undefined;

  constructor({ turns, ...options }: SocketOptions) {
    this.#pool = new Pool(options);
    this.#turns = turns;
  }

  /** Sends one request. The handler is called later, never inside this call. */
  send(request: UpstreamRequest, handler: UpstreamHandler): Exchange {
    const call = new Call({ pool: this.#pool, turns: this.#turns }, request, handler);
    call.start();
    return call;
  }

  /** The open connections, and those of them that wait for a request. */
  get count(): { readonly open: number; readonly idle: number } {
    return this.#pool.count;
  }

  /** Closes all connections; running requests fail. */
  close(): void {
    this.#pool.close();
  }
}

/** One request, sent again once when a kept-alive connection turned out to be dead (F7). */
class Call implements Exchange, ConnectionUser, Deferrable {
  readonly #pool: Pool;
  readonly #turns: DefersWork | undefined;
  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  #connection: Connection | undefined;
  #body: Decompressor | undefined;
  #over = false;
  #paused = false;
  /**
   * Data that came while the answer was paused or deferred. New chunks do not go into new arrays: V8 frees an old array
   * only in a full collection, and until then it keeps its chunks alive (G1).
   */
  #first: Buffer | undefined;
  /** After the first. */
  readonly #more: Buffer[] = [];
  #heldBytes = 0;
  #endHeld = false;
  #failure: Error | undefined;
  /** The held data waits for another turn of the event loop. */
  #deferred = false;
  #mayRepeat = false;

  constructor(
    { pool, turns }: { readonly pool: Pool; readonly turns: DefersWork | undefined },
    request: UpstreamRequest,
    handler: UpstreamHandler,
  ) {
    this.#pool = pool;
    this.#turns = turns;
    this.#request = request;
    this.#handler = handler;
  }

  start(): void {
    const idle = this.#pool.takeIdle(this.#sharer);
    this.#mayRepeat = idle !== undefined && this.#request.once !== true;
    if (idle === undefined) this.#connect();
    else this.#sendOn(idle);
  }

  get #sharer(): string | undefined {
    const { endpoint, sharer = '' } = this.#request;
    return endpoint.connections === undefined ? undefined : sharer;
  }

  get waits(): boolean {
    return this.#deferred;
  }

  pause(): void {
    this.#paused = true;
    if (this.#body === undefined) this.#connection?.pause();
    else this.#body.pause();
  }

  resume(): void {
    this.#paused = false;
    if (this.#body !== undefined) this.#body.resume();
    else if (!this.#deferred) this.#handOver();
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#body?.destroy();
    this.#connection?.abort();
  }

  head({ status, headers }: ResponseHead): void {
    const encoding = headers['content-encoding'];
    if (encoding !== undefined) this.#decode(encoding);
    if (!this.#over) this.#handler.head(status, headers);
  }

  data(chunk: Buffer): void {
    if (this.#body === undefined) {
      if (this.#paused || this.#deferred) this.#hold(chunk);
      else if (this.#turns?.exhausted === true) this.#wait(this.#turns, chunk);
      else this.#handler.data(chunk);
    } else if (!this.#body.write(chunk, () => this.#connection?.resume()))
      this.#connection?.pause();
  }

  end(): void {
    this.#connection = undefined;
    if (this.#body !== undefined) this.#body.end();
    else if (this.#paused || this.#deferred) this.#endHeld = true;
    else this.#end();
  }

  /** Data that came before the failure is handed over first, also when it is held or compressed (F40). */
  failed(error: Error, begun: boolean): void {
    this.#connection = undefined;
    if (this.#mayRepeat && !begun) {
      this.#mayRepeat = false;
      this.#connect();
    } else if (this.#body !== undefined) this.#body.behind(() => this.#fail(error));
    else if (this.#paused || this.#deferred) this.#failure = error;
    else this.#fail(error);
  }

  /** @internal The event loop has budget again. */
  runDeferred(): void {
    this.#deferred = false;
    this.#handOver();
  }

  #wait(turns: DefersWork, chunk: Buffer): void {
    this.#deferred = true;
    this.#hold(chunk);
    turns.defer(this);
  }

  #hold(chunk: Buffer): void {
    if (this.#first === undefined) this.#first = chunk;
    else this.#more.push(chunk);
    this.#heldBytes += chunk.length;
    if (this.#heldBytes >= maxHeldBytes) this.#connection?.pause();
  }

  /** Joins the reads that were held. */
  #handOver(): void {
    while (!this.#paused && !this.#over && this.#first !== undefined) {
      this.#handler.data(this.#takeHeld(this.#first));
    }
    // After a pause at the first content the end is reported on `resume` (attempt.ts).
    if (this.#over || this.#paused) return;
    if (this.#failure !== undefined) return this.#fail(this.#failure);
    this.#connection?.resume();
    if (this.#endHeld) this.#end();
  }

  #takeHeld(first: Buffer): Buffer {
    const more = this.#more;
    const all = more.length === 0 ? first : Buffer.concat([first, ...more]);
    this.#first = undefined;
    if (more.length > 0) more.length = 0;
    this.#heldBytes = 0;
    return all;
  }

  #connect(): void {
    this.#pool.connect(this.#sharer, (error, connection) => {
      if (connection === undefined) this.#unconnected(error ?? new Error('not connected'));
      else if (this.#over) this.#pool.free(connection);
      else this.#sendOn(connection);
    });
  }

  #unconnected(error: Error): void {
    if (!this.#over) return this.#fail(error);
    if (error instanceof ConnectionClosed) return;
    this.#handler.unreachable?.(asUpstreamError(error, this.#request.endpoint));
  }

  #sendOn(connection: Connection): void {
    const { endpoint, method, headers, body } = this.#request;
    try {
      const head = requestHead({ endpoint, method, headers, bodyBytes: body?.length });
      this.#connection = connection;
      connection.send(head, body, this);
      if (this.#paused) connection.pause();
    } catch (error) {
      this.#connection = undefined;
      this.#pool.free(connection);
      queueMicrotask(() => this.#fail(error));
    }
  }

  #decode(encoding: string | readonly string[]): void {
    try {
      this.#body = decompressor(typeof encoding === 'string' ? encoding : encoding.join(), {
        data: (chunk) => {
          if (!this.#over) this.#handler.data(chunk);
        },
        end: () => this.#end(),
        failed: ({ message }) => this.#fail(unreadable(message)),
      });
    } catch (error) {
      this.#fail(unreadable(error instanceof Error ? error.message : String(error)));
    }
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#handler.end();
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#body?.destroy();
    this.#connection?.abort();
    this.#handler.failed(asUpstreamError(error, this.#request.endpoint));
  }
}

/** A repeated request would get the same answer. */
function unreadable(why: string): GatewayError {
  return new GatewayError('upstream_invalid', why, { repeat: 'never' });
}
