/**
 * The one HTTP client of the request path: undici `dispatch`, callbacks, no streams and no promises
 * per chunk (performance.md: `fetch` costs 5–7 times as much). Timeouts belong to the caller: undici's
 * own 300 s clocks are switched off (J1). Redirects are never followed (F28).
 */
import { Pool, type buildConnector, type Dispatcher } from 'undici';
import { lookup } from 'node:dns';
import type { IncomingHttpHeaders } from 'node:http';
import type { LookupFunction } from 'node:net';
import { getCACertificates } from 'node:tls';
import { GatewayError } from '../core/errors.ts';
import type { Endpoint, NetworkWay } from '../core/provider.ts';
import { decompressor, type Decompressor } from './decompress.ts';
import { guardedConnector } from './guarded-connect.ts';
import { proxyConnector } from './proxy-connect.ts';

export type ResponseHeaders = IncomingHttpHeaders;

export interface UpstreamRequest {
  readonly endpoint: Endpoint;
  readonly method: 'GET' | 'POST';
  /** Headers of this call besides the endpoint's, flat. */
  readonly headers: readonly string[];
  readonly body?: Buffer;
  readonly connectMs: number;
}

/** What comes back. After `end` or `failed` nothing more is called. */
export interface UpstreamHandler {
  head(status: number, headers: ResponseHeaders): void;
  data(chunk: Buffer): void;
  end(): void;
  /** `upstream_unavailable`, `timeout` (connect) or `upstream_invalid`. */
  failed(error: GatewayError): void;
}

/** The running request. `abort` closes the connection; no handler method is called afterwards. */
export interface Exchange {
  pause(): void;
  resume(): void;
  abort(): void;
}

/** Idle upstream connections are dropped before a server's usual 5 s (F7, J3). */
const idleConnectionMs = 4000;
const maxHeaderBytes = 64 * 1024;
/** Vendors send some thirty (F31). */
const maxHeaders = 500;

export interface HttpClientOptions {
  /** Finds the addresses of a name; default: the system's resolver. */
  readonly lookup?: LookupFunction;
  /** Makes the connections instead, in time that is not real (test/simulation). */
  readonly connector?: (connectMs: number) => buildConnector.connector;
}

/** Keeps one connection pool an origin. */
export class HttpClient {
  readonly #pools = new Map<string, Connections>();
  readonly #ways = new Map<string, Map<string, Connections>>();
  readonly #lookup: LookupFunction;
  readonly #connector: HttpClientOptions['connector'];

  constructor(options: HttpClientOptions = {}) {
    this.#lookup = options.lookup ?? lookup;
    this.#connector = options.connector;
  }

  /** Sends one request. The handler is called later, never inside this call. */
  send(request: UpstreamRequest, handler: UpstreamHandler): Exchange {
    const attempt = new Attempt(this.#pool(request), request, handler);
    attempt.dispatch();
    return attempt;
  }

  /** Closes all connections; running requests fail. */
  async close(): Promise<void> {
    const pools = [this.#pools, ...this.#ways.values()].flatMap((each) => [...each.values()]);
    this.#pools.clear();
    this.#ways.clear();
    await Promise.all(pools.map(({ pool }) => pool.destroy()));
  }

  #pool({ endpoint, connectMs }: UpstreamRequest): Connections {
    const pools = endpoint.way === undefined ? this.#pools : this.#poolsBy(endpoint.way);
    const key = `${endpoint.socketPath ?? endpoint.origin} ${connectMs}`;
    const known = pools.get(key);
    if (known !== undefined) return known;
    const pool = new Pool(endpoint.origin, {
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleConnectionMs,
      keepAliveMaxTimeout: 60_000,
      maxHeaderSize: maxHeaderBytes,
      connect: this.#connector?.(connectMs) ?? this.#connectorTo(endpoint, connectMs),
    });
    const connections = { pool, kept: 0 };
    pools.set(key, connections);
    return connections;
  }

  /** Equal ways share connections, whichever providers they are of. */
  #poolsBy({ proxy, ca }: NetworkWay): Map<string, Connections> {
    const key = JSON.stringify([proxy?.origin, proxy?.authorization, ca]);
    const pools = this.#ways.get(key) ?? new Map<string, Connections>();
    this.#ways.set(key, pools);
    return pools;
  }

  #connectorTo({ socketPath, way }: Endpoint, timeout: number): buildConnector.connector {
    const options = {
      timeout,
      allowH2: false,
      ...(socketPath === undefined ? {} : { socketPath }),
      ...(way?.ca === undefined ? {} : { ca: [...getCACertificates('default'), way.ca] }),
    };
    const direct = guardedConnector(options, this.#lookup);
    if (way?.proxy === undefined) return direct;
    return proxyConnector(way.proxy, { outer: direct, inner: direct, timeoutMs: timeout });
  }
}

interface Connections {
  readonly pool: Pool;
  /** Answers that ended well and left a connection, less the requests that may have taken one. */
  kept: number;
}

/** One request, sent again once when a kept-alive connection turned out to be dead (F7). */
class Attempt implements Exchange, Dispatcher.DispatchHandler {
  readonly #connections: Connections;
  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  #controller: Dispatcher.DispatchController | undefined;
  #body: Decompressor | undefined;
  #answered = false;
  #over = false;
  #mayRepeat = false;

  constructor(connections: Connections, request: UpstreamRequest, handler: UpstreamHandler) {
    this.#connections = connections;
    this.#request = request;
    this.#handler = handler;
  }

  /**
   * Only a kept connection can have been dead before the request: what fails on a fresh one is no
   * race, and asking again is the caller's affair (F6, G12).
   */
  dispatch(): void {
    const connections = this.#connections;
    this.#mayRepeat = connections.kept > 0;
    if (this.#mayRepeat) connections.kept -= 1;
    this.#send();
  }

  #send(): void {
    const { endpoint, method, headers, body } = this.#request;
    try {
      this.#connections.pool.dispatch(
        {
          path: endpoint.way?.proxy === undefined ? endpoint.path : pathThrough(endpoint),
          method,
          headers: [...endpoint.headers, ...headers, ...proxyHeaders(endpoint)],
          body: body ?? null,
        },
        this,
      );
    } catch (error) {
      queueMicrotask(() => this.#fail(asUpstreamError(error, endpoint)));
    }
  }

  pause(): void {
    if (this.#body === undefined) this.#controller?.pause();
    else this.#body.pause();
  }

  resume(): void {
    if (this.#body === undefined) this.#controller?.resume();
    else this.#body.resume();
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#body?.destroy();
    this.#controller?.abort(new Error('aborted'));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(new Error('aborted'));
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200 || this.#over) return;
    this.#answered = true;
    const { rawHeaders } = controller;
    if (Array.isArray(rawHeaders) && rawHeaders.length > 2 * maxHeaders) {
      this.#break(controller, `The upstream sent more than ${maxHeaders} headers.`);
      return;
    }
    const encoding = headers['content-encoding'];
    if (encoding !== undefined) {
      try {
        this.#body = decompressor(encoding, {
          data: (chunk) => {
            if (!this.#over) this.#handler.data(chunk);
          },
          end: () => this.#end(),
          failed: ({ message }) => this.#break(controller, message),
        });
      } catch (error) {
        this.#break(controller, asUpstreamError(error, this.#request.endpoint).message);
        return;
      }
    }
    this.#handler.head(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return;
    if (this.#body === undefined) {
      this.#handler.data(chunk);
    } else if (!this.#body.write(chunk, () => controller.resume())) {
      controller.pause();
    }
  }

  onResponseEnd(): void {
    if (this.#body === undefined) this.#end();
    else this.#body.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#over) return;
    if (!this.#answered && this.#mayRepeat && isDeadConnection(error)) {
      this.#mayRepeat = false;
      this.#controller = undefined;
      this.#send();
      return;
    }
    this.#fail(asUpstreamError(error, this.#request.endpoint));
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#connections.kept += 1;
    this.#handler.end();
  }

  /** Nothing more is wanted of an answer that cannot be read. */
  #break(controller: Dispatcher.DispatchController, why: string): void {
    this.#fail(new GatewayError('upstream_invalid', why, { repeat: 'never' }));
    controller.abort(new Error('unreadable'));
  }

  #fail(error: GatewayError): void {
    if (this.#over) return;
    this.#over = true;
    this.#body?.destroy();
    this.#handler.failed(error);
  }
}

/** A proxy is asked for plain http by the whole address. */
function pathThrough({ origin, path }: Endpoint): string {
  return origin.startsWith('http:') ? origin + path : path;
}

const none: readonly string[] = [];

function proxyHeaders({ origin, way }: Endpoint): readonly string[] {
  const credential = way?.proxy?.authorization;
  if (credential === undefined || !origin.startsWith('http:')) return none;
  return ['proxy-authorization', credential];
}

function errorCode(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}

/** The server closed or reset the connection before a byte of the answer came. */
function isDeadConnection(error: unknown): boolean {
  if (isGarbled(error)) return false;
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(errorCode(error));
}

/** No HTTP, or a status that nobody asked for (101, 100): undici has codes for neither (F26, F27). */
function isGarbled(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === 'HTTPParserError' || /^bad (upgrade|response)$/.test(error.message);
}

/** File descriptors, ports or memory of this machine are used up: that says nothing of the upstream (F92). */
const ownScarcity: ReadonlySet<string> = new Set([
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  'ENOMEM',
]);

/** Asking again would not make it trusted, and asking without would be worse (F4, S19). */
function isRefusedCertificate(error: unknown): boolean {
  return /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/.test(errorCode(error));
}

function asUpstreamError(error: unknown, endpoint: Endpoint): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = errorCode(error);
  const where = endpoint.socketPath === undefined ? endpoint.origin : 'the embedded engine';
  if (code === 'UND_ERR_CONNECT_TIMEOUT') {
    return new GatewayError('timeout', `Could not connect to ${where} in time.`, { cause: error });
  }
  if (ownScarcity.has(code)) {
    return new GatewayError('overloaded', 'The gateway has no room for another connection.', {
      cause: error,
      retryable: false,
    });
  }
  const garbled = isGarbled(error);
  const unreadable =
    garbled ||
    code === 'UND_ERR_HEADERS_OVERFLOW' ||
    code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH' ||
    code === 'UND_ERR_INVALID_ARG';
  if (unreadable) {
    return new GatewayError('upstream_invalid', `The answer of ${where} is not valid HTTP.`, {
      cause: error,
      // What was broken on the way comes whole the next time (F25, F26); headers stay too large (F31).
      repeat: garbled || code.endsWith('LENGTH_MISMATCH') ? 'may' : 'never',
    });
  }
  return brokenConnection(error, where);
}

function brokenConnection(error: unknown, where: string): GatewayError {
  const code = errorCode(error);
  if (code === 'PROXY_REFUSED' && error instanceof Error) {
    return new GatewayError('upstream_unavailable', `No way to ${where}: ${error.message}.`, {
      cause: error,
    });
  }
  if (isRefusedCertificate(error)) {
    return new GatewayError(
      'upstream_unavailable',
      `The certificate of ${where} is not accepted (${code}). Where an authority of your own signed it, name its file in ca of the provider or in NODE_EXTRA_CA_CERTS.`,
      { cause: error, repeat: 'never' },
    );
  }
  return new GatewayError(
    'upstream_unavailable',
    `The connection to ${where} failed${code === '' ? '' : ` (${code})`}.`,
    { cause: error },
  );
}
