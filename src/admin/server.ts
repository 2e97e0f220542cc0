/** HTTP around the admin API: authentication, the body limit, and JSON for every answer. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Actor } from '../access/audit.ts';
import { presentedKey } from '../access/key-format.ts';
import type { Json } from '../json/value.ts';
import { expectedError, GatewayError } from '../core/errors.ts';
import { parseBody } from '../core/client-body.ts';
import type { Clock, Log, NewId } from '../core/runtime.ts';
import { type Admitted, cookieHeader, enter, type Sessions } from './auth.ts';
import { errorAnswer, refusalAnswer, type AdminAnswer, type AdminHandler } from './route.ts';
import { metricsAnswer, metricsPath, type MetricsSource } from './operations.ts';
import { checkBodyHeaders, readBody, type BodyWatch } from '../http/body.ts';
import { checkRequestHead } from '../http/request-headers.ts';
import { createListener, dataTimes } from '../http/listen.ts';
import { type DashboardFiles, pageSafety, sendDashboard } from './dashboard.ts';
import { BadKeys } from '../http/authenticate-request.ts';
import {
  capConnections,
  HeldAnswers,
  UnauthenticatedConnections,
} from '../http/overload/connection-limits.ts';
import { RefusalLog } from '../http/send.ts';
import { explain, isExplain } from './explain.ts';
import { isPlayground, play, type Caller } from './playground.ts';

const bodyLimitBytes = 1024 * 1024;
/** Of a request without a credential: signing in, which sends a token. */
const strangersBodyBytes = 4 * 1024;
/** Such a body comes in one piece with its head, or soon after it. */
const strangersBodyMs = 2000;
const times = { ...dataTimes, requestMs: 30_000 };
/** It has files of its own to open: strangers may not take those of the data plane (G10). */
const maxConnections = 200;
/** The other half is reserved for connections that presented a credential. */
const strangersLimits = { inAll: 100, ofAddress: 64 };
/** Wrong tokens a minute and address (S11); the right one opens all the while. */
const guessesPerMinute = 5;
/** The same of all addresses together: many of them can guess for one. */
const guessesInAll = 60;

interface AdminHttpParts {
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
  /** Delays answers to wrong tokens; default: a real timer. */
  readonly wait?: (ms: number) => Promise<void>;
  /** Answers what is under its addresses. */
  readonly playground?: Caller;
  /** Explains calls. */
  readonly explainer?: Caller;
}

interface GuardedParts extends AdminHttpParts {
  readonly guesses: BadKeys;
  readonly allGuesses: BadKeys;
  readonly held: HeldAnswers;
  readonly strangers: UnauthenticatedConnections;
  readonly refusals: RefusalLog;
  readonly wallNow: () => number;
}

const refused: AdminAnswer = errorAnswer(
  401,
  'The admin token is missing or not valid. Send it as "Authorization: Bearer TOKEN".',
);

const tooManyGuesses: AdminAnswer = errorAnswer(
  429,
  'Too many requests without a valid admin token came from this address. Send a valid one, or wait.',
);

/** A server that is not listening yet. */
export function createAdminHttpServer(parts: AdminHttpParts): Server {
  const { clock, newId, log } = parts;
  const refusals = new RefusalLog({ log, clock });
  const guesses = new BadKeys({ clock, perMinute: () => guessesPerMinute });
  const allGuesses = new BadKeys({ clock, perMinute: () => guessesInAll });
  const held = new HeldAnswers(parts.wait ?? passed);
  const strangers = new UnauthenticatedConnections(strangersLimits);
  const guarded = {
    ...parts,
    guesses,
    allGuesses,
    held,
    strangers,
    refusals,
    wallNow: () => clock.wall(),
  };
  // `serve` answers every failure itself.
  const server = createListener(
    (request, response) => {
      // Set for every answer, including those of the playground's data plane.
      for (const [name, value] of Object.entries(pageSafety)) response.setHeader(name, value);
      void serve(guarded, request, response);
    },
    {
      newId,
      refused: (refusal) => refusals.note({ ...refusal, plane: 'admin' }),
      refusalHeaders: pageSafety,
      times,
    },
  );
  strangers.watch(server);
  capConnections(server, () => maxConnections);
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
    send(
      request,
      response,
      refusal ?? errorAnswer(500, 'The gateway failed. See its log for the cause.'),
    );
  }
}

/** Undefined: it was answered. */
async function answer(
  parts: GuardedParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<AdminAnswer | undefined> {
  parts.strangers.unknown(request.socket);
  checkRequestHead(request, response);
  if (sendDashboard(parts.dashboard, request, response)) return undefined;
  const { method = 'GET', url = '/' } = request;
  if (url === '/healthz') return alive(method);
  // Before anything else is looked at: a stranger learns not even which addresses there are.
  const entry = scraper(parts, request) ?? enter(parts, request);
  if (entry === 'anonymous') return refused;
  if (entry === 'guess') return wrongToken(parts, request.socket.remoteAddress);
  if (!('visit' in entry)) return entry;
  if (entry.name !== undefined) parts.strangers.known(request.socket);
  if (parts.playground !== undefined && isPlayground(url)) {
    return play(parts.playground, request, response);
  }
  if (parts.explainer !== undefined && isExplain(url)) {
    return explain(parts.explainer, request, response);
  }
  return handle(parts, request, entry);
}

function alive(method: string): AdminAnswer {
  if (method === 'GET' || method === 'HEAD') return { status: 200, body: { status: 'ok' } };
  return { ...errorAnswer(405, 'This address takes GET only.'), allow: 'GET, HEAD' };
}

/** Authenticates the token that opens only the metrics. */
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
  const body = await (name === undefined
    ? strangersJson(request)
    : readJson(request, bodyLimitBytes));
  const actor = { name: name ?? 'admin', ...(ip === undefined ? {} : { ip }) };
  const given = await parts.handle(method, url, { body, actor, visit });
  if (name !== undefined || given.status !== 401) return given;
  const counted = await wrongToken(parts, ip);
  return counted.status === 401
    ? { ...given, ...(counted.last === true ? { last: counted.last } : {}) }
    : counted;
}

function isMetrics({ url = '/' }: IncomingMessage): boolean {
  return url === metricsPath || url.startsWith(`${metricsPath}?`);
}

/** Looked at was the token before this: a valid one waits for nothing. */
async function wrongToken(
  { guesses, allGuesses, held, refusals }: GuardedParts,
  address: string | undefined,
): Promise<AdminAnswer> {
  const waitMs = guesses.refused(address);
  const manyInAll = allGuesses.refused('') !== undefined;
  const status = waitMs === undefined ? 401 : 429;
  refusals.note({ status, error: 'admin_token', address, plane: 'admin' });
  const answer = waitMs === undefined ? refused : { ...tooManyGuesses, retryAfterMs: waitMs };
  if (waitMs === undefined && !manyInAll) return answer;
  return (await held.hold(address)) ? answer : { ...answer, last: true };
}

function passed(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}

/** What comes without a credential has less time and less room. @throws GatewayError `request_timeout` too. */
async function strangersJson(request: IncomingMessage): Promise<Json | undefined> {
  let timer: NodeJS.Timeout | undefined;
  return await readJson(request, strangersBodyBytes, {
    begun: (refuse) => {
      timer = setTimeout(() => refuse(bodyTooLate()), strangersBodyMs).unref();
    },
    came: () => undefined,
    over: () => clearTimeout(timer),
  });
}

function bodyTooLate(): GatewayError {
  const seconds = strangersBodyMs / 1000;
  return expectedError(
    'request_timeout',
    `The body of a request without a token must arrive within ${seconds} seconds.`,
  );
}

async function readJson(
  request: IncomingMessage,
  maxBytes: number,
  watch?: BodyWatch,
): Promise<Json | undefined> {
  const length = Number(request.headers['content-length'] ?? 0);
  if (length === 0 && request.headers['transfer-encoding'] === undefined) return undefined;
  checkBodyHeaders(request, maxBytes);
  return parseBody((await readBody(request, maxBytes, watch)).whole(), new Set()).value;
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
    ...(request.complete && answer.last !== true ? {} : { connection: 'close' }),
  });
  response.end(request.method === 'HEAD' ? undefined : content);
  // The rest of an unwanted body is discarded, within the time limit of a request.
  request.resume();
}

function contentOf({ bytes, csv, body }: AdminAnswer): NonNullable<AdminAnswer['bytes']> {
  if (bytes !== undefined) return bytes;
  return csv === undefined
    ? { type: 'application/json', content: Buffer.from(JSON.stringify(body)) }
    : { type: 'text/csv; charset=utf-8', content: Buffer.from(csv) };
}
