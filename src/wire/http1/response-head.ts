/**
 * Status line and header fields of an answer (RFC 9112 §4), read strictly: whatever two readers could
 * take for different things is refused, as llhttp does by default.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { maxHeaders } from '../exchange.ts';
import type { Endpoint } from '../../core/provider.ts';

// The head of a request (RFC 9112 §3), built once for each endpoint: only what a call adds is written anew.

/** What may not stand in a field's value; names come from the program and from the config. */
const forbidden = /[^\t\x20-\x7e\x80-\xff]/;
const nameForm = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const pathForm = /^[\x21-\x7e]+$/;
/** Fields that say where a request ends: they are written here and nowhere else (S18). */
const framingNames = new Set(['content-length', 'transfer-encoding', 'connection', 'upgrade']);
const begins = new WeakMap<Endpoint, string>();

/** A request that cannot be written without becoming another one. */
export class UnsendableRequest extends Error {}

interface RequestHead {
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

/** How the end of a body is found (RFC 9112 §6.3). */
export type Framing = 'none' | 'length' | 'chunked' | 'close';

export interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly framing: Framing;
  /** Bytes of the body where `framing` is `length`. */
  readonly length: number;
  /** Whether the connection may carry another request. */
  readonly keepsAlive: boolean;
}

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/;
const start = /^HTTP\/1\.[01](?: |$)/;
const tokenOnly = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Controls besides a tab, and line ends that are not CR LF. */
const strayControl = /[^\t\r\n\x20-\x7e\x80-\xff]|\r(?!\n)|(?:^|[^\r])\n/;
const digits = /^\d{1,15}$/;

/**
 * Reads a head without its closing empty line.
 * @throws ProtocolError
 */
export function readHead(text: string): ResponseHead {
  if (strayControl.test(text))
    throw new ProtocolError('a control character in the head', { passing: false });
  const firstEnd = text.indexOf('\r\n');
  const match = statusLine.exec(firstEnd === -1 ? text : text.slice(0, firstEnd));
  if (match === null) throw new ProtocolError('no status line');
  const headers = firstEnd === -1 ? {} : readFields(text, firstEnd + 2);
  const status = Number(match[2]);
  return {
    status,
    headers,
    ...framingOf(status, headers),
    keepsAlive: keepsAlive(match[1], headers),
  };
}

/** Whether these first bytes can be the start of an answer; if not, the reader need not wait for more. */
export function mayBeHead(text: string): boolean {
  return text.length < 9
    ? 'HTTP/1.1 '.startsWith(text) || 'HTTP/1.0 '.startsWith(text)
    : start.test(text);
}

function readFields(text: string, from: number): IncomingHttpHeaders {
  const headers: IncomingHttpHeaders = {};
  let start = from;
  let count = 0;
  while (start < text.length) {
    const lineEnd = text.indexOf('\r\n', start);
    const end = lineEnd === -1 ? text.length : lineEnd;
    const colon = text.indexOf(':', start);
    if (colon === -1 || colon >= end) throw new ProtocolError('a header without a colon');
    addField(headers, fieldName(text.slice(start, colon)), text.slice(colon + 1, end).trim());
    start = end + 2;
    count += 1;
    if (count > maxHeaders) {
      throw new ProtocolError(`more than ${maxHeaders} headers`, { passing: false });
    }
  }
  return headers;
}

/** Fields that come twice become a list, as undici gives them. */
function addField(headers: IncomingHttpHeaders, name: string, value: string): void {
  // A header may be called as what every object has: constructor, toString.
  const before = Object.hasOwn(headers, name) ? headers[name] : undefined;
  if (before === undefined) headers[name] = name === 'set-cookie' ? [value] : value;
  else if (typeof before === 'string') headers[name] = [before, value];
  else before.push(value);
}

const maxKnownNames = 500;
const knownNames = new Map<string, string>();

/** Servers send the same few names over and over: checked and folded to lower case once. */
function fieldName(raw: string): string {
  const known = knownNames.get(raw);
  if (known !== undefined) return known;
  if (!tokenOnly.test(raw))
    throw new ProtocolError('a header name with a character that has no place there');
  const name = raw.toLowerCase();
  if (name === '__proto__') throw new ProtocolError('a header of this name', { passing: false });
  if (knownNames.size < maxKnownNames) knownNames.set(raw, name);
  return name;
}

function framingOf(
  status: number,
  headers: IncomingHttpHeaders,
): Pick<ResponseHead, 'framing' | 'length'> {
  const coding: string | readonly string[] | undefined = headers['transfer-encoding'];
  const length: string | readonly string[] | undefined = headers['content-length'];
  if (status < 200 || status === 204 || status === 304) return { framing: 'none', length: 0 };
  if (coding !== undefined) {
    if (length !== undefined)
      throw new ProtocolError('a content-length beside a transfer-encoding');
    if (typeof coding !== 'string' || coding.toLowerCase() !== 'chunked')
      throw new ProtocolError('a transfer-encoding other than chunked', { passing: false });
    return { framing: 'chunked', length: 0 };
  }
  if (length === undefined) return { framing: 'close', length: 0 };
  if (typeof length !== 'string' || !digits.test(length))
    throw new ProtocolError('a content-length that is not one number');
  return { framing: 'length', length: Number(length) };
}

function keepsAlive(minor: string | undefined, headers: IncomingHttpHeaders): boolean {
  const connection: unknown = headers.connection;
  if (connection === undefined) return minor === '1';
  const options = String(connection).toLowerCase();
  if (options === 'keep-alive') return true;
  const words = options.split(',').map((word) => word.trim());
  return minor === '1' ? !words.includes('close') : words.includes('keep-alive');
}

/** What an upstream sent is not HTTP/1.1 as the gateway reads it. */
export class ProtocolError extends Error {
  /** Whether the same request may well be answered properly the next time: broken on the way, not by nature. */
  readonly passing: boolean;

  constructor(message: string, { passing = true }: { readonly passing?: boolean } = {}) {
    super(message);
    this.passing = passing;
  }
}
