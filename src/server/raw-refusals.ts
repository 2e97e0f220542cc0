/**
 * Refusals of what Node could not parse, or does not hand to the handler: a JSON body instead of Node's
 * empty one, and never two answers to one request. Behind a proxy that shares a connection among
 * clients a second answer would go to somebody else (S18).
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { NewId } from '../core/runtime.ts';

export interface RawRefusalParts {
  readonly newId: NewId;
  /** Told of each refusal, for the log. */
  readonly refused: (refusal: RawRefusal) => void;
  /** Of each refusal, besides its own. */
  readonly refusalHeaders?: { readonly [name: string]: string };
}

export interface RawRefusal {
  readonly id: string;
  readonly status: number;
  /** The parser's name for what is wrong; nothing of the request itself. */
  readonly error: string;
  /** The other end of the socket. */
  readonly address: string | undefined;
}

interface Words {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}

const invalid: Words = {
  status: 400,
  reason: 'Bad Request',
  message: 'The request is not valid HTTP/1.1.',
};
const byCode: ReadonlyMap<string, Words> = new Map([
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
const noTunnel: Words = {
  status: 405,
  reason: 'Method Not Allowed',
  message: 'There is no proxy here.',
};
const noExpectation: Words = {
  status: 417,
  reason: 'Expectation Failed',
  message: 'The only expectation that can be met is 100-continue.',
};

export class RawRefusals {
  readonly #parts: RawRefusalParts;
  /** The answer that a socket carries; `answered` while the rest of its request is still coming in. */
  readonly #answers = new WeakMap<Duplex, ServerResponse | 'answered'>();
  /** Sockets with an answer to come that is the last one. */
  readonly #ending = new WeakSet<Duplex>();

  constructor(parts: RawRefusalParts) {
    this.#parts = parts;
  }

  /** An answer has its turn on the socket. */
  begins(socket: Duplex, answer: ServerResponse): void {
    this.#answers.set(socket, answer);
  }

  /** An answer is through. */
  ended(socket: Duplex, request: IncomingMessage): void {
    if (request.complete) this.#answers.delete(socket);
    else this.#answers.set(socket, 'answered');
  }

  /** What the parser gave up on. */
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
    // Node has let go of it: nobody else would see its error, or that the client leaves.
    socket.on('error', () => socket.destroy());
    socket.resume();
    this.#refuse(socket, noTunnel, 'CONNECT');
  }

  /** An `Expect` that is not 100-continue (B20). Whether the body comes is not known: it is the last. */
  expectation(socket: Duplex): void {
    this.#refuse(socket, noExpectation, 'Expect');
  }

  #refuse(socket: Duplex, { status, reason, message }: Words, error: string): void {
    if (this.#ending.has(socket)) return;
    const id = this.#parts.newId('req_');
    this.#parts.refused({ id, status, error, address: addressOf(socket) });
    const answer = this.#answers.get(socket);
    if (answer !== undefined && answer !== 'answered' && answer.req.complete) {
      this.#endBehind(socket, answer);
      return;
    }
    if (answer === 'answered' || answer?.headersSent === true) {
      // What was written goes out; nothing is put behind or into it.
      endSoon(socket);
      return;
    }
    // Both dialects' readers find their fields in it: the dialect is not known at this point.
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
      ...Object.entries(this.#parts.refusalHeaders ?? {}).map(
        ([name, value]) => `${name}: ${value}`,
      ),
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
    ];
    endSoon(socket, `${head.join('\r\n')}\r\n\r\n${body}`);
  }

  /** What is wrong follows a good request: that one gets its own answer, and the last one. */
  #endBehind(socket: Duplex, answer: ServerResponse): void {
    this.#ending.add(socket);
    answer.shouldKeepAlive = false;
    answer.once('finish', () => endSoon(socket));
  }
}

/** What was read of the connection may be waited for no longer than this. */
const lingerMs = 2000;

/** Ends it with these bytes; a client that does not end its side is not waited for. */
function endSoon(socket: Duplex, bytes = ''): void {
  socket.end(bytes);
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once('close', () => clearTimeout(timer));
}

function addressOf(socket: Duplex): string | undefined {
  return 'remoteAddress' in socket && typeof socket.remoteAddress === 'string'
    ? socket.remoteAddress
    : undefined;
}
