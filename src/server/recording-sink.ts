/** A client's sink that keeps what it passes on, up to a limit. */
import type { ClientObserver, ClientSink } from '../gateway/client-sink.ts';
import type { KeptAnswer } from './idempotent-answers.ts';

/** Longer answers are passed on and not kept (reliability.md §6). */
const maxKeptBytes = 1024 * 1024;
/** They belong to one request; the one that is answered again has its own. */
const ownHeaders: ReadonlySet<string> = new Set(['x-request-id', 'request-id']);

export class RecordingSink implements ClientSink {
  readonly #sink: ClientSink;
  #status = 0;
  #headers: readonly string[] = [];
  /** Undefined once they are too many. */
  #pieces: Buffer[] | undefined = [];
  #length = 0;
  #ended = false;

  constructor(sink: ClientSink) {
    this.#sink = sink;
  }

  /** The whole answer; undefined unless it came to its end. */
  get answer(): KeptAnswer | undefined {
    if (!this.#ended) return undefined;
    const body = this.#pieces === undefined ? undefined : Buffer.concat(this.#pieces, this.#length);
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
    this.#pieces = undefined;
    this.#sink.cut();
  }

  observe(observer: ClientObserver, stalledMs?: number): void {
    this.#sink.observe(observer, stalledMs);
  }

  #keep(bytes: Buffer | string): void {
    if (this.#pieces === undefined) return;
    // A copy: the bytes of a stream lie in a buffer that is used again.
    const piece = Buffer.from(bytes);
    this.#length += piece.length;
    if (this.#length > maxKeptBytes) this.#pieces = undefined;
    else this.#pieces.push(piece);
  }
}
