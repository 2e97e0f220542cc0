/**
 * The HTTP client of the request path: callbacks, no streams and no promises per chunk. It has one pool of
 * connections for each origin and way (proxy, authorities) to it.
 */
import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { getCACertificates } from 'node:tls';
import type { Endpoint, NetworkWay } from '../core/provider.ts';
import type { DefersWork } from '../core/event-loop-budget.ts';
import type { Exchange, UpstreamHandler, UpstreamRequest } from './exchange.ts';
import { type Connector, guardedConnector, proxyConnector, withLastAddresses } from './connect.ts';
import { SocketConnections } from './http1/socket-connections.ts';
import { sharedReads } from './http1/pool.ts';

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
    const place = [socketPath ?? origin, connectMs, sharing, ...wayKey(way)];
    const key = JSON.stringify(place);
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
