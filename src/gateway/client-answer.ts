/** What goes out to the client of one call: one status line, a document, a stream, or a failure. */
import type { GatewayError } from '../core/errors.ts';
import { retryHeaders, streamHeaders } from './answer-headers.ts';
import type { Call } from './call.ts';
import type { ClientSink } from './client-sink.ts';

export interface ClientAnswerOptions {
  readonly call: Call;
  readonly sink: ClientSink;
  /** Headers that every answer has, as they are known at that moment. */
  readonly headers: () => string[];
  readonly random: () => number;
}

export class ClientAnswer {
  readonly #options: ClientAnswerOptions;
  #status: number | undefined;

  constructor(options: ClientAnswerOptions) {
    this.#options = options;
  }

  /** The status that was sent; undefined while nothing was. */
  get status(): number | undefined {
    return this.#status;
  }

  /** Sends status and headers of a stream, once. */
  startStream(): void {
    if (this.#status !== undefined) return;
    this.#status = 200;
    this.#options.sink.start(200, [...this.#options.headers(), ...streamHeaders]);
  }

  /** A whole answer. */
  document(body: Buffer): void {
    this.#json(200, body, []);
  }

  /** A failure: as a status before the first byte, as an error frame after it. */
  error(error: GatewayError): void {
    const { call, sink, random } = this.#options;
    const { dialect, id } = call;
    if (this.#status !== undefined) return sink.end(dialect.writeStreamError(error, id));
    const { status, body } = dialect.writeError(error, id);
    this.#json(status, Buffer.from(JSON.stringify(body)), retryHeaders(error, random));
  }

  #json(status: number, body: Buffer, more: readonly string[]): void {
    this.#status = status;
    const { sink, headers } = this.#options;
    sink.start(status, [
      ...headers(),
      ...more,
      'content-type',
      'application/json',
      'content-length',
      String(body.length),
    ]);
    sink.end(body);
  }
}
