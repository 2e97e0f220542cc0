/**
 * Connections by undici's `dispatch`: callbacks, no streams and no promises per chunk (performance.md: `fetch`
 * costs 5-7 times as much). Timeouts belong to the caller: undici's own 300 s clocks are switched off (J1).
 * Redirects are never followed (F28).
 */
import type { buildConnector, Dispatcher, Pool } from 'undici';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../core/errors.ts';
import { decompressor, type Decompressor } from './decompress.ts';
import {
  idleConnectionMs,
  longestIdleMs,
  maxHeaderBytes,
  maxHeaders,
  type Connections,
  type Exchange,
  type UpstreamHandler,
  type UpstreamRequest,
} from './exchange.ts';
import { pathThrough, proxyHeaders } from './proxied-request.ts';
import { wholeUndici } from './undici-parts.ts';
import { asUpstreamError, errorCode, isGarbled } from './upstream-error.ts';

export class UndiciConnections implements Connections {
  readonly pool: Pool;
  /** Connections that stand. */
  open = 0;
  /** Requests that have one, or wait for one. */
  taken = 0;

  constructor(origin: string, connect: buildConnector.connector) {
    const { Pool: DispatcherPool } = wholeUndici();
    this.pool = new DispatcherPool(origin, {
      pipelining: 1,
      allowH2: false,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleConnectionMs,
      keepAliveMaxTimeout: longestIdleMs,
      maxHeaderSize: maxHeaderBytes,
      connect,
    });
    this.pool.on('connect', () => {
      this.open += 1;
    });
    this.pool.on('disconnect', () => {
      this.open -= 1;
    });
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): Exchange {
    const attempt = new Attempt(this, request, handler);
    attempt.dispatch();
    return attempt;
  }

  get count(): { readonly open: number; readonly idle: number } {
    return { open: this.open, idle: Math.max(0, this.open - this.taken) };
  }

  close(): Promise<void> {
    return this.pool.destroy();
  }
}

/** One request, sent again once when a kept-alive connection turned out to be dead (F7). */
class Attempt implements Exchange, Dispatcher.DispatchHandler {
  readonly #connections: UndiciConnections;
  readonly #request: UpstreamRequest;
  readonly #handler: UpstreamHandler;
  #controller: Dispatcher.DispatchController | undefined;
  #body: Decompressor | undefined;
  #answered = false;
  #over = false;
  #mayRepeat = false;
  #takes = false;

  constructor(connections: UndiciConnections, request: UpstreamRequest, handler: UpstreamHandler) {
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
    this.#mayRepeat = this.#request.once !== true && connections.open > connections.taken;
    connections.taken += 1;
    this.#takes = true;
    this.#send();
  }

  /** The connection is free, or gone. */
  #leave(): void {
    if (!this.#takes) return;
    this.#takes = false;
    this.#connections.taken -= 1;
  }

  #send(): void {
    const { endpoint, method, headers, body } = this.#request;
    try {
      this.#connections.pool.dispatch(
        {
          path: endpoint.way?.proxy === undefined ? endpoint.path : pathThrough(endpoint),
          method,
          headers: [...endpoint.headers, ...headers, ...proxyHeaders(endpoint)],
          body: body?.whole() ?? null,
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
    this.#leave();
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
    this.#leave();
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
    const failure = asUpstreamError(error, this.#request.endpoint);
    if (this.#body === undefined) this.#fail(failure);
    else this.#body.behind(() => this.#fail(failure));
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#handler.end();
  }

  /** Nothing more is wanted of an answer that cannot be read. */
  #break(controller: Dispatcher.DispatchController, why: string): void {
    this.#fail(new GatewayError('upstream_invalid', why, { repeat: 'never' }));
    controller.abort(new Error('unreadable'));
  }

  #fail(error: GatewayError): void {
    this.#leave();
    if (this.#over) return;
    this.#over = true;
    this.#body?.destroy();
    this.#handler.failed(error);
  }
}

/** The server closed or reset the connection before a byte of the answer came. */
function isDeadConnection(error: unknown): boolean {
  if (isGarbled(error)) return false;
  return ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'].includes(errorCode(error));
}
