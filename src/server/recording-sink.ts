/** A client's sink that keeps what it passes on, up to a limit. */
import type { ClientObserver, ClientSink } from '../gateway/client-sink.ts';
import type { KeptAnswer, RecordingRoom } from './idempotent-answers.ts';

/** Longer answers are passed on and not kept (reliability.md §6). */
const maxKeptBytes = 1024 * 1024;
const firstRoom = 4096;
/** They belong to one request; the one that is answered again has its own. */
const ownHeaders: ReadonlySet<string> = new Set(['x-request-id', 'request-id']);

export class RecordingSink implements ClientSink {
  readonly #sink: ClientSink;
  readonly #room: RecordingRoom;
  #status = 0;
  #headers: readonly string[] = [];
  /** Undefined once they are too many. */
  #bytes: Buffer | undefined = Buffer.alloc(0);
  #length = 0;
  #ended = false;

  constructor(sink: ClientSink, room: RecordingRoom) {
    this.#sink = sink;
    this.#room = room;
  }

  /** The whole answer; undefined unless it came to its end. */
  get answer(): KeptAnswer | undefined {
    if (!this.#ended) return undefined;
    // A copy of its size: there is room for more behind it.
    const body = this.#bytes && Buffer.from(this.#bytes.subarray(0, this.#length));
    return { status: this.#status, headers: this.#headers, body };
  }

  start(status: number, headers: readonly string[]): void {
    this.#status = status;
    this.#headers = headers.filter((_, i) => !ownHeaders.has(headers[i - (i % 2)] ?? ''));
    this.#sink.start(status, headers);
  }

  write(bytes: Buffer | string): boolean {
    this.#keep(bytes);
    return this.#sink.write(bytes);
  }

  end(bytes?: Buffer | string): void {
    if (bytes !== undefined) this.#keep(bytes);
    this.#ended = true;
    this.#sink.end(bytes);
  }

  cut(): void {
    this.#bytes = undefined;
    this.#sink.cut();
  }

  observe(observer: ClientObserver, stalledMs?: number): void {
    this.#sink.observe(observer, stalledMs);
  }

  #keep(bytes: Buffer | string): void {
    if (this.#bytes === undefined) return;
    // A copy: the bytes of a stream lie in a buffer that is used again.
    const piece = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    const length = this.#length + piece.length;
    const roomy = length <= maxKeptBytes ? this.#withRoomFor(this.#bytes, length) : undefined;
    roomy?.set(piece, this.#length);
    this.#bytes = roomy;
    this.#length = length;
  }

  /** The bytes so far with room behind them; undefined when there is none. */
  #withRoomFor(bytes: Buffer, length: number): Buffer | undefined {
    if (length <= bytes.length) return bytes;
    const size = Math.max(length, 2 * bytes.length, firstRoom);
    if (!this.#room.hold(size - bytes.length)) return undefined;
    const grown = Buffer.allocUnsafeSlow(size);
    grown.set(bytes);
    return grown;
  }
}
