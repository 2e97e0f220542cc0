/** Parses the answers on a connection, one after the other (RFC 9112), and decodes chunked bodies in place. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Endpoint } from '../../core/provider.ts';
import { maxHeaderBytes, maxHeaders } from '../exchange.ts';
import { GrowingBytes } from '../sse.ts';

const headEnd = Buffer.from('\r\n\r\n', 'latin1');
const bareHeadEnd = Buffer.from('\n\n', 'latin1');
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const bareLine = /(?:^|[^\r])\n/;
const nothing = Buffer.alloc(0);
/** Bytes that show whether this can be an answer. */
const maxMark = 9;
/** Each examination has another line, or is of the first bytes. */
const maxExamined = 2 * maxHeaders;

export interface ResponseSink {
  head(head: ResponseHead): void;
  /** Valid during the call only: the buffer is reused. */
  data(chunk: Buffer): void;
}

export class ResponseReader {
  /** The answer is complete. */
  done = false;
  /** Some of the answer came. */
  begun = false;
  readonly #sink: ResponseSink;
  #head: ResponseHead | undefined;
  /** The beginning of an incomplete head. */
  readonly #partial = new GrowingBytes();
  #headBytes = 0;
  /** How often an incomplete head was examined. */
  #examined = 0;
  #left = 0;
  #chunks: ChunkedBody | undefined;
  #stopped = false;
  /** The lines of a head ended in LF alone. */
  #bare = false;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** Nothing more goes to the sink. */
  stop(): void {
    this.#stopped = true;
  }

  /** Ready for the next answer. */
  reset(): void {
    this.done = false;
    this.begun = false;
    this.#head = undefined;
    this.#headBytes = 0;
    this.#examined = 0;
    this.#chunks = undefined;
    this.#bare = false;
  }

  /**
   * Reads bytes, and may change them.
   * @returns false when more came than belongs to the answer. @throws ProtocolError
   */
  read(bytes: Buffer): boolean {
    if (this.done) return false;
    this.begun = true;
    const known = this.#partial.length;
    const joined = this.#partial.with(bytes);
    let at = 0;
    while (this.#head === undefined) {
      // A line that comes byte by byte is not examined again for each of them.
      const isMore = known >= maxMark && !bytes.includes(lineFeed);
      const next = isMore ? this.#longer(joined.length) : this.#readHead(joined, at);
      if (next === -1) {
        const rest = joined.subarray(at);
        // The buffer of a read is used again.
        this.#partial.keep(known === 0 ? Buffer.from(rest) : rest);
        return true;
      }
      at = next;
    }
    if (known > 0) this.#partial.keep(nothing);
    if (!this.#stopped && !this.done && at < joined.length) at = this.#readBody(joined, at);
    return this.#stopped || at === joined.length;
  }

  /** The upstream closed. Returns whether the answer is complete by that. */
  close(): boolean {
    if (this.#head?.framing === 'close') this.done = true;
    return this.done;
  }

  /** Where the head ends, or -1 when it does not yet; heads in advance (1xx) are read over. */
  #readHead(bytes: Buffer, from: number): number {
    const bare = endsInBareLines(bytes, from);
    const mark = bare ? bareHeadEnd : headEnd;
    const end = bytes.indexOf(mark, from);
    const length = (end === -1 ? bytes.length : end) - from;
    this.#longer(length);
    const text = bytes.toString('latin1', from, from + length);
    if (end === -1) {
      if (!mayBeHead(text.slice(0, maxMark))) throw new ProtocolError('no status line');
      // A head of both kinds of lines might never seem to end.
      if (bare ? text.includes('\r') : bareLine.test(text)) throw mixedLines();
      this.#examined += 1;
      if (this.#examined > maxExamined) throw tooManyHeaders();
      return -1;
    }
    this.#bare ||= bare;
    const head = readHead(bare ? inFullLines(text) : text);
    if (head.status < 200) {
      refuseUnrequested(head.status);
      this.#headBytes += length;
    } else this.#begin(this.#bare ? { ...head, keepsAlive: false } : head);
    return end + mark.length;
  }

  /** Returns -1: the head goes on. @throws ProtocolError */
  #longer(length: number): -1 {
    if (this.#headBytes + length <= maxHeaderBytes) return -1;
    throw new ProtocolError('headers beyond 64 KiB', { passing: false });
  }

  #begin(head: ResponseHead): void {
    this.#head = head;
    this.#left = head.length;
    if (head.framing === 'chunked') this.#chunks = new ChunkedBody();
    this.done = head.framing === 'none' || (head.framing === 'length' && head.length === 0);
    this.#sink.head(head);
  }

  /** Returns where the body, or what is there of it, ends. */
  #readBody(bytes: Buffer, at: number): number {
    if (this.#chunks !== undefined) return this.#readChunks(this.#chunks, bytes, at);
    if (this.#head?.framing === 'close') {
      this.#sink.data(bytes.subarray(at));
      return bytes.length;
    }
    const until = Math.min(at + this.#left, bytes.length);
    this.#left -= until - at;
    this.done = this.#left === 0;
    this.#sink.data(bytes.subarray(at, until));
    return until;
  }

  #readChunks(chunks: ChunkedBody, bytes: Buffer, at: number): number {
    const end = chunks.decode(bytes, at);
    this.done = chunks.done;
    if (chunks.end > chunks.start) this.#sink.data(bytes.subarray(chunks.start, chunks.end));
    return end;
  }
}

/**
 * Whether the lines of the head end in LF alone, as small servers write them; RFC 9112 §2.2 lets a recipient
 * accept that. Such a connection is not reused, since readers could differ on the end of the first answer.
 */
function endsInBareLines(bytes: Buffer, from: number): boolean {
  const lineEnd = bytes.indexOf(lineFeed, from);
  return lineEnd !== -1 && (lineEnd === from || bytes[lineEnd - 1] !== carriageReturn);
}

function tooManyHeaders(): ProtocolError {
  return new ProtocolError(`more than ${maxHeaders} headers`, { passing: false });
}

function inFullLines(text: string): string {
  if (text.includes('\r')) throw mixedLines();
  return text.replaceAll('\n', '\r\n');
}

/** Two readers could take one of both for different things. */
function mixedLines(): ProtocolError {
  return new ProtocolError('lines that end in CR LF and in LF', { passing: false });
}

/** The gateway never sends `upgrade` or `expect`. */
function refuseUnrequested(status: number): void {
  if (status === 101)
    throw new ProtocolError('an upgrade that was not asked for', { passing: false });
  if (status === 100) throw new ProtocolError('100 Continue, which was not asked for');
}

const cr = 0x0d;
const lf = 0x0a;
const semicolon = 0x3b;
/** Up to 2^52: what a number counts exactly. */
const maxSizeDigits = 13;
/** Chunk extensions and trailers are skipped, up to here. */
const maxAsideBytes = 64 * 1024;

/** Interprets one byte of the framing. @returns the next state. */
type State = (body: ChunkedBody, byte: number) => State;

/** The chunked transfer coding (RFC 9112 §7.1): the data of all chunks of one read are moved together in their buffer. */
class ChunkedBody {
  /** Position of the data in the buffer of the last `decode`. */
  start = 0;
  end = 0;
  done = false;
  /** Size of the current chunk. */
  size = 0;
  digits = 0;
  aside = 0;
  /** Bytes of data left of the current chunk. */
  left = 0;
  #state: State = sizeStart;

  /**
   * Decodes from `from` on, in the buffer: the data are between `start` and `end` afterwards.
   * @returns the position after the last byte read: the end of the buffer, or of the body.
   * @throws ProtocolError
   */
  decode(buffer: Buffer, from: number): number {
    let at = from;
    this.start = from;
    this.end = from;
    while (at < buffer.length && !this.done) {
      if (this.left > 0) at = this.#take(buffer, at);
      else {
        this.#state = this.#state(this, buffer[at] ?? 0);
        at += 1;
      }
    }
    return at;
  }

  #take(buffer: Buffer, at: number): number {
    const until = Math.min(at + this.left, buffer.length);
    if (this.end === this.start) {
      this.start = at;
      this.end = until;
    } else {
      buffer.copyWithin(this.end, at, until);
      this.end += until - at;
    }
    this.left -= until - at;
    return until;
  }
}

const sizeStart: State = (body, byte) => {
  body.size = 0;
  body.digits = 0;
  return size(body, byte);
};

const size: State = (body, byte) => {
  const digit = hexDigit(byte);
  if (digit >= 0) {
    body.digits += 1;
    if (body.digits > maxSizeDigits) throw new ProtocolError('a chunk size beyond any measure');
    body.size = body.size * 16 + digit;
    return size;
  }
  if (body.digits === 0) throw new ProtocolError('a chunk without its size');
  if (byte === cr) return sizeEnd;
  if (byte === semicolon) return extension;
  throw new ProtocolError('a chunk size that is not a number');
};

const extension: State = (body, byte) => {
  if (byte === cr) return sizeEnd;
  skipped(body, byte);
  return extension;
};

const sizeEnd: State = (body, byte) => {
  must(byte, lf);
  if (body.size === 0) return trailerStart;
  body.left = body.size;
  return dataEnd;
};

const dataEnd: State = (_body, byte) => {
  must(byte, cr);
  return dataLineEnd;
};

const dataLineEnd: State = (_body, byte) => {
  must(byte, lf);
  return sizeStart;
};

const trailerStart: State = (body, byte) => {
  if (byte === cr) return lastLineEnd;
  return trailer(body, byte);
};

const trailer: State = (body, byte) => {
  if (byte === cr) return trailerEnd;
  skipped(body, byte);
  return trailer;
};

const trailerEnd: State = (_body, byte) => {
  must(byte, lf);
  return trailerStart;
};

const lastLineEnd: State = (body, byte) => {
  must(byte, lf);
  body.done = true;
  return sizeStart;
};

function must(byte: number, expected: number): void {
  if (byte !== expected) throw new ProtocolError('a chunk that does not end where it says');
}

function skipped(body: ChunkedBody, byte: number): void {
  if (byte === lf) throw new ProtocolError('a line end that is not CR LF');
  body.aside += 1;
  if (body.aside > maxAsideBytes) {
    throw new ProtocolError('more than 64 KiB of chunk framing', { passing: false });
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

// Status line and header fields of an answer (RFC 9112 §4), read strictly: whatever two readers could
// take for different things is refused, as llhttp does by default.

// The head of a request (RFC 9112 §3), built once for each endpoint: only what a call adds is written anew.

/** What may not be in a field's value; names come from the program and from the config. */
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

/** The request target: a proxy gets the absolute address for plain http (RFC 9112 §3.2.2). */
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
type Framing = 'none' | 'length' | 'chunked' | 'close';

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
function mayBeHead(text: string): boolean {
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
    addField(headers, fieldName(text.slice(start, colon)), fieldValue(text, colon + 1, end));
    start = end + 2;
    count += 1;
    if (count > maxHeaders) throw tooManyHeaders();
  }
  return headers;
}

/** Without the spaces and tabs around it. `trim` would take off the no-break space, too, which is a part of the value. */
function fieldValue(text: string, from: number, to: number): string {
  let start = from;
  let end = to;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
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
    if (length !== undefined) throw new ProtocolError('both content-length and transfer-encoding');
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
