/** One request to an upstream and its answer, whatever carries them. */
import type { IncomingHttpHeaders } from 'node:http';
import type { GatewayError } from '../core/errors.ts';
import type { Pieces } from '../core/pieces.ts';
import type { Endpoint } from '../core/provider.ts';

export type ResponseHeaders = IncomingHttpHeaders;

export interface UpstreamRequest {
  readonly endpoint: Endpoint;
  readonly method: 'GET' | 'POST';
  /** Headers of this call besides the endpoint's, flat. */
  readonly headers: readonly string[];
  readonly body?: Pieces;
  readonly connectMs: number;
  /** Never sent twice, not even where a kept connection may have been dead before (R5). */
  readonly once?: boolean;
}

/** What comes back. After `end` or `failed` nothing more is called. */
export interface UpstreamHandler {
  head(status: number, headers: ResponseHeaders): void;
  data(chunk: Buffer): void;
  end(): void;
  /** `upstream_unavailable`, `timeout` (connect) or `upstream_invalid`. */
  failed(error: GatewayError): void;
  /** No connection was made, for a request that was aborted meanwhile: what it says of the upstream holds. */
  unreachable?(error: GatewayError): void;
}

/** The running request. `abort` closes the connection; no handler method is called afterwards. */
export interface Exchange {
  /** Whether some of the answer is here and waits for its turn of the event loop; absent = nothing ever does. */
  readonly waits?: boolean;
  pause(): void;
  resume(): void;
  abort(): void;
}

/** The connections to one origin by one way. */
export interface Connections {
  /** Sends one request. The handler is called later, never inside this call. */
  send(request: UpstreamRequest, handler: UpstreamHandler): Exchange;
  /** Connections that stand, and those of them that wait for a request. */
  readonly count: { readonly open: number; readonly idle: number };
  /** Closes all connections; running requests fail. */
  close(): Promise<void>;
}

/** Vendors send some thirty header fields (F31). */
export const maxHeaders = 500;
/** All header fields together. */
export const maxHeaderBytes = 64 * 1024;
/** Idle upstream connections are dropped before a server's usual 5 s (F7, J3). */
export const idleConnectionMs = 4000;
/** Where a server promises to wait longer. */
export const longestIdleMs = 60_000;
