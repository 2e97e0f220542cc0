/** The HTTP server of the data plane: limits of the connection, and refusals Node makes by itself. */
import { createServer, ServerResponse, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { watchConnections } from './connections.ts';
import { sendJson } from './send.ts';

export type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

export interface DataServerOptions {
  /** Whether answers that begin now close their connections: the gateway stops (G14). */
  readonly lastAnswers?: () => boolean;
}

/** A server that is not listening yet. */
export function createDataServer(
  handle: RequestHandler,
  { lastAnswers = () => false }: DataServerOptions = {},
): Server {
  const server = createServer({
    ServerResponse: answerClass(lastAnswers),
    maxHeaderSize: 16 * 1024,
    headersTimeout: 10_000,
    requestTimeout: 300_000,
    connectionsCheckingInterval: 2000,
    // Longer than the usual 60 s of balancers, so that they close first.
    keepAliveTimeout: 75_000,
    noDelay: true,
    // Checked with the other headers: Node's own refusal has an empty body.
    requireHostHeader: false,
  });
  server.on('request', handle);
  // The handler sends `100 Continue` itself once the key and the headers are good (B21).
  server.on('checkContinue', handle);
  server.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
    sendJson(response, { status: 417, body: plainError('This expectation cannot be met.') });
  });
  // Without a listener Node closes the socket without a word (B23).
  server.on('connect', (_request: IncomingMessage, socket: Duplex) => {
    writeRaw(socket, '405 Method Not Allowed', 'There is no proxy here.');
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    refuseRaw(error, socket);
  });
  // A client that half-closes has left; answers to nobody are not paid for (F75).
  server.on('connection', (socket: Socket) => {
    socket.on('end', () => socket.destroy());
  });
  watchConnections(server);
  return server;
}

/** Also answers whose requests came before the stop, and refusals from wherever: all write their head. */
function answerClass(lastAnswers: () => boolean): typeof ServerResponse {
  return class Answer<
    Request extends IncomingMessage = IncomingMessage,
  > extends ServerResponse<Request> {
    override writeHead(...head: [number, ...never[]]): this {
      if (lastAnswers()) this.shouldKeepAlive = false;
      return super.writeHead(...head);
    }
  };
}

/** Starts listening; resolves with the address as `http://HOST:PORT`. */
export function listen(server: Server, address: { host: string; port: number }): Promise<string> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: address.host, port: address.port, backlog: 1024 }, () => {
      server.off('error', reject);
      const bound = server.address();
      resolve(isAddress(bound) ? `http://${hostPort(bound)}` : '');
    });
  });
}

function isAddress(bound: AddressInfo | string | null): bound is AddressInfo {
  return typeof bound === 'object' && bound !== null;
}

function hostPort({ address, family, port }: AddressInfo): string {
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`;
}

const statusOf: { readonly [code: string]: string } = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Requests that Node could not parse: a JSON body instead of its empty one. */
function refuseRaw(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = statusOf[error.code ?? ''] ?? '400 Bad Request';
  writeRaw(socket, status, 'The request is not valid HTTP or was not sent in time.');
}

function writeRaw(socket: Duplex, status: string, message: string): void {
  const body = JSON.stringify(plainError(message));
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

/** Both dialects' readers find their fields in it: the dialect is not known at this point. */
function plainError(message: string): object {
  return {
    type: 'error',
    error: { type: 'invalid_request_error', message, param: null, code: null },
    request_id: null,
  };
}
