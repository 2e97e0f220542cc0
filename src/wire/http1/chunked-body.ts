/**
 * The chunked transfer coding (RFC 9112 §7.1), decoded in place: the data of all chunks of one read are moved
 * together, so that they go on as one piece.
 */
import { ProtocolError } from './protocol-error.ts';

const cr = 0x0d;
const lf = 0x0a;
const semicolon = 0x3b;
/** Up to 2^52: what a number counts exactly. */
const maxSizeDigits = 13;
/** Extensions and trailers are read over, but not for ever. */
const maxAsideBytes = 64 * 1024;

/** What one byte of the framing means, and what is expected next. */
type State = (body: ChunkedBody, byte: number) => State;

export class ChunkedBody {
  /** Where in the buffer of the last `decode` the data lie. */
  start = 0;
  end = 0;
  done = false;
  /** Of the chunk that is being read. */
  size = 0;
  digits = 0;
  aside = 0;
  /** Bytes of data that are still to come of this chunk. */
  left = 0;
  #state: State = sizeStart;

  /**
   * Reads from `from` on and changes the buffer: the data stand between `start` and `end` afterwards.
   * Returns where it stopped: the buffer's end, or behind the body.
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
