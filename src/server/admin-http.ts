/** HTTP around the admin API: who may enter, the body under its limit, and JSON whatever happens. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Actor } from '../access/audit.ts';
import { presentedKey } from '../access/presented-key.ts';
import type { Json } from '../core/conversation.ts';
import { GatewayError } from '../core/errors.ts';
import { parseBody } from '../core/json.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import { cookieHeader, enter, type Admitted } from './admin-door.ts';
import { errorAnswer, refusalAnswer, type AdminAnswer, type AdminHandler } from './admin-route.ts';
import { metricsAnswer, metricsPath, type MetricsSource } from './admin-metrics.ts';
import { checkBodyHeaders, readBody } from './body.ts';
import { checkRequestHead } from './hygiene.ts';
import { createListener, dataTimes } from './listen.ts';
import { pageSafety } from './page-safety.ts';
import { BadKeys } from './overload/bad-keys.ts';
import { capConnections } from './overload/connection-cap.ts';
import type { DashboardFiles } from './dashboard-files.ts';
import { sendDashboard } from './dashboard-pages.ts';
import { isPlayground, play, type Playground } from './playground.ts';
import type { Sessions } from './sessions.ts';

const bodyLimitBytes = 1024 * 1024;
/** Of those who are nobody yet. */
const strangersBodyBytes = 8 * 1024;
const times = { ...dataTimes, requestMs: 30_000 };
/** It has files of its own to open: strangers may not take those of the data plane (G10). */
const mostConnections = 200;
/** Wrong tokens a minute and address (S11); the right one opens all the while. */
const guessesPerMinute = 5;

export interface AdminHttpParts {
  readonly handle: AdminHandler;
  /** Whose this bearer token is; undefined when it opens nothing. */
  actorOf(token: string): Actor['name'] | undefined;
  readonly sessions: Sessions;
  readonly dashboard: DashboardFiles;
  /** Absent = there are none. */
  readonly metrics?: MetricsSource;
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly newId: NewId;
  readonly log: Log;
  /** Answers what is under its addresses. */
  readonly playground?: Playground;
}

interface GuardedParts extends AdminHttpParts {
  readonly guesses: BadKeys;
  readonly wallNow: () => number;
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
  const guarded = { ...parts, guesses, wallNow: () => clock.wall() };
  // `serve` answers every failure itself.
  const server = createListener(
    (request, response) => {
      // Whoever answers then, the playground's data plane, too.
      for (const [name, value] of Object.entries(pageSafety)) response.setHeader(name, value);
      void serve(guarded, request, response);
    },
    {
      newId,
      refused: (refusal) => log.info('refused', { ...refusal, plane: 'admin' }),
      refusalHeaders: pageSafety,
      times,
    },
  );
  capConnections(server, () => mostConnections);
  return server;
}

async function serve(
  parts: GuardedParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const given = await answer(parts, request, response);
    if (given !== undefined) send(request, response, given);
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

/** Undefined: it was answered. */
async function answer(
  parts: GuardedParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<AdminAnswer | undefined> {
  checkRequestHead(request, response);
  if (sendDashboard(parts.dashboard, request, response)) return undefined;
  const { method = 'GET', url = '/' } = request;
  if (url === '/healthz') return alive(method);
  // Before anything else is looked at: a stranger learns not even which addresses there are.
  const entry = scraper(parts, request) ?? enter(parts, request);
  if (entry === 'nobody') return refused;
  if (entry === 'guess') return wrongToken(parts, request.socket.remoteAddress);
  if (!('visit' in entry)) return entry;
  if (parts.playground !== undefined && isPlayground(url)) {
    return play(parts.playground, request, response);
  }
  return handle(parts, request, entry);
}

function alive(method: string): AdminAnswer {
  if (method === 'GET' || method === 'HEAD') return { status: 200, body: { status: 'ok' } };
  return { ...errorAnswer(405, 'This address takes GET only.'), allow: 'GET, HEAD' };
}

/** Whoever comes with the token that opens the metrics and nothing else. */
function scraper(
  { metrics, wallNow }: GuardedParts,
  request: IncomingMessage,
): Admitted | undefined {
  if (metrics === undefined || !isMetrics(request)) return undefined;
  const token = presentedKey(request.headers.authorization, undefined);
  if (!metrics.opens(token)) return undefined;
  return { name: 'admin', visit: { signedIn: false, now: wallNow() } };
}

async function handle(
  parts: GuardedParts,
  request: IncomingMessage,
  { name, visit }: Admitted,
): Promise<AdminAnswer> {
  const { method = 'GET', url = '/' } = request;
  if (parts.metrics !== undefined && name !== undefined && isMetrics(request)) {
    return metricsAnswer(parts.metrics, method, request.headers);
  }
  const { remoteAddress: ip } = request.socket;
  const body = await readJson(request, name === undefined ? strangersBodyBytes : bodyLimitBytes);
  const actor = { name: name ?? 'admin', ...(ip === undefined ? {} : { ip }) };
  const given = await parts.handle(method, url, { body, actor, visit });
  if (name !== undefined || given.status !== 401) return given;
  const counted = wrongToken(parts, ip);
  return counted.status === 401 ? given : counted;
}

function isMetrics({ url = '/' }: IncomingMessage): boolean {
  return url === metricsPath || url.startsWith(`${metricsPath}?`);
}

function wrongToken({ guesses, log }: GuardedParts, address: string | undefined): AdminAnswer {
  const waitMs = guesses.refused(address);
  const status = waitMs === undefined ? 401 : 429;
  log.info('refused', { status, error: 'admin_token', address, plane: 'admin' });
  return waitMs === undefined ? refused : { ...tooManyGuesses, retryAfterMs: waitMs };
}

async function readJson(request: IncomingMessage, mostBytes: number): Promise<Json | undefined> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length === 0 && request.headers['transfer-encoding'] === undefined) return undefined;
  checkBodyHeaders(request, mostBytes);
  return parseBody((await readBody(request, mostBytes)).whole(), new Set()).value;
}

function send(request: IncomingMessage, response: ServerResponse, answer: AdminAnswer): void {
  if (response.headersSent || response.destroyed) return;
  const { type, content, encoding } = contentOf(answer);
  response.writeHead(answer.status, {
    'content-type': type,
    'content-length': content.length,
    ...(encoding === undefined ? {} : { 'content-encoding': encoding }),
    'cache-control': 'no-store',
    ...(answer.fileName === undefined
      ? {}
      : { 'content-disposition': `attachment; filename="${answer.fileName}"` }),
    ...(answer.cookie === undefined ? {} : { 'set-cookie': cookieHeader(request, answer.cookie) }),
    ...(answer.allow === undefined ? {} : { allow: answer.allow }),
    ...(answer.status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...(answer.retryAfterMs === undefined
      ? {}
      : { 'retry-after': String(Math.ceil(answer.retryAfterMs / 1000)) }),
    ...(request.complete ? {} : { connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : content);
  // What is left of a body that nobody wants is thrown away, for as long as a request may take.
  request.resume();
}

function contentOf({ bytes, csv, body }: AdminAnswer): NonNullable<AdminAnswer['bytes']> {
  if (bytes !== undefined) return bytes;
  return csv === undefined
    ? { type: 'application/json', content: Buffer.from(JSON.stringify(body)) }
    : { type: 'text/csv; charset=utf-8', content: Buffer.from(csv) };
}
