/**
 * Authentication for the admin plane: callers with the admin token or the control token in a header, and
 * browsers with a session cookie. A browser sends the cookie with requests from any page, so a request with a
 * cookie must come from the gateway's own page (S11). A request with a token in a header need not.
 */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { TokenCheck } from '../access/keys/admin-token.ts';
import type { Actor } from '../access/audit.ts';
import { type RandomBytes, digestOf, presentedKey } from '../access/keys/key-format.ts';
import { isLoopback } from '../config/errors.ts';
import type { Clock } from '../core/runtime.ts';
import { Secret } from '../core/secret.ts';
import type { JsonObject } from '../json/value.ts';
import {
  type AdminAnswer,
  AdminError,
  type AdminRequest,
  type AdminRoute,
  dateText,
  errorAnswer,
  noBody,
  readInput,
  time,
  type HttpContext,
} from './route.ts';

/** Sent by the dashboard with changes: no form can, and no page of another origin may. */
const csrfHeader = 'x-model-gateway-csrf';

interface AuthDeps {
  /** Whose this bearer token is; undefined when it opens nothing. */
  actorOf(token: string): Actor['name'] | undefined;
  readonly sessions: Pick<Sessions, 'find'>;
  readonly wallNow: () => number;
}

export interface Admitted {
  /** Undefined: not authenticated, at an address that is open to all. */
  readonly name: Actor['name'] | undefined;
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

export function enter(deps: AuthDeps, request: IncomingMessage): Entry {
  const { headers, method, url = '' } = request;
  const { origin } = request.headers;
  const http = {
    signedIn: false,
    now: deps.wallNow(),
    ...(origin === undefined ? {} : { origin }),
  };
  if (headers.authorization !== undefined) return withToken(deps, headers.authorization, http);
  const sessionId = cookieOf(request);
  const session = sessionId === undefined ? undefined : deps.sessions.find(sessionId);
  const isSession = url.split('?', 1)[0] === sessionPath;
  if (isSession && method === 'POST')
    return isOwnPage(request) && isMarked(request) ? { name: undefined, http } : foreignSignIn;
  if (session === undefined || sessionId === undefined) {
    return isSession && method === 'GET' ? { name: undefined, http } : 'anonymous';
  }
  if (!isOwnPage(request) || !comesFrom(session, request)) return foreign;
  return { name: 'admin', http: { ...http, signedIn: true, session, sessionId } };
}

/** What changes nothing may come without: browsers send no origin with it. */
function comesFrom(session: Session, request: IncomingMessage): boolean {
  const { method, headers } = request;
  if (method === 'GET' || method === 'HEAD') return true;
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
 * What the browser says of who made it ask, which no page can change: this page, or the person (a typed
 * address). Another port of the same machine is the same site and gets the cookie: only this tells it apart.
 */
function isOwnPage({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  return site === undefined || site === 'same-origin' || site === 'none';
}

/** Cookies know no ports: gateways on one machine must not overwrite each other's. */
function cookieName(request: IncomingMessage): string {
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

// Sessions of the dashboard (S11): a client with the admin token gets a random id in a cookie that scripts
// cannot read, and need not keep the token. Sessions are kept in memory by the hash of their id. They end after
// twelve hours, with the process, and with the token that opened them.

/** How long a session lasts, whatever is done with it. */
const sessionMs = 12 * 3_600_000;

/** The oldest is forgotten first: a script that signs in again and again must not fill the memory. */
const maxSessions = 1000;

const idBytes = 32;

export interface Session {
  /** The origin of the page that signed in, `https://host:port`: changes must come from the same. */
  readonly origin: string;
  /** Wall time in ms. */
  readonly expiresAt: number;
}

interface StoredSession extends Session {
  /** By the monotonic clock, which cannot be set. */
  readonly endsAt: number;
  readonly tokenDigest: Buffer;
}

interface SessionsDeps {
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly random: RandomBytes;
  readonly adminToken: Pick<TokenCheck, 'verify' | 'verifyDigest'>;
}

export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #sessions = new Map<string, StoredSession>();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** How many are remembered. */
  get size(): number {
    return this.#sessions.size;
  }

  /** Signs in. Undefined when this is not the admin token. */
  open(
    token: string,
    origin: string,
  ): { readonly id: Secret; readonly session: Session } | undefined {
    const { clock, random, adminToken } = this.#deps;
    if (!adminToken.verify(token)) return undefined;
    this.#makeRoom();
    const id = new Secret(Buffer.from(random(idBytes)).toString('base64url'));
    const session = {
      origin,
      expiresAt: clock.wall() + sessionMs,
      endsAt: clock.now() + sessionMs,
      tokenDigest: digestOf(token),
    };
    this.#sessions.set(nameOf(id.reveal()), session);
    return { id, session };
  }

  /** The session of a cookie's value; undefined when there is none, or none any more. */
  find(id: string): Session | undefined {
    const name = nameOf(id);
    const session = this.#sessions.get(name);
    if (session === undefined) return undefined;
    const lives =
      this.#deps.clock.now() < session.endsAt &&
      this.#deps.adminToken.verifyDigest(session.tokenDigest);
    if (lives) return session;
    this.#sessions.delete(name);
    return undefined;
  }

  /** Signs out. */
  end(id: string): void {
    this.#sessions.delete(nameOf(id));
  }

  #makeRoom(): void {
    const now = this.#deps.clock.now();
    // In the order of their opening, and so of their ends.
    for (const [name, { endsAt }] of this.#sessions) {
      if (endsAt > now && this.#sessions.size < maxSessions) return;
      this.#sessions.delete(name);
    }
  }
}

function nameOf(id: string): string {
  return digestOf(id).toString('base64url');
}

// `/api/session`: signing in with the admin token, for browsers (S11).

export interface SessionRouteDeps {
  /** Absent where there is no listener: a command has no session. */
  readonly sessions?: Sessions;
}

/** Path of the three routes. Signing in needs no token. */
const sessionPath = '/api/session';

const signIn = z.strictObject({ token: z.string('must be a string').max(4000) });

const answer = z.strictObject({
  signed_in: z.boolean(),
  expires_at: time.nullable().describe('When the session ends; null without one.'),
});

export function sessionRoutes(deps: SessionRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'POST',
      path: sessionPath,
      about: {
        summary:
          'Sign in: a session of twelve hours, in a cookie. Only for pages of this listener.',
        body: signIn,
        answer,
      },
      run: (request) => begin(deps, request),
    },
    {
      method: 'GET',
      path: sessionPath,
      about: { summary: 'Show whether the caller is signed in. Needs no token.', answer },
      run: ({ http }) => ({
        status: 200,
        body: sessionJson(http?.signedIn === true, http?.session),
      }),
    },
    {
      method: 'DELETE',
      path: sessionPath,
      about: { summary: 'Sign out.', answer },
      run: ({ body, http }) => {
        readInput(noBody, body);
        if (http?.sessionId !== undefined) deps.sessions?.end(http.sessionId);
        return { status: 200, body: sessionJson(false, undefined), cookie: { value: '', ms: 0 } };
      },
    },
  ];
}

function begin(
  { sessions }: SessionRouteDeps,
  { body, http }: AdminRequest,
): ReturnType<AdminRoute['run']> {
  if (sessions === undefined || http === undefined) {
    throw new AdminError(404, 'Sessions are for browsers, at the admin listener of a gateway.');
  }
  const origin = pageOf(http.origin);
  const { token } = readInput(signIn, body);
  const opened = sessions.open(token, origin);
  if (opened === undefined) throw new AdminError(401, 'This is not the admin token.', 'token');
  const { id, session } = opened;
  const ms = session.expiresAt - http.now;
  return {
    status: 200,
    body: sessionJson(true, session),
    cookie: { value: id.reveal(), ms },
  };
}

/**
 * The origin of the page that signs in. Browsers keep a `Secure` cookie over plain HTTP for addresses of their
 * own machine only; elsewhere signing in would work and be forgotten at once.
 * @throws AdminError 403
 */
function pageOf(origin: string | undefined): string {
  const url = origin === undefined ? null : URL.parse(origin);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new AdminError(
      403,
      'A session is only for browser pages, which send their origin. Send the admin token as "Authorization: Bearer TOKEN" instead.',
    );
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new AdminError(
      403,
      `Browsers keep no session over plain HTTP with ${url.host}. Put a TLS proxy in front of the admin listener and open its https:// address, or use a tunnel: ssh -L 8687:127.0.0.1:8687 HOST, then http://127.0.0.1:8687.`,
    );
  }
  return url.origin;
}

function sessionJson(signedIn: boolean, session: Session | undefined): JsonObject {
  return {
    signed_in: signedIn,
    expires_at: session === undefined ? null : dateText(session.expiresAt),
  };
}
