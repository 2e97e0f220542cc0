/** HTTP around the admin API: who may enter, the body under its limit, and JSON whatever happens. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Actor } from '../access/audit.ts';
import { presentedKey } from '../access/presented-key.ts';
import type { Json } from '../core/conversation.ts';
import { GatewayError } from '../core/errors.ts';
import { parseBody } from '../core/json.ts';
import type { Log } from '../core/runtime.ts';
import { errorAnswer, refusalAnswer, type AdminAnswer, type AdminHandler } from './admin-route.ts';
import { checkBodyHeaders, readBody } from './body.ts';
import { watchConnections } from './connections.ts';
import { checkRequestHead } from './hygiene.ts';

const bodyLimitBytes = 1024 * 1024;

export interface AdminHttpParts {
  readonly handle: AdminHandler;
  /** Whose this bearer token is; undefined when it opens nothing. */
  actorOf(token: string): Actor['name'] | undefined;
  readonly log: Log;
}

const refused: AdminAnswer = errorAnswer(
  401,
  'The admin token is missing or not valid. Send it as "Authorization: Bearer TOKEN".',
);

/** A server that is not listening yet. */
export function createAdminHttpServer(parts: AdminHttpParts): Server {
  const server = createServer({
    maxHeaderSize: 16 * 1024,
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    connectionsCheckingInterval: 2000,
  });
  server.on('request', (request, response) => {
    // `serve` answers every failure itself.
    void serve(parts, request, response);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseRaw(error, socket));
  watchConnections(server);
  return server;
}

async function serve(
  parts: AdminHttpParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    send(request, response, await answer(parts, request, response));
  } catch (error) {
    if (error instanceof GatewayError && error.code === 'canceled') return;
    const refusal = refusalAnswer(error);
    if (refusal === undefined) {
      parts.log.error('admin_request_failed', {
        cause: error instanceof Error ? error.stack : 'unknown',
      });
    }
    send(request, response, refusal ?? errorAnswer(500, 'The gateway failed; its log says why.'));
  }
}

async function answer(
  parts: AdminHttpParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<AdminAnswer> {
  checkRequestHead(request, response);
  const { method = 'GET', url = '/' } = request;
  if (url === '/healthz') {
    if (method === 'GET' || method === 'HEAD') return { status: 200, body: { status: 'ok' } };
    return { ...errorAnswer(405, 'This address takes GET only.'), allow: 'GET, HEAD' };
  }
  // Before anything else is looked at: a stranger learns not even which addresses there are.
  const name = parts.actorOf(presentedKey(request.headers.authorization, undefined));
  if (name === undefined) return refused;
  const { remoteAddress: ip } = request.socket;
  const actor = { name, ...(ip === undefined ? {} : { ip }) };
  return parts.handle(method, url, { body: await readJson(request), actor });
}

async function readJson(request: IncomingMessage): Promise<Json | undefined> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length === 0 && request.headers['transfer-encoding'] === undefined) return undefined;
  checkBodyHeaders(request, bodyLimitBytes);
  return parseBody(await readBody(request, bodyLimitBytes), new Set()).value;
}

function send(request: IncomingMessage, response: ServerResponse, answer: AdminAnswer): void {
  if (response.headersSent || response.destroyed) return;
  const bytes = Buffer.from(answer.csv ?? JSON.stringify(answer.body));
  response.writeHead(answer.status, {
    'content-type': answer.csv === undefined ? 'application/json' : 'text/csv; charset=utf-8',
    'content-length': bytes.length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(answer.allow === undefined ? {} : { allow: answer.allow }),
    ...(answer.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
  // What is left of a body that nobody wants is thrown away, for as long as a request may take.
  request.resume();
}

/** Requests that Node could not parse: a JSON body instead of its empty one. */
function refuseRaw(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
  const status = late ? '408 Request Timeout' : '400 Bad Request';
  const text = late ? 'The request was not sent in time.' : 'The request is not valid HTTP.';
  const body = JSON.stringify(errorAnswer(400, text).body);
  socket.end(
    `HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
