/** The one copy of an answer on its way to the client: for idempotent answers and the content log. */
import type { Receipt } from '../core/call.ts';
import type { ClientObserver, ClientSink } from '../gateway/answer/client-answer.ts';

export interface TeeOptions {
  /** The copy ends here; the client gets all of a longer answer. */
  readonly maxBytes: number;
  /** Takes more memory for the copy; false when there is none, which ends the copy. The caller gives it back. */
  readonly hold: (bytes: number) => boolean;
  /** The end of the answer waits for `release`. */
  readonly holdsEnd?: boolean;
  /** Called when the call is settled. */
  readonly settled?: (receipt: Receipt) => void;
}

const firstRoom = 4096;

/** A client's sink that passes an answer on and keeps a copy of its beginning. */
export class AnswerTee implements ClientSink {
  readonly #sink: ClientSink;
  readonly #options: TeeOptions;
  #buffer = Buffer.alloc(0);
  #copied = 0;
  #full = false;
  /** What the client gets with the end of its answer. */
  #last: Buffer | string | undefined;
  #released: boolean;
  /** Undefined until the answer begins. */
  status: number | undefined;
  /** Flat name, value. */
  headers: readonly string[] = [];
  /** Bytes of the answer so far. */
  length = 0;
  /** It came to its end. */
  ended = false;
  /** Present once the call is settled. */
  receipt: Receipt | undefined;

  constructor(sink: ClientSink, options: TeeOptions) {
    this.#sink = sink;
    this.#options = options;
    this.#released = options.holdsEnd !== true;
  }

  /** The beginning of the answer; valid until more is written. */
  get copy(): Buffer {
    return this.#buffer.subarray(0, this.#copied);
  }

  /** The copy is the whole answer. */
  get complete(): boolean {
    return this.ended && !this.#full;
  }

  start(status: number, headers: readonly string[]): void {
    this.status ??= status;
    this.headers = headers;
    this.#sink.start(status, headers);
  }

  write(bytes: Buffer | string): boolean {
    this.#keep(bytes);
    return this.#sink.write(bytes);
  }

  end(bytes?: Buffer | string): void {
    if (bytes !== undefined && !this.ended) this.#keep(bytes);
    this.ended = true;
    if (this.#released) this.#sink.end(bytes);
    else this.#last = bytes;
  }

  /** Lets the end of the answer go. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.ended) this.#sink.end(this.#last);
  }

  cut(): void {
    this.#sink.cut();
  }

  observe(observer: ClientObserver, stalledMs?: number): void {
    this.#sink.observe(observer, stalledMs);
  }

  settled(receipt: Receipt): void {
    this.receipt = receipt;
    this.#sink.settled?.(receipt);
    this.#options.settled?.(receipt);
  }

  /** Copies: the bytes of a stream are in a buffer that is used again. */
  #keep(bytes: Buffer | string): void {
    const piece = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    this.length += piece.length;
    if (this.#full) return;
    const taken = piece.subarray(0, this.#options.maxBytes - this.#copied);
    const length = this.#copied + taken.length;
    this.#full = taken.length < piece.length || !this.#makeRoom(length);
    if (length > this.#buffer.length) return;
    this.#buffer.set(taken, this.#copied);
    this.#copied = length;
  }

  #makeRoom(length: number): boolean {
    if (length <= this.#buffer.length) return true;
    const size = Math.max(length, 2 * this.#buffer.length, firstRoom);
    if (!this.#options.hold(size - this.#buffer.length)) return false;
    const grown = Buffer.allocUnsafeSlow(size);
    grown.set(this.copy);
    this.#buffer = grown;
    return true;
  }
}
