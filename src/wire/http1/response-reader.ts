/** Parses the answers on a connection, one after the other (RFC 9112), and decodes chunked bodies in place. */
import { maxHeaderBytes } from '../exchange.ts';
import { ProtocolError, type ResponseHead, mayBeHead, readHead } from './response-head.ts';

const headEnd = Buffer.from('\r\n\r\n', 'latin1');
const bareHeadEnd = Buffer.from('\n\n', 'latin1');
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const bareLine = /(?:^|[^\r])\n/;

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
  #partial: Buffer | undefined;
  #headBytes = 0;
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
    const joined = this.#partial === undefined ? bytes : Buffer.concat([this.#partial, bytes]);
    let at = 0;
    while (this.#head === undefined) {
      const next = this.#readHead(joined, at);
      if (next === -1) return true;
      at = next;
    }
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
    if (this.#headBytes + length > maxHeaderBytes) {
      throw new ProtocolError('headers beyond 64 KiB', { passing: false });
    }
    const text = bytes.toString('latin1', from, from + length);
    if (end === -1) {
      if (!mayBeHead(text.slice(0, 9))) throw new ProtocolError('no status line');
      // A head of both kinds of lines might never seem to end.
      if (bare ? text.includes('\r') : bareLine.test(text)) throw mixedLines();
      this.#partial = Buffer.from(bytes.subarray(from));
      return -1;
    }
    this.#partial = undefined;
    this.#bare ||= bare;
    const head = readHead(bare ? inFullLines(text) : text);
    if (head.status < 200) {
      refuseUnasked(head.status);
      this.#headBytes += length;
    } else this.#begin(this.#bare ? { ...head, keepsAlive: false } : head);
    return end + mark.length;
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

function inFullLines(text: string): string {
  if (text.includes('\r')) throw mixedLines();
  return text.replaceAll('\n', '\r\n');
}

/** Two readers could take one of both for different things. */
function mixedLines(): ProtocolError {
  return new ProtocolError('lines that end in CR LF and in LF', { passing: false });
}

/** The gateway never sends `upgrade` or `expect`. */
function refuseUnasked(status: number): void {
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
export class ChunkedBody {
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
   * @returns the position behind the last byte read: the end of the buffer, or of the body.
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
    throw new ProtocolError('more than 64 KiB beside the chunks', { passing: false });
  }
}

function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
