/** Which endpoint a request target means, and in which dialect its errors are written. */
import type { IncomingHttpHeaders } from 'node:http';

export interface RequestPath {
  /** Without the query string, and without a doubled `/v1` (A8). */
  readonly path: string;
  readonly query: string;
}

/** Splits a target. Paths are compared exactly, undecoded: `%2e` and `//` match nothing (B25). */
export function readPath(url: string): RequestPath {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  return {
    // Clients that append /v1 themselves may have been given an address that ends in it.
    path: path.startsWith('/v1/v1/') ? path.slice(3) : path,
    query: mark === -1 ? '' : url.slice(mark + 1),
  };
}

/** Whether a client of a shared path speaks the messages format (messages.md §10.3). */
export function speaksMessages(headers: IncomingHttpHeaders, query: string): boolean {
  if (headers['anthropic-version'] !== undefined) return true;
  if (headers['x-api-key'] !== undefined && headers.authorization === undefined) return true;
  return /(^|&)(limit|after_id|before_id)=/.test(query);
}
