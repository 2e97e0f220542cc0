/**
 * Closes idle connections. Node's `closeIdleConnections` does not close those that never sent
 * a whole request. Clients open such connections in advance, and each would delay a stop until it times out.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { NewId } from '../core/runtime.ts';

/** Calls back with each connection that may carry requests: over TLS after its handshake. */
export function onConnection(server: Server, opened: (socket: Socket) => void): void {
  server.on(server instanceof HttpsServer ? 'secureConnection' : 'connection', opened);
}

/** Connections without a request, with the monotonic ms of their start, the oldest first. */
const silent = new WeakMap<Server, Map<Socket, number>>();

interface OpenConnections {
  readonly sockets: ReadonlySet<Socket>;
  readonly isAnswering: (socket: Socket) => boolean;
}

const opened = new WeakMap<Server, OpenConnections>();

/**
 * Keeps account of the open connections, and of those that have not requested anything yet.
 * @param isAnswering whether the connection has a request without a whole answer
 */
export function watchConnections(server: Server, isAnswering: (socket: Socket) => boolean): void {
  const all = new Set<Socket>();
  opened.set(server, { sockets: all, isAnswering });
  const sockets = new Map<Socket, number>();
  silent.set(server, sockets);
  onConnection(server, (socket) => {
    all.add(socket);
    sockets.set(socket, performance.now());
    socket.once('close', () => {
      all.delete(socket);
      sockets.delete(socket);
    });
  });
  const asked = (request: IncomingMessage): void => void sockets.delete(request.socket);
  server.prependListener('request', asked);
  // A listener of this event takes over the `100 Continue`, so it is added only if there is one already.
  if (server.listenerCount('checkContinue') > 0) server.prependListener('checkContinue', asked);
}

/** A new connection may have sent a request that was not read yet. */
const silentForMs = 1000;

/** Closes the connections without a running request. A new connection is closed after a second without a request. */
export function closeWaiting(server: Server): void {
  server.closeIdleConnections();
  const before = performance.now() - silentForMs;
  for (const [socket, since] of silent.get(server) ?? []) {
    if (since > before) return;
    socket.destroy();
  }
}

/** A client that uses its connections often uses each of them within this time. */
const quietForMs = 2000;

/**
 * Closes connections that have received nothing for two seconds and have no running request. A connection that is
 * closed sooner may have a request on its way, which would be lost.
 */
export class QuietConnections {
  readonly #server: Server;
  /** The received bytes at the last check, and the monotonic ms of their last change. */
  readonly #heard = new WeakMap<Socket, { readonly bytes: number; readonly since: number }>();

  constructor(server: Server) {
    this.#server = server;
  }

  /** Examines all connections. A quiet one is closed at the first check two seconds after its last change. */
  close(): void {
    const open = opened.get(this.#server);
    if (open === undefined) return;
    const { sockets, isAnswering } = open;
    const now = performance.now();
    for (const socket of sockets) {
      const heard = this.#heard.get(socket);
      const bytes = socket.bytesRead;
      // Its time begins with the first check after the answer, however long checks were not needed.
      if (isAnswering(socket)) this.#heard.delete(socket);
      else if (heard?.bytes !== bytes) {
        this.#heard.set(socket, { bytes, since: now });
      } else if (now - heard.since >= quietForMs) {
        socket.destroy();
      }
    }
  }
}

/** Closes the connection with the longest time without a request, and returns it. Undefined if all are new. */
export function closeOldestSilent(server: Server): Socket | undefined {
  const sockets = silent.get(server) ?? [];
  const before = performance.now() - silentForMs;
  for (const [socket, since] of sockets) {
    if (since > before) return undefined;
    silent.get(server)?.delete(socket);
    if (socket.destroyed) continue;
    socket.destroy();
    return socket;
  }
  return undefined;
}

// Connections whose clients do not continue: none may hold a slot for nothing (G9, G10, F77). Node allows it.

/** The time after which a client that takes none of a finished answer's last bytes is cut (G9). */
export const stalledEndMs = 60_000;
/** The time for the rest of a body that was already answered. */
export const restMs = 5000;
/** Requests that one connection carries: its last answer closes it (F77). Balancers spread clients by that. */
const maxRequests = 100;
/**
 * The maximum number of pipelined requests that wait, refused ones included. A client that sends more does not read its
 * answers.
 */
const maxWaiting = 250;

/** Cuts the client if it reads nothing. Node sets its own timeout after the last byte. */
export function cutWhenStalled(response: ServerResponse, stalledMs: number): void {
  if (response.writableLength > 0) response.socket?.setTimeout(stalledMs);
}

export interface StuckTimes {
  readonly stalledMs: number;
  readonly restMs: number;
}

/** The requests of a connection. */
interface Asked {
  requests: number;
  /** The number of requests without a complete answer. */
  open: number;
  /** The number of answers that wait for earlier ones. */
  waiting: number;
}

/** Begins to answer a request. */
type Handle = () => void;

export class StuckConnections {
  readonly #times: StuckTimes;
  readonly #asked = new WeakMap<Socket, Asked>();
  /** Requests that came after others on their connection. */
  readonly #waiting = new WeakMap<ServerResponse, Handle>();

  constructor(times: StuckTimes) {
    this.#times = times;
  }

  /**
   * A request arrived. It is handled when the answers before it are complete: no upstream is paid for an answer that
   * may never be sent, since an earlier one ends the connection, or the client leaves. Requests after the last answer
   * are ignored.
   */
  came({ socket }: IncomingMessage, answer: ServerResponse, handle: Handle): void {
    const asked = this.#requestsOn(socket);
    asked.requests += 1;
    asked.open += 1;
    if (asked.requests === maxRequests) answer.shouldKeepAlive = false;
    const isServed = asked.requests <= maxRequests;
    if (answer.socket !== null) {
      if (isServed) handle();
      return;
    }
    if (isServed) this.#waiting.set(answer, handle);
    asked.waiting += 1;
    if (asked.waiting > maxWaiting) socket.destroy();
  }

  #requestsOn(socket: Socket): Asked {
    const known = this.#asked.get(socket);
    if (known !== undefined) return known;
    const fresh = { requests: 0, open: 0, waiting: 0 };
    this.#asked.set(socket, fresh);
    return fresh;
  }

  /** The answers before this one are complete. */
  begins(socket: Socket, answer: ServerResponse): void {
    const asked = this.#asked.get(socket);
    if (asked === undefined || asked.waiting === 0) return;
    asked.waiting -= 1;
    // The timeout of the previous answer's end does not apply to this one.
    socket.setTimeout(0);
    const handle = this.#waiting.get(answer);
    this.#waiting.delete(answer);
    handle?.();
  }

  /** The last bytes of an answer were written. */
  whole(answer: ServerResponse): void {
    cutWhenStalled(answer, this.#times.stalledMs);
  }

  /** Whether a request on the connection has no whole answer. */
  isAnswering(socket: Socket): boolean {
    return (this.#asked.get(socket)?.open ?? 0) > 0;
  }

  /** An answer was sent. Its request may not have been read to its end. */
  ended(socket: Socket, request: IncomingMessage): void {
    const asked = this.#asked.get(socket);
    if (asked !== undefined) asked.open -= 1;
    if (request.complete) return;
    const timer = setTimeout(() => socket.destroy(), this.#times.restMs).unref();
    request.once('close', () => clearTimeout(timer));
  }
}

// Refusals of requests that Node could not parse, or does not pass to the handler: a JSON body instead of Node's
// empty one, and never two answers to one request. Behind a proxy that shares a connection among
// clients a second answer would go to another client (S18).

export interface RawRefusalDeps {
  readonly newId: NewId;
  /** Called with each refusal, for the log. */
  readonly refused: (refusal: RawRefusal) => void;
  /** Further headers of each refusal. */
  readonly refusalHeaders?: { readonly [name: string]: string };
}

interface RawRefusal {
  readonly id: string;
  /** Absent: the TLS handshake failed, and nothing was answered. */
  readonly status?: number;
  /** The parser's name of the error, without any part of the request. */
  readonly error: string;
  /** The other end of the socket. */
  readonly address: string | undefined;
}

interface RefusalText {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}

const invalid: RefusalText = {
  status: 400,
  reason: 'Bad Request',
  message: 'The request is not valid HTTP/1.1.',
};
const byCode: ReadonlyMap<string, RefusalText> = new Map([
  [
    'HPE_HEADER_OVERFLOW',
    {
      status: 431,
      reason: 'Request Header Fields Too Large',
      message: 'The headers of the request are larger than 16 KiB.',
    },
  ],
  [
    'ERR_HTTP_REQUEST_TIMEOUT',
    {
      status: 408,
      reason: 'Request Timeout',
      message: 'The request did not arrive in time.',
    },
  ],
]);
const noTunnel: RefusalText = {
  status: 405,
  reason: 'Method Not Allowed',
  message: 'There is no proxy here.',
};
const noExpectation: RefusalText = {
  status: 417,
  reason: 'Expectation Failed',
  message: 'The only expectation that can be met is 100-continue.',
};

export class RawRefusals {
  readonly #deps: RawRefusalDeps;
  /** The current answer of a socket; `answered` while the rest of its request still arrives. */
  readonly #answers = new WeakMap<Duplex, ServerResponse | 'answered'>();
  /** Sockets whose next answer is the last one. */
  readonly #ending = new WeakSet<Duplex>();

  constructor(deps: RawRefusalDeps) {
    this.#deps = deps;
  }

  /** An answer begins on the socket. */
  begins(socket: Duplex, answer: ServerResponse): void {
    this.#answers.set(socket, answer);
  }

  /** An answer was sent. */
  ended(socket: Duplex, request: IncomingMessage): void {
    if (request.complete) this.#answers.delete(socket);
    else this.#answers.set(socket, 'answered');
  }

  /** A request that the parser refused. */
  broken(error: NodeJS.ErrnoException, socket: Socket): void {
    const code = error.code ?? 'unknown';
    if (!socket.writable || code === 'ECONNRESET') {
      socket.destroy();
      return;
    }
    this.#refuse(socket, byCode.get(code) ?? invalid, code);
  }

  /** `CONNECT` (B23). */
  tunnel(socket: Duplex): void {
    // Node no longer handles the socket: no other listener would see its error, or its close.
    socket.on('error', () => socket.destroy());
    socket.resume();
    this.#refuse(socket, noTunnel, 'CONNECT');
  }

  /** An `Expect` that is not 100-continue (B20). It is unknown whether a body follows, so this is the last answer. */
  expectation(socket: Duplex): void {
    this.#refuse(socket, noExpectation, 'Expect');
  }

  #refuse(socket: Duplex, { status, reason, message }: RefusalText, error: string): void {
    if (this.#ending.has(socket)) return;
    const id = this.#deps.newId('req_');
    this.#deps.refused({
      id,
      status,
      error,
      address:
        'remoteAddress' in socket && typeof socket.remoteAddress === 'string'
          ? socket.remoteAddress
          : undefined,
    });
    const answer = this.#answers.get(socket);
    if (answer !== undefined && answer !== 'answered' && answer.req.complete) {
      // The invalid bytes follow a valid request, which gets its own answer. That answer is the last one.
      this.#ending.add(socket);
      answer.shouldKeepAlive = false;
      answer.once('finish', () => endSoon(socket));
      return;
    }
    if (answer === 'answered' || answer?.headersSent === true) {
      // The written bytes are sent, and nothing is added to them.
      endSoon(socket);
      return;
    }
    // The body has the fields of both dialects, since the dialect is not known at this point.
    const body = JSON.stringify({
      type: 'error',
      error: { type: 'invalid_request_error', message, param: null, code: null },
      request_id: id,
    });
    const head = [
      `HTTP/1.1 ${status} ${reason}`,
      'connection: close',
      `x-request-id: ${id}`,
      `request-id: ${id}`,
      ...(status === 405 ? ['allow: GET, HEAD, POST'] : []),
      ...Object.entries(this.#deps.refusalHeaders ?? {}).map(
        ([name, value]) => `${name}: ${value}`,
      ),
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
    ];
    endSoon(socket, `${head.join('\r\n')}\r\n\r\n${body}`);
  }
}

/** The maximum wait for the rest of the connection's data. */
const lingerMs = 2000;

/** Ends the connection with these bytes, without waiting for the client's end. */
function endSoon(socket: Duplex, bytes = ''): void {
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once('close', () => clearTimeout(timer));
}
