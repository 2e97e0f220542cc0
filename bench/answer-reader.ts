/** Reads HTTP/1.1 answers from a socket, one after the other, and counts the content chunks as they come. */
import { chunkMark } from './bodies.ts';

const headEnd = Buffer.from('\r\n\r\n');
const lastChunk = Buffer.from('0\r\n\r\n');
const mark = chunkMark.charCodeAt(0);

/** One answer at a time; `reset` before the next. */
export class AnswerReader {
  status = 0;
  /** Content chunks received so far, by their mark. */
  marks = 0;
  /** The server closes the connection behind this answer. */
  closes = false;
  private pieces: Buffer[] = [];
  private bodyStart = -1;
  private received = 0;
  /** Bytes of the body; undefined for a chunked one. */
  private length: number | undefined;

  reset(): void {
    this.status = 0;
    this.marks = 0;
    this.pieces = [];
    this.bodyStart = -1;
    this.received = 0;
  }

  /**
   * Takes received bytes (copied: the caller reuses its buffer); true when the answer is complete.
   * @throws Error when an answer has neither length nor chunks.
   */
  push(bytes: Buffer): boolean {
    this.pieces.push(Buffer.from(bytes));
    this.received += bytes.length;
    for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + 1)) this.marks += 1;
    if (this.bodyStart === -1 && !this.readHead()) return false;
    return this.length === undefined
      ? this.endsWithLastChunk(bytes)
      : this.received >= this.bodyStart + this.length;
  }

  /** The body without its transfer coding. */
  text(): string {
    const body = Buffer.concat(this.pieces).subarray(this.bodyStart);
    return this.length === undefined ? unchunked(body) : body.toString('utf8');
  }

  private readHead(): boolean {
    const bytes = this.pieces.length === 1 ? this.pieces[0] : Buffer.concat(this.pieces);
    const end = bytes?.indexOf(headEnd) ?? -1;
    if (bytes === undefined || end === -1) return false;
    const head = bytes.toString('latin1', 0, end);
    this.status = Number(head.slice(9, 12));
    this.closes = /\r\nconnection: ?close/i.test(head);
    this.bodyStart = end + 4;
    const length = /\r\ncontent-length: ?(\d+)/i.exec(head)?.[1];
    this.length = length === undefined ? undefined : Number(length);
    if (length === undefined && !/\r\ntransfer-encoding: ?chunked/i.test(head)) {
      throw new Error('an answer without content-length and without chunks');
    }
    return true;
  }

  private endsWithLastChunk(bytes: Buffer): boolean {
    if (bytes.length >= lastChunk.length)
      return bytes.subarray(-lastChunk.length).equals(lastChunk);
    // The ending came in several reads.
    return Buffer.concat(this.pieces.slice(-lastChunk.length))
      .subarray(-lastChunk.length)
      .equals(lastChunk);
  }
}

function unchunked(body: Buffer): string {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.toString('latin1', at, lineEnd), 16);
    if (lineEnd === -1 || Number.isNaN(size)) throw new Error('broken chunked coding');
    if (size === 0) return Buffer.concat(parts).toString('utf8');
    parts.push(body.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
