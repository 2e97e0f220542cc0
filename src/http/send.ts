/**
 * The client's side of an answer: one head, backpressure, and disconnects. Also the refusals of requests that are not
 * calls, and `RefusalLog`, which bounds their log lines.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ClientDialect } from '../core/dialect.ts';
import type { GatewayError } from '../core/errors.ts';
import type { Clock, Log } from '../core/runtime.ts';
import {
  type ClientObserver,
  type ClientSink,
  retryHeaders,
} from '../gateway/answer/client-answer.ts';
import { leavesTooMuch } from './body.ts';
import { cutWhenStalled, stalledEndMs } from './connections.ts';

const smallBody = 16 * 1024;

export class ResponseSink implements ClientSink {
  readonly #response: ServerResponse;
  #stalledEndMs: number;
  #ended = false;
  #chunked = false;
  /** Status and headers are written, and no earlier answer on the connection is pending. */
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
      // From here on chunks are framed by `chunk`, in one buffer and one write each; Node would send length,
      // line end, bytes and line end as four pieces of a vectored write.
      response.chunkedEncoding = false;
      this.#chunked = true;
    }
  }

  write(bytes: Buffer | string): boolean {
    if (this.#ended || this.#response.destroyed) return true;
    const { socket } = this.#response;
    const piece = this.#chunked ? chunk(bytes, noBytes) : bytes;
    // The socket has no pending bytes, and this few do not fill it.
    if (
      this.#headOut &&
      socket !== null &&
      socket.writable &&
      socket.writableLength === 0 &&
      piece.length < socket.writableHighWaterMark
    ) {
      // Writes past the response object, which would count, cork, and schedule a callback for every chunk. A
      // slow client is still written through it, since it tracks `drain`.
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
    // Head and body of a small answer leave in one write when both are strings; latin-1 retains bytes.
    else if (bytes.length <= smallBody) this.#response.end(bytes.toString('latin1'), 'latin1');
    else this.#response.end(bytes);
    // The call is settled; nothing else watches its deadlines.
    cutWhenStalled(this.#response, this.#stalledEndMs);
  }

  cut(): void {
    this.#ended = true;
    this.#response.destroy();
  }

  observe(observer: ClientObserver, stalledMs = this.#stalledEndMs): void {
    this.#observer = observer;
    this.#stalledEndMs = stalledMs;
    // It may have disconnected during the model lookup; its `close` event is over.
    if (this.#response.destroyed) queueMicrotask(() => observer.left());
    this.#response.on('close', () => {
      // A client that closes right after the end has the whole answer.
      if (!this.#ended) observer.left();
    });
    this.#response.on('error', ignore);
  }
}

const noBytes = Buffer.alloc(0);
const lastChunk = Buffer.from('0\r\n\r\n');
const carriageReturn = 0x0d;
const lineFeed = 0x0a;

/** One chunk of the chunked transfer coding (RFC 9112 §7.1) and the bytes after it. */
function chunk(bytes: Buffer | string, behind: Buffer): Buffer {
  const length = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length;
  // An empty chunk would end the body.
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

/** A broken socket is reported by its `close` event. */
function ignore(): void {}

/** Sends a whole JSON body with flat extra headers. @param answer `body`: a value, or JSON bytes */
export function sendJson(
  response: ServerResponse,
  answer: { readonly status: number; readonly body: unknown; readonly headers?: readonly string[] },
): void {
  const { body } = answer;
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  response.writeHead(answer.status, [
    ...(answer.headers ?? []),
    'content-type',
    'application/json',
    'content-length',
    String(bytes.length),
  ]);
  response.end(bytes);
}

/** Calls back when no bytes of an ended answer are in memory any more: the client has read them, or it is gone. */
export function onceWritten(response: ServerResponse, done: () => void): void {
  if (response.writableLength === 0 || response.destroyed) done();
  else response.once('close', done);
}

/** The id headers of a call, for both dialects. */
export function idHeaders(requestId: string): readonly string[] {
  return ['x-request-id', requestId, 'request-id', requestId];
}

// Refusals before a call exists: in the client's dialect, with an unread body.

/** How long an unread body is read and discarded, so that the client sees the answer first. */
const lingerMs = 2000;

interface Refusal {
  readonly error: GatewayError;
  readonly dialect: ClientDialect;
  readonly requestId: string;
  readonly random: () => number;
  readonly headers?: readonly string[];
}

/** Answers with the error; closes the connection when much of the body is unread (E2). Returns the status. */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
): number {
  const { error, dialect, requestId } = refusal;
  const written = dialect.writeError(error, requestId);
  const text = request.method === 'HEAD' ? '' : JSON.stringify(written.body);
  // A slow body is not awaited, even if it is short (G10).
  const late = error.code === 'request_timeout' && !request.complete;
  const unread = late || leavesTooMuch(request);
  response.writeHead(written.status, [
    'x-request-id',
    requestId,
    'request-id',
    requestId,
    ...retryHeaders(error, refusal.random),
    ...(refusal.headers ?? []),
    ...(unread ? ['connection', 'close'] : []),
    'content-type',
    'application/json',
    'content-length',
    String(Buffer.byteLength(text)),
  ]);
  if (!unread) {
    // As a string it is sent in one write with its head, which is most of the cost of a refusal.
    response.end(text);
    return written.status;
  }
  // Closing with unread bytes in the socket would reset the connection and may lose the answer.
  response.write(text);
  const finish = (): void => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(finish, lingerMs);
  request.once('end', finish);
  request.once('close', finish);
  request.resume();
  return written.status;
}

// Log lines of requests that are not calls. Clients without a key can cause any number: 36 MB came in 5 s
// in a test. The first lines of each kind are logged, the rest is counted.

/** The members of a log line are named one by one where they are created. */
interface RefusedRequest {
  /** The reason from a fixed list, never the client's words. */
  readonly error: string;
  readonly [name: string]: string | number | undefined;
}

interface RefusalLogDeps {
  readonly log: Pick<Log, 'info' | 'warn'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Burst of lines of one kind, enough to see each request of a manual test. */
export const linesAtOnce = 100;
/** Lines of a kind per second after the burst. */
export const linesPerSecond = 10;
const secondMs = 1000;

interface Kind {
  left: number;
  at: number;
  /** Requests without a line since the last count. */
  counted: number;
}

export class RefusalLog {
  readonly #deps: RefusalLogDeps;
  readonly #kinds = new Map<string, Kind>();
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: RefusalLogDeps) {
    this.#deps = deps;
  }

  /** Logs a refused request, or counts it for the next summary. */
  note(request: RefusedRequest): void {
    const now = this.#deps.clock.now();
    const kind = this.#kindOf(request.error, now);
    kind.left = Math.min(linesAtOnce, kind.left + ((now - kind.at) * linesPerSecond) / secondMs);
    kind.at = now;
    if (kind.left >= 1) {
      kind.left -= 1;
      this.#deps.log.info('refused', request);
      return;
    }
    kind.counted += 1;
    this.#timer ??= setTimeout(() => this.tell(), secondMs).unref();
  }

  /** Logs the number of requests without a line. */
  tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [error, kind] of this.#kinds) {
      if (kind.counted > 0) {
        this.#deps.log.warn('refused_without_line', { error, requests: kind.counted });
      }
      kind.counted = 0;
    }
  }

  #kindOf(error: string, now: number): Kind {
    let kind = this.#kinds.get(error);
    if (kind === undefined) {
      kind = { left: linesAtOnce, at: now, counted: 0 };
      this.#kinds.set(error, kind);
    }
    return kind;
  }
}
