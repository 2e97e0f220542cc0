/** `/api/session`: signing in with the admin token, for browsers (S11). `/api/sessions`: who is signed in. */
import { z } from 'zod';
import type { AuditLog } from '../../access/audit.ts';
import { isLoopback } from '../../config/errors.ts';
import type { JsonObject } from '../../json/value.ts';
import type { SessionRecord } from '../../store/people.ts';
import {
  type AdminAnswer,
  AdminError,
  type AdminRequest,
  type AdminRoute,
  type HttpContext,
  dateText,
  noBody,
  page,
  readInput,
  time,
} from '../route.ts';
import { hasRole, type Member, roles } from './roles.ts';
import type { Sessions } from './sessions.ts';

export interface SessionRouteDeps {
  /** Absent where there is no listener: a command has no session. */
  readonly sessions?: Sessions;
  /** The button of the sign-in by OpenID Connect; absent = there is none. */
  readonly signInButton?: { readonly label: string; readonly url: string };
  readonly audit: AuditLog;
}

/** Path of the three routes of a session. Signing in needs no token. */
export const sessionPath = '/api/session';

const signIn = z.strictObject({ token: z.string('must be a string').max(4000) });

const person = z.strictObject({
  id: z.string().describe('Owner of the keys of this person.'),
  name: z.string(),
  leads: z.array(z.string()).describe('Teams that the person leads.'),
  teams: z.array(z.string()).describe('Teams that the person belongs to.'),
});

const answer = z.strictObject({
  signed_in: z.boolean(),
  expires_at: time
    .nullable()
    .describe('When the session ends, if it is used until then; null without one.'),
  person: person.nullable().describe('Null: signed in with the admin token, or not signed in.'),
  roles: z.array(z.enum(roles)),
  sign_in: z
    .strictObject({ label: z.string(), url: z.string() })
    .nullable()
    .describe('Where people sign in by OpenID Connect; null: by the admin token alone.'),
});

const listed = z.strictObject({
  id: z.string().describe('Digest of the id in the cookie.'),
  person: z.string().nullable().describe('Null: signed in with the admin token.'),
  origin: z.string().describe('Address of the page that signed in.'),
  ip: z.string().nullable(),
  created_at: time,
  seen_at: time.describe('Last request, accurate to about a minute.'),
  ends_at: time,
  current: z.boolean().describe('The session of this request.'),
});

const listQuery = page.pick({ limit: true });

export function sessionRoutes(deps: SessionRouteDeps): readonly AdminRoute[] {
  return [
    {
      method: 'POST',
      path: sessionPath,
      about: {
        summary:
          'Sign in with the admin token: a session of twelve hours, in a cookie. Only for pages of this listener.',
        body: signIn,
        answer,
      },
      run: (request) => begin(deps, request),
    },
    {
      method: 'GET',
      path: sessionPath,
      about: { summary: 'Show who is signed in. Needs no token.', answer },
      run: ({ http }) => ({ status: 200, body: sessionJson(deps, http) }),
    },
    {
      method: 'DELETE',
      path: sessionPath,
      about: { summary: 'Sign out.', answer },
      run: async ({ body, http }) => {
        readInput(noBody, body);
        if (http?.session !== undefined) await deps.sessions?.end(http.session.id);
        return { status: 200, body: sessionJson(deps, undefined), cookie: { value: '', ms: 0 } };
      },
    },
    {
      method: 'GET',
      path: '/api/sessions',
      about: {
        summary: 'List sessions, newest first: all for an owner, otherwise those of the caller.',
        query: listQuery,
        answer: z.strictObject({ sessions: z.array(listed) }),
      },
      run: ({ query, member, http }) => list(deps, readInput(listQuery, query), { member, http }),
    },
    {
      method: 'DELETE',
      path: '/api/sessions/:id',
      about: {
        summary: 'End a session: any for an owner, otherwise one of the caller.',
        answer: z.strictObject({ id: z.string(), ended: z.literal(true) }),
      },
      run: (request) => end(deps, request),
    },
  ];
}

async function begin(
  deps: SessionRouteDeps,
  { body, http, actor }: AdminRequest,
): Promise<AdminAnswer> {
  if (http === undefined) return withoutListener();
  const origin = pageOf(http.origin);
  const { token } = readInput(signIn, body);
  const opened = await listenerOf(deps).open(token, { origin, ip: actor.ip });
  if (opened === undefined) throw new AdminError(401, 'This is not the admin token.', 'token');
  const { id, session } = opened;
  const ms = session.expiresAt - http.now;
  return {
    status: 200,
    body: sessionJson(deps, { signedIn: true, session }),
    cookie: { value: id.reveal(), ms },
  };
}

/** @throws AdminError 404 where no gateway listens. */
function listenerOf({ sessions }: SessionRouteDeps): Sessions {
  return sessions ?? withoutListener();
}

function withoutListener(): never {
  throw new AdminError(404, 'Sessions are for browsers, at the admin listener of a gateway.');
}

/**
 * The origin of the page that signs in. Browsers keep a `Secure` cookie over plain HTTP for addresses of their
 * own machine only. Elsewhere a sign-in would work, and the browser would drop its cookie.
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

function sessionJson(
  { signInButton }: SessionRouteDeps,
  http: Pick<HttpContext, 'signedIn' | 'session'> | undefined,
): JsonObject {
  const signedIn = http?.signedIn === true;
  const session = http?.session;
  const member = session?.member;
  return {
    signed_in: signedIn,
    expires_at: session === undefined ? null : dateText(session.expiresAt),
    person: member === undefined ? null : personJson(member),
    roles: signedIn ? [...(member?.roles ?? ['owner'])] : [],
    sign_in: signInButton === undefined ? null : { ...signInButton },
  };
}

function personJson({ id, name, leads, teams }: Member): JsonObject {
  return { id, name, leads: [...leads], teams: [...teams] };
}

async function list(
  deps: SessionRouteDeps,
  { limit }: z.output<typeof listQuery>,
  { member, http }: Pick<AdminRequest, 'member' | 'http'>,
): Promise<AdminAnswer> {
  const person = hasRole(member, 'owner') ? undefined : member?.id;
  const found = await listenerOf(deps).list(limit, person);
  const sessions = found.map((each) => listedJson(each, http?.session?.id));
  return { status: 200, body: { sessions } };
}

function listedJson(session: SessionRecord, current: string | undefined): JsonObject {
  return {
    id: session.id,
    person: session.person ?? null,
    origin: session.origin,
    ip: session.ip ?? null,
    created_at: dateText(session.createdAt),
    seen_at: dateText(session.seenAt),
    ends_at: dateText(session.endsAt),
    current: session.id === current,
  };
}

async function end(deps: SessionRouteDeps, request: AdminRequest): Promise<AdminAnswer> {
  const { id, body, actor, member, http } = request;
  readInput(noBody, body);
  const sessions = listenerOf(deps);
  const isOthers = !hasRole(member, 'owner') && !(await isOwn(sessions, id, member));
  if (isOthers || !(await sessions.end(id))) {
    throw new AdminError(404, 'There is no such session; it may be over.');
  }
  await deps.audit.note({ actor, action: 'session.end', subject: `session:${id}` });
  const cookie = http?.session?.id === id ? { cookie: { value: '', ms: 0 } } : {};
  return { status: 200, body: { id, ended: true }, ...cookie };
}

async function isOwn(sessions: Sessions, id: string, member: Member | undefined): Promise<boolean> {
  if (member === undefined) return true;
  const own = await sessions.list(maxOwn, member.id);
  return own.some((each) => each.id === id);
}

/** The maximum number of listed sessions of one person. */
const maxOwn = 1000;
