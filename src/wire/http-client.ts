/**
 * The one HTTP client of the request path: callbacks, no streams and no promises per chunk. It keeps the
 * connections to each origin, by each way.
 */
import type { buildConnector } from 'undici';
import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { getCACertificates } from 'node:tls';
import type { Endpoint, NetworkWay } from '../core/provider.ts';
import type { PutsOff } from '../core/turn-share.ts';
import type { Connections, Exchange, UpstreamHandler, UpstreamRequest } from './exchange.ts';
import { guardedConnector } from './guarded-connect.ts';
import { SocketConnections } from './http1/socket-connections.ts';
import { sharedReads } from './http1/connection.ts';
import { withLastAddresses } from './last-addresses.ts';
import { proxyConnector } from './proxy-connect.ts';
import { UndiciConnections } from './undici-connections.ts';

/** `sockets`: the gateway's own HTTP/1.1 over `net` and `tls`; `undici`: that library's dispatcher. */
export type Transport = 'sockets' | 'undici';

export interface HttpClientOptions {
  /** Default: `sockets`, which costs about two thirds of the other (decision 0022). */
  readonly transport?: Transport;
  /** Finds the addresses of a name; default: the system's resolver. */
  readonly lookup?: LookupFunction;
  /** Makes the connections instead, in time that is not real (test/simulation). */
  readonly connector?: (connectMs: number) => buildConnector.connector;
  /** Monotonic ms. */
  readonly now?: () => number;
  /** What upstreams send beyond it in one turn of the event loop waits; absent = nothing waits. */
  readonly turns?: PutsOff;
}

/** Where requests of an endpoint went the last time. */
interface Known {
  readonly connectMs: number;
  /** An engine that is started anew has a socket of its own. */
  readonly socketPath: string | undefined;
  readonly connections: Connections;
}

export class HttpClient {
  readonly #connections = new Map<string, { origin: string; connections: Connections }>();
  #byEndpoint = new WeakMap<Endpoint, Known>();
  readonly #transport: Transport;
  readonly #lookup: LookupFunction;
  readonly #connector: HttpClientOptions['connector'];
  readonly #now: () => number;
  readonly #turns: PutsOff | undefined;

  constructor(options: HttpClientOptions = {}) {
    this.#transport = options.transport ?? 'sockets';
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
    await Promise.all(all.map(({ connections }) => connections.close()));
  }

  /** Equal ways share connections, whichever providers they are of. */
  #connectionsTo(endpoint: Endpoint, connectMs: number): Connections {
    const { origin, socketPath, way } = endpoint;
    const place = [socketPath ?? origin, connectMs, ...wayKey(way)];
    const key = JSON.stringify(place);
    let connections = this.#connections.get(key)?.connections;
    if (connections === undefined) {
      const connector = this.#connector?.(connectMs) ?? this.#connectorTo(endpoint, connectMs);
      connections =
        this.#transport === 'undici'
          ? new UndiciConnections(origin, connector)
          : new SocketConnections({ origin, connector, now: this.#now, turns: this.#turns });
      this.#connections.set(key, { origin, connections });
    }
    return connections;
  }

  #connectorTo({ socketPath, way }: Endpoint, timeout: number): buildConnector.connector {
    const options = {
      timeout,
      allowH2: false,
      ...(socketPath === undefined ? {} : { socketPath }),
      ...(way?.ca === undefined ? {} : { ca: [...getCACertificates('default'), way.ca] }),
    };
    if (way?.proxy !== undefined) {
      const direct = guardedConnector(options, this.#lookup);
      return proxyConnector(way.proxy, { outer: direct, inner: direct, timeoutMs: timeout });
    }
    // What a proxy says first is read otherwise.
    const reads = this.#transport === 'sockets' ? { onread: sharedReads } : {};
    return guardedConnector({ ...options, ...reads }, this.#lookup);
  }
}

function wayKey(way: NetworkWay | undefined): readonly (string | undefined)[] {
  return way === undefined ? [] : [way.proxy?.origin, way.proxy?.authorization, way.ca];
}
