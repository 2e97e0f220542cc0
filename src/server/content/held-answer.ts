/** A client's sink that holds a copy of what it passes on, up to a limit, and never holds it up. */
import type { ClientObserver, ClientSink } from '../../gateway/client-sink.ts';
import type { SeenBody } from './seen-call.ts';

const firstRoom = 4096;

export interface HeldParts {
  readonly most: number;
  /** Takes so many bytes of memory more; false when they are not there. */
  readonly hold: (bytes: number) => boolean;
}

export class HeldAnswer implements ClientSink {
  readonly #sink: ClientSink;
  readonly #parts: HeldParts;
  #bytes = new Uint8Array(new ArrayBuffer(0));
  #held = 0;
  #length = 0;
  #full = false;
  /** Undefined until the answer began. */
  status: number | undefined;
  headers: readonly string[] = [];
  /** It came to its end. */
  ended = false;

  constructor(sink: ClientSink, parts: HeldParts) {
    this.#sink = sink;
    this.#parts = parts;
  }

  get body(): SeenBody {
    return { bytes: this.#bytes.slice(0, this.#held), length: this.#length };
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
    this.#sink.end(bytes);
  }

  cut(): void {
    this.#sink.cut();
  }

  observe(observer: ClientObserver, stalledMs?: number): void {
    this.#sink.observe(observer, stalledMs);
  }

  /** A copy: the bytes of a stream lie in a buffer that is used again. */
  #keep(bytes: Buffer | string): void {
    const piece = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    this.#length += piece.length;
    if (this.#full) return;
    const taken = piece.subarray(0, this.#parts.most - this.#held);
    this.#full = taken.length < piece.length || !this.#makeRoom(this.#held + taken.length);
    if (this.#held + taken.length > this.#bytes.length) return;
    this.#bytes.set(taken, this.#held);
    this.#held += taken.length;
  }

  #makeRoom(length: number): boolean {
    if (length <= this.#bytes.length) return true;
    const size = Math.max(length, 2 * this.#bytes.length, firstRoom);
    if (!this.#parts.hold(size - this.#bytes.length)) return false;
    const grown = new Uint8Array(new ArrayBuffer(size));
    grown.set(this.#bytes);
    this.#bytes = grown;
    return true;
  }
}
