/**
 * Who may enter the admin plane: whoever has the admin token or the control token in a header, and
 * browsers with a session's cookie. A browser sends a cookie whoever made it ask, so what comes with one
 * must come from the gateway's own page (S11); what comes with a token in a header does so anyway.
 */
import type { IncomingMessage } from 'node:http';
import type { Actor } from '../access/audit.ts';
import { presentedKey } from '../access/presented-key.ts';
import { errorAnswer, type AdminAnswer, type Visit } from './admin-route.ts';
import { sessionPath } from './admin-session.ts';
import type { Session, Sessions } from './sessions.ts';

/** Sent by the dashboard with changes: no form can, and no page of another origin may. */
export const csrfHeader = 'x-model-gateway-csrf';

export interface DoorParts {
  /** Whose this bearer token is; undefined when it opens nothing. */
  actorOf(token: string): Actor['name'] | undefined;
  readonly sessions: Pick<Sessions, 'find'>;
  readonly wallNow: () => number;
}

export interface Admitted {
  /** Undefined: nobody, at an address that is open to all. */
  readonly name: Actor['name'] | undefined;
  readonly visit: Visit;
}

/** 'nobody' showed nothing, 'guess' a token that is none. */
export type Entry = Admitted | 'nobody' | 'guess' | AdminAnswer;

const foreign: AdminAnswer = errorAnswer(
  403,
  `This came with a session's cookie, but not from a page of this address: changes need the header ${csrfHeader}: 1 and the origin that signed in. Programs send the admin token as "Authorization: Bearer TOKEN".`,
);

const foreignSignIn: AdminAnswer = errorAnswer(
  403,
  `Sessions are for browsers: signing in needs the header ${csrfHeader}: 1 and a page of this address. Programs send the admin token as "Authorization: Bearer TOKEN" with each request.`,
);

export function enter(parts: DoorParts, request: IncomingMessage): Entry {
  const { headers, method, url = '' } = request;
  const visit = plainVisit(parts, request);
  if (headers.authorization !== undefined) return withToken(parts, headers.authorization, visit);
  const sessionId = cookieOf(request);
  const session = sessionId === undefined ? undefined : parts.sessions.find(sessionId);
  const isSession = url.split('?', 1)[0] === sessionPath;
  if (isSession && method === 'POST') return signingIn(request, visit);
  if (session === undefined || sessionId === undefined) {
    return isSession && method === 'GET' ? { name: undefined, visit } : 'nobody';
  }
  if (!isOwnPage(request) || !comesFrom(session, request)) return foreign;
  return { name: 'admin', visit: { ...visit, signedIn: true, session, sessionId } };
}

function signingIn(request: IncomingMessage, visit: Visit): Entry {
  return isOwnPage(request) && isMarked(request) ? { name: undefined, visit } : foreignSignIn;
}

/** What changes nothing may come without: browsers send no origin with it. */
function comesFrom(session: Session, request: IncomingMessage): boolean {
  const { method, headers } = request;
  if (method === 'GET' || method === 'HEAD') return true;
  return isMarked(request) && headers.origin === session.origin;
}

function withToken(parts: DoorParts, authorization: string, visit: Visit): Entry {
  const token = presentedKey(authorization, undefined);
  if (token === '') return 'nobody';
  const name = parts.actorOf(token);
  return name === undefined ? 'guess' : { name, visit: { ...visit, signedIn: true } };
}

function isMarked({ headers }: IncomingMessage): boolean {
  return headers[csrfHeader] === '1';
}

/**
 * What the browser says of who made it ask, which no page can change: this page, or the person (a typed
 * address). Another port of the same machine is the same site and gets the cookie: only this tells it apart.
 */
function isOwnPage({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  return site === undefined || site === 'same-origin' || site === 'none';
}

function plainVisit(parts: DoorParts, { headers }: IncomingMessage): Visit {
  const { origin } = headers;
  return { signedIn: false, now: parts.wallNow(), ...(origin === undefined ? {} : { origin }) };
}

/** Cookies know no ports: gateways on one machine must not overwrite each other's. */
export function cookieName(request: IncomingMessage): string {
  return `__Host-model-gateway-${request.socket.localPort ?? 0}`;
}

function cookieOf(request: IncomingMessage): string | undefined {
  const start = `${cookieName(request)}=`;
  const pieces = (request.headers.cookie ?? '').split(';').map((piece) => piece.trim());
  return pieces.find((piece) => piece.startsWith(start))?.slice(start.length);
}

/** `Set-Cookie`: for this host alone, over TLS or on this machine, not for scripts, not for other sites. */
export function cookieHeader(
  request: IncomingMessage,
  { value, ms }: NonNullable<AdminAnswer['cookie']>,
): string {
  const seconds = Math.floor(ms / 1000);
  return `${cookieName(request)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=Strict`;
}
