/**
 * The smallest relay that Node can be: its HTTP server, undici's `dispatch`, and bytes handed on as they
 * come. It checks no key, reads no JSON, writes no row. What it costs is what a gateway on this runtime
 * cannot go below with these two parts; started as `node bare-relay.ts MOCK_PORT`, it sends its port.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Pool, type Dispatcher } from 'undici';

const origin = `http://127.0.0.1:${process.argv[2]}`;
const pool = new Pool(origin, { connections: null, headersTimeout: 0, bodyTimeout: 0 });

function relay(request: IncomingMessage, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece));
  request.on('end', () => {
    const [first] = pieces;
    const body = pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces);
    forward(request, response, body);
  });
}

function forward(request: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const headers = { 'content-type': 'application/json', authorization: 'Bearer bench' };
  const path = request.url ?? '/';
  pool.dispatch({ method: 'POST', path, headers, body }, new Answer(response));
}

/** Hands an upstream's answer on: one write for each read, held up where the client is slow. */
class Answer implements Dispatcher.DispatchHandler {
  private readonly response: ServerResponse;

  constructor(response: ServerResponse) {
    this.response = response;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.response.on('close', () => {
      if (!this.response.writableFinished) controller.abort(new Error('the client left'));
    });
    this.response.on('drain', () => controller.resume());
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    const length = headers['content-length'];
    this.response.writeHead(status, {
      'content-type': String(headers['content-type']),
      ...(length === undefined ? {} : { 'content-length': String(length) }),
    });
    if (length === undefined) this.response.flushHeaders();
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (!this.response.write(piece)) controller.pause();
  }

  onResponseEnd(): void {
    this.response.end();
  }

  onResponseError(): void {
    this.response.destroy();
  }
}

const server = createServer({ keepAliveTimeout: 0, noDelay: true }, relay);
process.on('disconnect', () => process.exit(0));
server.listen(0, '127.0.0.1', 4096, () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
