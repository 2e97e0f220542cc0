/**
 * The dashboard's playground: `POST /api/playground/chat/completions` and `…/messages` on the admin listener,
 * for authenticated callers. Its calls take the normal path and have ledger rows.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { KeyPrincipal, type Principal } from '../access/principal.ts';
import { GatewayError } from '../core/errors.ts';
import { noPolicy } from '../core/policy.ts';
import { clientDialects } from '../dialects/registry.ts';
import { generatingEndpoints } from '../http/paths.ts';
import { errorAnswer, type AdminAnswer, type AdminRoute } from './route.ts';
import type { AuthenticationDeps } from '../http/authenticate-request.ts';

/** Stands in the place of `/v1` of the endpoints. */
const prefix = '/api/playground';

/** Replaces the key id in rows of calls without a key. */
const playgroundKeyId = 'playground';

/** Without limits: a caller with the admin token could create such a key anyway. */
export const playgroundPrincipal: Principal = new KeyPrincipal({
  id: playgroundKeyId,
  name: 'Playground',
  digest: '',
  previous: [],
  models: ['*'],
  endpoints: clientDialects.map(({ scope }) => scope),
  cidrs: [],
  tags: [],
  policy: noPolicy,
  shrink: true,
  createdAt: 0,
  version: 1,
});

/** A data plane whose callers are named by the id of their key. */
interface Plane {
  /** Never throws. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

export interface CallerKeys {
  /** What a key may do; undefined unless it is active. */
  principalOf(keyId: string): Principal | undefined;
}

/** Makes calls for the admin plane, as any key or as none. */
export interface Caller extends CallerKeys {
  readonly plane: Plane;
}

/** @param makePlane a data plane that asks this for the caller. */
export function createCaller(
  keys: CallerKeys,
  makePlane: (authenticator: Pick<AuthenticationDeps, 'authenticate' | 'refreshKey'>) => Plane,
): Caller {
  const principalOf = (id: string): Principal | undefined =>
    id === playgroundKeyId ? playgroundPrincipal : keys.principalOf(id);
  // `play` puts the id of the key where clients send the key.
  const authenticate = (id = ''): Principal => {
    const principal = principalOf(id);
    if (principal !== undefined) return principal;
    throw new GatewayError('unauthenticated', 'The key that this call was made as is not active.');
  };
  return { principalOf, plane: makePlane({ authenticate, refreshKey: () => undefined }) };
}

export function isPlayground(url: string): boolean {
  return url.startsWith(`${prefix}/`);
}

/** Makes the playground's call. Resolves as `callAs`. */
export function play(
  playground: Caller,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<AdminAnswer | undefined> {
  const { pathname } = new URL(request.url ?? '', 'http://gateway');
  return callAs(playground, request, response, `/v1${pathname.slice(prefix.length)}`);
}

/**
 * Has the data plane handle the request under another path; `?key=ID` makes the call as that key, with its scope, limits
 * and budgets. Resolves when it is over, or with what to answer instead of it.
 */
export async function callAs(
  { principalOf, plane }: Caller,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<AdminAnswer | undefined> {
  const { searchParams } = new URL(request.url ?? '', 'http://gateway');
  const keyId = searchParams.get('key') ?? playgroundKeyId;
  if (principalOf(keyId) === undefined) {
    return errorAnswer(404, 'There is no active key with this id to call with.', 'key');
  }
  // What opened the admin plane is none of the data plane's business.
  delete request.headers['x-api-key'];
  delete request.headers.cookie;
  // Kept answers are sealed with a client's secret, and here is none.
  delete request.headers['idempotency-key'];
  request.headers.authorization = keyId;
  Object.assign(request, { url: path });
  await plane.handle(request, response);
  return undefined;
}

/** So that the addresses are described, and what a command gets that asks the store itself. */
export function playgroundRoutes(): readonly AdminRoute[] {
  return generatingEndpoints(clientDialects).map((endpoint) => ({
    method: 'POST',
    path: `${prefix}/${endpoint}`,
    about: {
      summary: `Call POST /v1/${endpoint} as the playground does: answers and errors are those of the data plane.`,
      query: z.strictObject({
        key: z.string().optional().describe('Id of the key to call as. Default: none, no limits.'),
      }),
      body: z.looseObject({ model: z.string() }),
      answer: z.looseObject({}),
    },
    run: () => errorAnswer(503, 'No gateway runs here that could make a call.'),
  }));
}
