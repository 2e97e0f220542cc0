/** The client's socket as the gateway writes to it: one head, back-pressure, and who hung up. */
import type { ServerResponse } from 'node:http';
import type { ClientObserver, ClientSink } from '../gateway/client-sink.ts';

const smallBody = 16 * 1024;

export class ResponseSink implements ClientSink {
  readonly #response: ServerResponse;
  #ended = false;
  #observer: ClientObserver | undefined;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  start(status: number, headers: readonly string[]): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    this.#response.writeHead(status, [...headers]);
  }

  write(bytes: Buffer | string): boolean {
    if (this.#ended || this.#response.destroyed) return true;
    const ready = this.#response.write(bytes);
    if (!ready) this.#response.once('drain', () => this.#observer?.drained());
    return ready;
  }

  end(bytes?: Buffer | string): void {
    if (this.#ended) return;
    this.#ended = true;
    if (bytes === undefined || bytes.length === 0) this.#response.end();
    else if (typeof bytes === 'string') this.#response.end(bytes);
    // Head and body of a small answer leave in one write when both are strings; latin-1 keeps bytes.
    else if (bytes.length <= smallBody) this.#response.end(bytes.toString('latin1'), 'latin1');
    else this.#response.end(bytes);
  }

  cut(): void {
    this.#ended = true;
    this.#response.destroy();
  }

  observe(observer: ClientObserver): void {
    this.#observer = observer;
    this.#response.on('close', () => {
      // A client that closes right behind the ending has the whole answer (F74).
      if (!this.#ended) observer.left();
    });
    this.#response.on('error', ignore);
  }
}

/** A broken socket is seen by its close. */
function ignore(): void {}

/** Sends a whole JSON body with flat extra headers. */
export function sendJson(
  response: ServerResponse,
  answer: { readonly status: number; readonly body: unknown; readonly headers?: readonly string[] },
): void {
  const bytes = Buffer.from(JSON.stringify(answer.body));
  response.writeHead(answer.status, [
    ...(answer.headers ?? []),
    'content-type',
    'application/json',
    'content-length',
    String(bytes.length),
  ]);
  response.end(bytes);
}
