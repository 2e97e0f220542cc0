/** The head of a request (RFC 9112 §3), built once for each endpoint: only what a call adds is written anew. */
import type { Endpoint } from '../../core/provider.ts';

/** What may not stand in a field's value; names come from the program and from the config. */
const forbidden = /[^\t\x20-\x7e\x80-\xff]/;
const nameForm = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const pathForm = /^[\x21-\x7e]+$/;
/** Fields that say where a request ends: they are written here and nowhere else (S18). */
const framingNames = new Set(['content-length', 'transfer-encoding', 'connection', 'upgrade']);
const begins = new WeakMap<Endpoint, string>();

/** A request that cannot be written without becoming another one. */
export class UnsendableRequest extends Error {}

export interface RequestHead {
  readonly endpoint: Endpoint;
  readonly method: 'GET' | 'POST';
  /** Flat name, value. */
  readonly headers: readonly string[];
  readonly bodyBytes: number | undefined;
}

/** @throws UnsendableRequest when a header could end early or hold another one. */
export function requestHead({ endpoint, method, headers, bodyBytes }: RequestHead): string {
  let rest = begins.get(endpoint);
  if (rest === undefined) {
    rest = beginOf(endpoint);
    begins.set(endpoint, rest);
  }
  const length = bodyBytes === undefined ? '' : `content-length: ${bodyBytes}\r\n`;
  const own = headers.length === 0 ? '' : fields(headers);
  return `${method} ${rest}${own}${length}\r\n`;
}

function beginOf(endpoint: Endpoint): string {
  const { origin } = endpoint;
  const path = targetOf(endpoint);
  const headers = [...endpoint.headers, ...proxyHeaders(endpoint)];
  if (!pathForm.test(path))
    throw new UnsendableRequest('its path has a character that has no place in one');
  const named = headers.some((name, at) => at % 2 === 0 && name.toLowerCase() === 'host');
  const host = named ? '' : `host: ${new URL(origin).host}\r\n`;
  return `${path} HTTP/1.1\r\n${host}connection: keep-alive\r\n${fields(headers)}`;
}

/** The request target: a proxy is asked for plain http by the absolute address (RFC 9112 §3.2.2). */
function targetOf({ origin, path, way }: Endpoint): string {
  return way?.proxy !== undefined && origin.startsWith('http:') ? origin + path : path;
}

function proxyHeaders({ origin, way }: Endpoint): readonly string[] {
  const credential = way?.proxy?.authorization;
  if (credential === undefined || !origin.startsWith('http:')) return [];
  return ['proxy-authorization', credential];
}

function fields(headers: readonly string[]): string {
  let text = '';
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] ?? '';
    const value = headers[at + 1] ?? '';
    if (!nameForm.test(name) || framingNames.has(name.toLowerCase()))
      throw new UnsendableRequest(
        `the header ${JSON.stringify(name)} has no proper name or says where the request ends`,
      );
    if (forbidden.test(value))
      throw new UnsendableRequest(`the header ${name} has a character that has no place in one`);
    text += `${name}: ${value}\r\n`;
  }
  return text;
}
