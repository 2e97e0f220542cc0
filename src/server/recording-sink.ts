/** A client's sink that keeps what it passes on, up to a limit, and holds the end until it is let go. */
import type { ClientObserver, ClientSink } from '../gateway/client-sink.ts';
import type { Finished, RecordingRoom } from './idempotent-answers.ts';

const firstRoom = 4096;
/**
 * They belong to one request; the one that is answered again has its own. Where limits stood when it was
 * answered is no news, and would make clients wait.
 */
const ownHeader = /^(?:x-request-id|request-id|(?:x|anthropic)-ratelimit-.*)$/;

export class RecordingSink implements ClientSink {
  readonly #sink: ClientSink;
  readonly #room: RecordingRoom;
  readonly #mostBytes: number;
  #status = 0;
  #headers: readonly string[] = [];
  /** Undefined once they are too many. */
  #bytes: Buffer | undefined = Buffer.alloc(0);
  #length = 0;
  #ended = false;
  /** What the client gets with the end of its answer. */
  #last: Buffer | string | undefined;
  #released = false;

  /** @param mostBytes longer answers are passed on and not kept */
  constructor(sink: ClientSink, room: RecordingRoom, mostBytes: number) {
    this.#sink = sink;
    this.#room = room;
    this.#mostBytes = mostBytes;
  }

  /** The whole answer; undefined unless it came to its end. */
  get answer(): Finished {
    if (!this.#ended) return undefined;
    if (this.#bytes === undefined) return 'too long';
    const body = this.#bytes.subarray(0, this.#length);
    return { status: this.#status, headers: this.#headers, body };
  }

  start(status: number, headers: readonly string[]): void {
    this.#status = status;
    this.#headers = headers.filter((_, i) => !ownHeader.test(headers[i - (i % 2)] ?? ''));
    this.#sink.start(status, headers);
  }

  write(bytes: Buffer | string): boolean {
    this.#keep(bytes);
    return this.#sink.write(bytes);
  }

  end(bytes?: Buffer | string): void {
    if (bytes !== undefined) this.#keep(bytes);
    this.#ended = true;
    if (this.#released) this.#sink.end(bytes);
    else this.#last = bytes;
  }

  /** Lets the end of the answer go. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    if (this.#ended) this.#sink.end(this.#last);
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
    const roomy = length <= this.#mostBytes ? this.#withRoomFor(this.#bytes, length) : undefined;
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
