/** `/api/session`: signing in with the admin token, for browsers (S11). */
import { z } from 'zod';
import { isLoopback } from '../config/address.ts';
import type { JsonObject } from '../core/conversation.ts';
import { noBody, time } from './admin-pages.ts';
import { AdminError, readInput, type AdminRequest, type AdminRoute } from './admin-route.ts';
import { dateText } from './period.ts';
import type { Session, Sessions } from './sessions.ts';

export interface SessionRouteParts {
  /** Absent where there is no listener: a command has no session. */
  readonly sessions?: Sessions;
}

/** Address of the three routes; signing in is open to those who have no token yet. */
export const sessionPath = '/api/session';

const signIn = z.strictObject({ token: z.string('must be a text').max(4000) });

const answer = z.strictObject({
  signed_in: z.boolean(),
  expires_at: time.nullable().describe('When the session ends; null without one.'),
});

export function sessionRoutes(parts: SessionRouteParts): readonly AdminRoute[] {
  return [
    {
      method: 'POST',
      path: sessionPath,
      about: {
        summary: 'Sign in: a session of twelve hours, in a cookie. For pages of this listener.',
        body: signIn,
        answer,
      },
      run: (request) => begin(parts, request),
    },
    {
      method: 'GET',
      path: sessionPath,
      about: { summary: 'Whether whoever asks is signed in. It needs no token.', answer },
      run: ({ visit }) => ({
        status: 200,
        body: sessionJson(visit?.signedIn === true, visit?.session),
      }),
    },
    {
      method: 'DELETE',
      path: sessionPath,
      about: { summary: 'Sign out.', answer },
      run: ({ body, visit }) => {
        readInput(noBody, body);
        if (visit?.sessionId !== undefined) parts.sessions?.end(visit.sessionId);
        return { status: 200, body: sessionJson(false, undefined), cookie: { value: '', ms: 0 } };
      },
    },
  ];
}

function begin(
  { sessions }: SessionRouteParts,
  { body, visit }: AdminRequest,
): ReturnType<AdminRoute['run']> {
  if (sessions === undefined || visit === undefined) {
    throw new AdminError(404, 'Sessions are for browsers, at the admin listener of a gateway.');
  }
  const origin = pageOf(visit.origin);
  const { token } = readInput(signIn, body);
  const opened = sessions.open(token, origin);
  if (opened === undefined) throw new AdminError(401, 'This is not the admin token.', 'token');
  const { id, session } = opened;
  const ms = session.expiresAt - visit.now;
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
      'A session is for pages in a browser, which say their origin. Send the admin token as "Authorization: Bearer TOKEN" instead.',
    );
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname)) {
    throw new AdminError(
      403,
      `A browser keeps no session over plain HTTP with ${url.host}. Put a TLS proxy before the admin listener and open its https:// address, or bring it to your machine: ssh -L 8687:127.0.0.1:8687 HOST, then http://127.0.0.1:8687.`,
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
