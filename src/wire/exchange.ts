/** One request to an upstream and its answer, as the client of HTTP sees them. */
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../core/errors.ts';
import type { Pieces } from '../json/pieces.ts';
import type { Endpoint } from '../core/provider.ts';
import type { HttpClient } from './http-client.ts';

export type ResponseHeaders = IncomingHttpHeaders;

export interface UpstreamRequest {
  readonly endpoint: Endpoint;
  readonly method: 'GET' | 'POST';
  /** Headers of this call besides the endpoint's, flat. */
  readonly headers: readonly string[];
  readonly body?: Pieces;
  /** What the endpoint's credential added to `headers`; absent = nothing. */
  readonly credentialHeaders?: readonly string[];
  readonly connectMs: number;
  /**
   * Where the endpoint's connections are not shared by all, only requests with the same sharer reuse a connection.
   * Absent = the connection is not reused.
   */
  readonly sharer?: string;
  /** Never sent twice, not even where a keep-alive connection may have been dead before (R5). */
  readonly once?: boolean;
}

/** Receives the answer. Nothing is called after `end` or `failed`. */
export interface UpstreamHandler {
  head(status: number, headers: ResponseHeaders): void;
  data(chunk: Buffer): void;
  end(): void;
  /** `upstream_unavailable`, `timeout` (connect) or `upstream_invalid`. */
  failed(error: GatewayError): void;
  /** The connection failed after the request was aborted: the failure still counts against the upstream. */
  unreachable?(error: GatewayError): void;
}

/** The running request. `abort` closes the connection; no handler method is called afterwards. */
export interface Exchange {
  /** Whether some of the answer waits for its turn of the event loop; absent = never. */
  readonly waits?: boolean;
  pause(): void;
  resume(): void;
  abort(): void;
}

/** Header fields at most; vendors send some thirty (F31). */
export const maxHeaders = 500;
/** All header fields together. */
export const maxHeaderBytes = 64 * 1024;
/** Idle upstream connections are dropped before a server's usual 5 s (F7). */
export const idleConnectionMs = 4000;
/** The same where a server's `keep-alive` promises more. */
export const maxIdleMs = 60_000;

export interface WholeAnswer {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

export interface WholeAnswerLimits {
  /** Until the last byte. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Aborted when the client disconnects. */
  readonly signal?: AbortSignal;
}

/**
 * The request with what lets it in. A promise only where that must be fetched.
 * @throws GatewayError `upstream_auth`, as a rejection.
 */
export function authorized(request: UpstreamRequest): UpstreamRequest | Promise<UpstreamRequest> {
  const { endpoint, method, headers, body } = request;
  const { origin, path, credential } = endpoint;
  if (credential === undefined) return request;
  const final = { method, origin, path, headers: [...endpoint.headers, ...headers], body };
  const letIn = (added: readonly string[]): UpstreamRequest => ({
    ...request,
    headers: [...headers, ...added],
    credentialHeaders: added,
  });
  const added = credential.headersFor(final);
  return added instanceof Promise ? added.then(letIn) : letIn(added);
}

/**
 * Sends a small request and reads its whole answer: model lists, token counters, health. Where its credential was
 * refused and a newer one can be had, it is sent once more.
 * @throws GatewayError `upstream_unavailable`, `timeout`, `upstream_invalid`, `upstream_auth` or `canceled`.
 */
export async function requestWhole(
  client: HttpClient,
  request: UpstreamRequest,
  limits: WholeAnswerLimits,
): Promise<WholeAnswer> {
  const { credential } = request.endpoint;
  const first = await authorized(request);
  const answer = await sendWhole(client, first, limits);
  const { status, body } = answer;
  if (credential === undefined || first.credentialHeaders === undefined || status < 400)
    return answer;
  const refusal = new GatewayError('upstream_auth', 'refused', { upstream: { status, body } });
  if (!credential.renew(first.credentialHeaders, refusal)) return answer;
  return sendWhole(client, await authorized(request), limits);
}

function sendWhole(
  client: HttpClient,
  request: UpstreamRequest,
  limits: WholeAnswerLimits,
): Promise<WholeAnswer> {
  return new Promise((resolve, reject) => {
    if (limits.signal?.aborted === true) return reject(clientDisconnected());
    const pieces: Buffer[] = [];
    let length = 0;
    let status = 0;
    let headers: ResponseHeaders = {};
    const fail = (error: GatewayError): void => {
      done();
      exchange.abort();
      reject(error);
    };
    const exchange = client.send(request, {
      head: (code, received) => {
        status = code;
        headers = received;
      },
      data: (chunk) => {
        length += chunk.length;
        if (length <= limits.maxBytes) pieces.push(chunk);
        else fail(new GatewayError('upstream_invalid', 'The answer is too large.'));
      },
      end: () => {
        done();
        const body = Buffer.concat(pieces)
          .toString('utf8')
          .replace(/^\ufeff/, '');
        resolve({ status, headers, body });
      },
      failed: fail,
    });
    const timer = setTimeout(
      () => fail(new GatewayError('timeout', 'The upstream did not answer in time.')),
      limits.timeoutMs,
    );
    const leave = (): void => fail(clientDisconnected());
    const done = (): void => {
      clearTimeout(timer);
      limits.signal?.removeEventListener('abort', leave);
    };
    limits.signal?.addEventListener('abort', leave);
  });
}

function clientDisconnected(): GatewayError {
  return new GatewayError('canceled', 'The client disconnected.');
}
