/** The client's socket as the gateway writes to it: one head, back-pressure, and who hung up. */
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ClientObserver, ClientSink } from '../gateway/client-sink.ts';
import { cutWhenStalled, stalledEndMs } from './stuck-connections.ts';

const smallBody = 16 * 1024;

export class ResponseSink implements ClientSink {
  readonly #response: ServerResponse;
  #stalledEndMs: number;
  #ended = false;
  #chunked = false;
  /** Status and headers were written, and nothing of this answer waits for its turn on the connection. */
  #headOut = false;
  #observer: ClientObserver | undefined;

  constructor(response: ServerResponse, stalledMs = stalledEndMs) {
    this.#response = response;
    this.#stalledEndMs = stalledMs;
  }

  start(status: number, headers: readonly string[]): void {
    const response = this.#response;
    if (response.headersSent || response.destroyed) return;
    response.writeHead(status, [...headers]);
    if (response.chunkedEncoding) {
      // From here on the chunks are framed below, in one buffer and one write each; Node would send
      // length, line end, bytes and line end as four pieces of a vectored write.
      response.chunkedEncoding = false;
      this.#chunked = true;
    }
  }

  write(bytes: Buffer | string): boolean {
    if (this.#ended || this.#response.destroyed) return true;
    const { socket } = this.#response;
    const piece = this.#chunked ? chunk(bytes, noBytes) : bytes;
    if (this.#headOut && socket !== null && takesAtOnce(socket, piece.length)) {
      // Past the response, which would count, cork, and call back in the next tick for every chunk. Where the
      // client is slow it is asked all the same: it is what knows of `drain`.
      return socket.write(piece);
    }
    // Node would hold the bytes until the next tick, and schedule one for every chunk.
    socket?.cork();
    const ready = this.#response.write(piece);
    socket?.uncork();
    this.#headOut = this.#chunked && socket !== null;
    if (!ready) this.#response.once('drain', () => this.#observer?.drained());
    return ready;
  }

  end(bytes?: Buffer | string): void {
    if (this.#ended) return;
    this.#ended = true;
    if (this.#chunked) this.#response.end(chunk(bytes ?? noBytes, lastChunk));
    else if (bytes === undefined || bytes.length === 0) this.#response.end();
    else if (typeof bytes === 'string') this.#response.end(bytes);
    // Head and body of a small answer leave in one write when both are strings; latin-1 keeps bytes.
    else if (bytes.length <= smallBody) this.#response.end(bytes.toString('latin1'), 'latin1');
    else this.#response.end(bytes);
    // The call is settled by now and watches no clock.
    cutWhenStalled(this.#response, this.#stalledEndMs);
  }

  cut(): void {
    this.#ended = true;
    this.#response.destroy();
  }

  observe(observer: ClientObserver, stalledMs = this.#stalledEndMs): void {
    this.#observer = observer;
    this.#stalledEndMs = stalledMs;
    // It may have left while its model was looked up; its `close` will not come again.
    if (this.#response.destroyed) queueMicrotask(() => observer.left());
    this.#response.on('close', () => {
      // A client that closes right behind the ending has the whole answer (F74).
      if (!this.#ended) observer.left();
    });
    this.#response.on('error', ignore);
  }
}

/** Nothing waits in it, and so few bytes will not make it say that it is full. */
function takesAtOnce(socket: Socket, length: number): boolean {
  return socket.writable && socket.writableLength === 0 && length < socket.writableHighWaterMark;
}

const noBytes = Buffer.alloc(0);
const lastChunk = Buffer.from('0\r\n\r\n');
const carriageReturn = 0x0d;
const lineFeed = 0x0a;

/** One chunk of the chunked transfer coding (RFC 9112 §7.1) and what follows it. */
function chunk(bytes: Buffer | string, behind: Buffer): Buffer {
  const length = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length;
  // A chunk without bytes would be the last one.
  if (length === 0) return behind;
  const size = length.toString(16);
  const start = size.length + 2;
  const end = start + length;
  const framed = Buffer.allocUnsafe(end + 2 + behind.length);
  framed.write(size, 'latin1');
  framed[start - 2] = carriageReturn;
  framed[start - 1] = lineFeed;
  if (typeof bytes === 'string') framed.write(bytes, start);
  else bytes.copy(framed, start);
  framed[end] = carriageReturn;
  framed[end + 1] = lineFeed;
  behind.copy(framed, end + 2);
  return framed;
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

/** The id of a call, in the words of both dialects. */
export function idHeaders(requestId: string): readonly string[] {
  return ['x-request-id', requestId, 'request-id', requestId];
}
