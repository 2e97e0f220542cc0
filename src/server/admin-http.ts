/** HTTP around the admin API: who may enter, the body under its limit, and JSON whatever happens. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Actor } from '../access/audit.ts';
import { presentedKey } from '../access/presented-key.ts';
import type { Json } from '../core/conversation.ts';
import { GatewayError } from '../core/errors.ts';
import { parseBody } from '../core/json.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import { errorAnswer, refusalAnswer, type AdminAnswer, type AdminHandler } from './admin-route.ts';
import { checkBodyHeaders, readBody } from './body.ts';
import { checkRequestHead } from './hygiene.ts';
import { createListener, dataTimes } from './listen.ts';
import { BadKeys } from './overload/bad-keys.ts';
import { capConnections } from './overload/connection-cap.ts';

const bodyLimitBytes = 1024 * 1024;
const times = { ...dataTimes, requestMs: 30_000 };
/** It has files of its own to open: strangers may not take those of the data plane (G10). */
const mostConnections = 200;
/** Wrong tokens a minute and address (S11); the right one opens all the while. */
const guessesPerMinute = 5;

export interface AdminHttpParts {
  readonly handle: AdminHandler;
  /** Whose this bearer token is; undefined when it opens nothing. */
  actorOf(token: string): Actor['name'] | undefined;
  readonly clock: Pick<Clock, 'now'>;
  readonly newId: NewId;
  readonly log: Log;
}

interface GuardedParts extends AdminHttpParts {
  readonly guesses: BadKeys;
}

const refused: AdminAnswer = errorAnswer(
  401,
  'The admin token is missing or not valid. Send it as "Authorization: Bearer TOKEN".',
);

const tooManyGuesses: AdminAnswer = errorAnswer(
  429,
  'Too many requests without a valid admin token came from this address. Send it, or wait.',
);

/** A server that is not listening yet. */
export function createAdminHttpServer(parts: AdminHttpParts): Server {
  const { clock, newId, log } = parts;
  const guesses = new BadKeys({ clock, perMinute: () => guessesPerMinute });
  const guarded = { ...parts, guesses };
  // `serve` answers every failure itself.
  const server = createListener((request, response) => void serve(guarded, request, response), {
    newId,
    refused: (refusal) => log.info('refused', { ...refusal, plane: 'admin' }),
    times,
  });
  capConnections(server, () => mostConnections);
  return server;
}

async function serve(
  parts: GuardedParts,
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
  parts: GuardedParts,
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
  const token = presentedKey(request.headers.authorization, undefined);
  const name = parts.actorOf(token);
  const { remoteAddress: ip } = request.socket;
  if (name === undefined) return token === '' ? refused : wrongToken(parts, ip);
  const actor = { name, ...(ip === undefined ? {} : { ip }) };
  return parts.handle(method, url, { body: await readJson(request), actor });
}

function wrongToken({ guesses, log }: GuardedParts, address: string | undefined): AdminAnswer {
  const waitMs = guesses.refused(address);
  const status = waitMs === undefined ? 401 : 429;
  log.info('refused', { status, error: 'admin_token', address, plane: 'admin' });
  return waitMs === undefined ? refused : { ...tooManyGuesses, retryAfterMs: waitMs };
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
    ...(answer.retryAfterMs === undefined
      ? {}
      : { 'retry-after': String(Math.ceil(answer.retryAfterMs / 1000)) }),
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : bytes);
  // What is left of a body that nobody wants is thrown away, for as long as a request may take.
  request.resume();
}
