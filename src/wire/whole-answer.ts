/** A small request whose whole answer is wanted at once: model lists, token counters, health. */
import { GatewayError } from '../core/errors.ts';
import type { ResponseHeaders, UpstreamRequest } from './exchange.ts';
import type { HttpClient } from './http-client.ts';

export interface WholeAnswer {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
}

export interface WholeAnswerLimits {
  /** Until the last byte. */
  readonly timeoutMs: number;
  readonly maxBytes: number;
  /** Who asked has left. */
  readonly signal?: AbortSignal;
}

/** @throws GatewayError `upstream_unavailable`, `timeout` or `upstream_invalid`. */
export function requestWhole(
  client: HttpClient,
  request: UpstreamRequest,
  limits: WholeAnswerLimits,
): Promise<WholeAnswer> {
  return new Promise((resolve, reject) => {
    if (limits.signal?.aborted === true) return reject(clientLeft());
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
        resolve({ status, headers, body: Buffer.concat(pieces).toString('utf8') });
      },
      failed: fail,
    });
    const timer = setTimeout(
      () => fail(new GatewayError('timeout', 'The upstream did not answer in time.')),
      limits.timeoutMs,
    );
    const leave = (): void => fail(clientLeft());
    const done = (): void => {
      clearTimeout(timer);
      limits.signal?.removeEventListener('abort', leave);
    };
    limits.signal?.addEventListener('abort', leave);
  });
}

function clientLeft(): GatewayError {
  return new GatewayError('canceled', 'The client left.');
}
