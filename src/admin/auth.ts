/**
 * Authentication for the admin plane: callers with the admin token or the control token in a header, and
 * browsers with a session cookie. A browser sends the cookie with requests from any page, so a request with a
 * cookie must come from the gateway's own page (S11). A request with a token in a header need not.
 */
import type { IncomingMessage } from 'node:http';
import type { Actor } from '../access/audit.ts';
import { presentedKey } from '../access/keys/key-format.ts';
import { cookieOf } from './cookies.ts';
import type { Member } from './people/roles.ts';
import { sessionPath } from './people/session-routes.ts';
import type { Session, Sessions } from './people/sessions.ts';
import { type AdminAnswer, errorAnswer, type HttpContext } from './route.ts';

/** Sent by the dashboard with changes. A form cannot send it, and a page of another origin may not. */
const csrfHeader = 'x-model-gateway-csrf';

interface AuthDeps {
  /** The actor of this bearer token; undefined if it is invalid. */
  actorOf(token: string): Actor['name'] | undefined;
  readonly sessions: Pick<Sessions, 'find'>;
  readonly wallNow: () => number;
}

export interface Admitted {
  /** Undefined: not authenticated, at an address that is open to all. */
  readonly name: Actor['name'] | undefined;
  /** Absent: authenticated by a token, which is an owner's. */
  readonly member?: Member;
  readonly http: HttpContext;
}

/** 'anonymous' presented no token, 'guess' an invalid one. */
type Entry = Admitted | 'anonymous' | 'guess' | AdminAnswer;

const foreign: AdminAnswer = errorAnswer(
  403,
  `The request has a session cookie but does not come from a page of this address: changes need the header ${csrfHeader}: 1 and the origin that signed in. Programs send the admin token as "Authorization: Bearer TOKEN".`,
);

const foreignSignIn: AdminAnswer = errorAnswer(
  403,
  `Sessions are for browsers: signing in needs the header ${csrfHeader}: 1 and a page of this address. Programs send the admin token as "Authorization: Bearer TOKEN" with each request.`,
);

/** @throws StoreError when the session cannot be looked up */
export async function enter(deps: AuthDeps, request: IncomingMessage): Promise<Entry> {
  const { headers, method, url = '' } = request;
  const http = contextOf(request, deps.wallNow());
  if (headers.authorization !== undefined) return withToken(deps, headers.authorization, http);
  const sessionId = cookieOf(request);
  const session =
    sessionId === undefined ? undefined : await deps.sessions.find(sessionId, changes(method));
  const isSession = url.split('?', 1)[0] === sessionPath;
  if (isSession && method === 'POST')
    return isOwnPage(request) && isMarked(request) ? { name: undefined, http } : foreignSignIn;
  if (session === undefined) {
    return isSession && method === 'GET' ? { name: undefined, http } : 'anonymous';
  }
  if (!isOwnPage(request) || !comesFrom(session, request)) return foreign;
  const { member } = session;
  const whose =
    member === undefined
      ? ({ name: 'admin' } as const)
      : ({ name: `person:${member.id}`, member } as const);
  return { ...whose, http: { ...http, signedIn: true, session } };
}

function contextOf({ headers }: IncomingMessage, now: number): HttpContext {
  const { origin, 'if-match': ifMatch } = headers;
  return {
    signedIn: false,
    now,
    ...(origin === undefined ? {} : { origin }),
    ...(ifMatch === undefined ? {} : { ifMatch }),
  };
}

function changes(method: string | undefined): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** Requests without a change need no origin, since browsers send none with them. */
function comesFrom(session: Session, request: IncomingMessage): boolean {
  const { method, headers } = request;
  if (!changes(method)) return true;
  return isMarked(request) && headers.origin === session.origin;
}

function withToken(deps: AuthDeps, authorization: string, http: HttpContext): Entry {
  const token = presentedKey(authorization, undefined);
  if (token === '') return 'anonymous';
  const name = deps.actorOf(token);
  return name === undefined ? 'guess' : { name, http: { ...http, signedIn: true } };
}

function isMarked({ headers }: IncomingMessage): boolean {
  return headers[csrfHeader] === '1';
}

/**
 * Checks the browser's own header about the initiator, which no page can change: this page, or the person (a typed
 * address). Another port of the same machine is the same site and gets the cookie: only this check distinguishes them.
 */
function isOwnPage({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  return site === undefined || site === 'same-origin' || site === 'none';
}
