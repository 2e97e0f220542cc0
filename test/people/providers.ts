/** Providers of identities on loopback: the certified `oidc-provider`, and one that says what a test makes it say. */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import type { JsonObject } from '../../src/json/value.ts';

/** The gateway at these providers. */
export const client = { id: 'model-gateway', secret: 'a-secret-of-the-client-0123456789abcdef' };

/** Of a provider that lies. */
export const accessToken = 'an-access-token-that-nobody-may-log';

/** A test, or what ends with several. */
interface Ending {
  after(end: () => void): void;
}

/** Listens until the test ends. @returns its origin */
export async function serve(
  t: Ending,
  listener: RequestListener,
  host = '127.0.0.1',
): Promise<string> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

/** The real provider, whose accounts are the names of their only group. */
export async function realProvider(
  t: Ending,
  callback: string,
  host = '127.0.0.1',
): Promise<string> {
  let handle: RequestListener = () => undefined;
  const issuer = await serve(t, (request, response) => handle(request, response), host);
  const provider = new Provider(issuer, {
    clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [callback] }],
    claims: { openid: ['sub'], profile: ['name', 'groups'] },
    cookies: { keys: ['cookie-key'] },
    findAccount: async (_context: unknown, id: string) => ({
      accountId: id,
      claims: async () => ({ sub: id, name: `Name of ${id}`, groups: [id] }),
    }),
  });
  handle = provider.callback();
  return issuer;
}

export interface LyingProvider {
  readonly issuer: string;
  /** Of the sign-in whose token is asked for next. */
  nonceIs(nonce: string): void;
}

/**
 * A provider whose ID token is made by the test.
 * @param userinfo what it says of the person besides; absent: it has no address for that
 */
export async function lyingProvider(
  t: Ending,
  token: (claims: JsonObject, key: KeyObject) => string,
  userinfo?: JsonObject,
): Promise<LyingProvider> {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  let nonce = '';
  let issuer = '';
  issuer = await serve(t, (request, response) => {
    const now = Math.floor(Date.now() / 1000);
    const answers: { readonly [path: string]: () => unknown } = {
      '/.well-known/openid-configuration': () => ({
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        ...(userinfo === undefined ? {} : { userinfo_endpoint: `${issuer}/userinfo` }),
        response_types_supported: ['code'],
        id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'],
      }),
      '/jwks': () => ({
        keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k', use: 'sig', alg: 'RS256' }],
      }),
      '/userinfo': () => userinfo,
      '/token': () => ({
        access_token: accessToken,
        token_type: 'Bearer',
        id_token: token(
          {
            iss: issuer,
            aud: client.id,
            sub: 'ana',
            name: 'Ana',
            groups: ['admins'],
            nonce,
            iat: now,
            exp: now + 300,
          },
          privateKey,
        ),
      }),
    };
    const body = answers[request.url ?? '']?.() ?? {};
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  return {
    issuer,
    nonceIs: (text) => {
      nonce = text;
    },
  };
}

/** A part of a JWT. */
export function part(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

export function signed(claims: JsonObject, key: KeyObject, header: JsonObject = {}): string {
  const text = `${part({ alg: 'RS256', kid: 'k', ...header })}.${part(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
}
