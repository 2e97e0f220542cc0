/** What Node's HTTP parser lets pass and a gateway must not (reliability.md B11–B15). */
import type { IncomingMessage } from 'node:http';
import { GatewayError, invalidRequest } from '../core/errors.ts';

/** Headers that may stand once only: two readers could pick different twins. */
const once: ReadonlySet<string> = new Set(['host', 'authorization', 'x-api-key', 'content-type']);

/** B18: no client sends a third of it. */
const maxHeaders = 100;

/** @throws GatewayError `invalid_request`. */
export function checkRequestHead(request: IncomingMessage): void {
  const url = request.url ?? '';
  if (!url.startsWith('/') || url.startsWith('//')) {
    throw invalidRequest('The request target must be a path.');
  }
  if (request.httpVersionMajor !== 1) throw invalidRequest('HTTP/1.1 is expected.');
  if (request.httpVersionMinor > 0 && request.headers.host === undefined) {
    throw invalidRequest('The header host is missing.');
  }
  const transfer = request.headers['transfer-encoding'];
  if (transfer !== undefined && transfer.toLowerCase() !== 'chunked') {
    throw invalidRequest('The only transfer-encoding that is accepted is chunked.');
  }
  if (request.rawHeaders.length > 2 * maxHeaders) {
    throw invalidRequest(`The request has more than ${maxHeaders} headers.`);
  }
  checkTwins(request.rawHeaders);
}

function checkTwins(rawHeaders: readonly string[]): void {
  let seen = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? '';
    if (!once.has(name)) continue;
    if (seen.includes(`${name},`)) throw repeated(name);
    seen += `${name},`;
  }
}

function repeated(name: string): GatewayError {
  return invalidRequest(`The header ${name} stands more than once.`);
}
