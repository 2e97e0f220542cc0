/** One answer after the other out of the bytes of a connection (RFC 9112). */
import { maxHeaderBytes } from '../exchange.ts';
import { ChunkedBody } from './chunked-body.ts';
import { ProtocolError } from './protocol-error.ts';
import { mayBeHead, readHead, type ResponseHead } from './response-head.ts';

const headEnd = Buffer.from('\r\n\r\n', 'latin1');

export interface ResponseSink {
  head(head: ResponseHead): void;
  /** Valid during the call only: the buffer is read into again. */
  data(chunk: Buffer): void;
}

export class ResponseReader {
  /** The answer is complete. */
  done = false;
  /** Anything of the answer came. */
  begun = false;
  readonly #sink: ResponseSink;
  #head: ResponseHead | undefined;
  /** What came of a head that is not complete. */
  #partial: Buffer | undefined;
  #headBytes = 0;
  #left = 0;
  #chunks: ChunkedBody | undefined;
  #stopped = false;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** Nothing more is handed over. */
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
  }

  /**
   * Reads what came and may change it. Returns false when more came than belongs to the answer.
   * @throws ProtocolError
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
    const end = bytes.indexOf(headEnd, from);
    const length = (end === -1 ? bytes.length : end) - from;
    if (this.#headBytes + length > maxHeaderBytes) {
      throw new ProtocolError('headers beyond 64 KiB', { passing: false });
    }
    if (end === -1) {
      if (!mayBeHead(bytes.toString('latin1', from, from + 9)))
        throw new ProtocolError('no status line');
      this.#partial = Buffer.from(bytes.subarray(from));
      return -1;
    }
    this.#partial = undefined;
    const head = readHead(bytes.toString('latin1', from, end));
    if (head.status < 200) {
      refuseUnasked(head.status);
      this.#headBytes += length;
    } else this.#begin(head);
    return end + headEnd.length;
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

/** The gateway asks for no other protocol, and for no leave to send a body (F27). */
function refuseUnasked(status: number): void {
  if (status === 101) throw new ProtocolError('another protocol, unasked', { passing: false });
  if (status === 100) throw new ProtocolError('a leave to go on that nobody waits for');
}
