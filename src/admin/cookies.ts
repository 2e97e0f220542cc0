/** Cookies of the dashboard (S11): for this host alone, over TLS or on this machine, not for scripts. */
import type { IncomingMessage } from 'node:http';

/** The new value of a cookie and its lifetime; 0: it is removed. */
export interface CookieValue {
  readonly value: string;
  readonly ms: number;
}

/** Cookies know no ports: gateways on one machine must not overwrite each other's. */
function sessionCookie(request: IncomingMessage): string {
  return `__Host-model-gateway-${request.socket.localPort ?? 0}`;
}

function signInCookie(request: IncomingMessage): string {
  return `${sessionCookie(request)}-oidc`;
}

/** The id of the session. */
export function cookieOf(request: IncomingMessage): string | undefined {
  return valueOf(request, sessionCookie(request));
}

/** `Set-Cookie` of the session: not for other sites. */
export function cookieHeader(request: IncomingMessage, cookie: CookieValue): string {
  return header(sessionCookie(request), cookie, 'Strict');
}

/** The state of a sign-in in progress, in the browser. */
export function signInCookieOf(request: IncomingMessage): string | undefined {
  return valueOf(request, signInCookie(request));
}

/** `Set-Cookie` of a sign-in: the browser sends it when the provider sends the person back. */
export function signInCookieHeader(request: IncomingMessage, cookie: CookieValue): string {
  return header(signInCookie(request), cookie, 'Lax');
}

function valueOf({ headers }: IncomingMessage, name: string): string | undefined {
  const start = `${name}=`;
  const pieces = (headers.cookie ?? '').split(';').map((piece) => piece.trim());
  return pieces.find((piece) => piece.startsWith(start))?.slice(start.length);
}

function header(name: string, { value, ms }: CookieValue, site: 'Strict' | 'Lax'): string {
  const seconds = Math.floor(ms / 1000);
  return `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=${site}`;
}
