/** Requests whose HTTP itself is the case (reliability.md B1–B25): bytes, and what comes back. */
import { clientKey } from '../support/keys.ts';
import type { ClientDialect } from '../support/dialects.ts';
import { endpointOf } from '../support/requests.ts';

export interface RawRow {
  readonly id: string;
  readonly name: string;
  /** Everything that is sent, before the probe that asks whether the connection is of use. */
  readonly bytes: (on: RawRequest) => string | Buffer;
  readonly status: number;
  /** What becomes of the connection; `usable` = the next request on it is answered. */
  readonly after: 'closed' | 'usable';
  readonly message?: RegExp;
  /** Left out for this dialect, whose endpoint has an answer of its own. */
  readonly notFor?: ClientDialect;
  /** One text for all dialects: it is written before the path is known. */
  readonly beforeDialect?: true;
  /** Statuses that come before and behind the main one, e.g. of pipelined requests. */
  readonly behind?: readonly number[];
}

/** The pieces of a request on one dialect's endpoint. */
export interface RawRequest {
  readonly path: string;
  /** Request line, host, key and content type; every line ends. */
  readonly head: string;
  /** The same with other header lines instead of the key. */
  headWith(lines: readonly string[], target?: string): string;
}

export function rawRequest(dialect: ClientDialect): RawRequest {
  const path = endpointOf[dialect];
  // Errors of paths that are none are written for whom the headers show.
  const speaking = dialect === 'messages' ? ['anthropic-version: 2023-06-01'] : [];
  const headWith = (lines: readonly string[], target = path): string =>
    [`POST ${target} HTTP/1.1`, 'Host: gateway', ...speaking, ...lines, ''].join('\r\n');
  return { path, headWith, head: headWith([keyLine, typeLine]) };
}

export const keyLine = `Authorization: Bearer ${clientKey}`;
export const typeLine = 'Content-Type: application/json';
export const lengthEnd = 'Content-Length: 2\r\n\r\n{}';
export const chunkedEnd = 'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n';
export const chunks = '2\r\n{}\r\n0\r\n\r\n';

/** What a proxy that read a request otherwise would take for the next one. */
export const smuggled = `GET /v1/models HTTP/1.1\r\nHost: gateway\r\n${keyLine}\r\n\r\n`;
