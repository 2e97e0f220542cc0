/**
 * Google's token servers on loopback, as strict as the real ones: OAuth, security token service, IAM and the metadata
 * server. What does not prove itself is refused as Google refuses it, and each grant gives a token of its own.
 */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tryParseObject } from '../../src/json/parse.ts';
import type { JsonObject } from '../../src/json/value.ts';

const scope = 'https://www.googleapis.com/auth/cloud-platform';
export const account = 'gateway@acme-ml.iam.gserviceaccount.com';
export const audience =
  '//iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/ci/providers/own';
export const refreshToken = '1//refresh-canary-0123456789';
export const clientSecret = 'GOCSPX-secret-canary-01';
export const subject = 'subject.canary.token';

const { privateKey, publicKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
export { privateKey };

interface Reply {
  readonly status: number;
  readonly body: JsonObject | string;
  readonly headers?: { readonly [name: string]: string };
}

interface Ask {
  readonly request: IncomingMessage;
  readonly body: string;
}

export class GoogleTokens {
  /** `POST /token`, in order. */
  readonly asks: string[] = [];
  readonly #server: Server;
  readonly #issued = new Set<string>();
  /** Seconds that tokens live. */
  lifeS = 3599;
  /** Answers instead of what is asked, each once. */
  readonly instead: Reply[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () =>
        this.#answer({ request, body: Buffer.concat(pieces).toString() }, response),
      );
    });
  }

  static async start(): Promise<GoogleTokens> {
    const tokens = new GoogleTokens();
    await new Promise<void>((resolve) => tokens.#server.listen(0, '127.0.0.1', resolve));
    return tokens;
  }

  /** `127.0.0.1:port` */
  get host(): string {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('not listening');
    return `127.0.0.1:${address.port}`;
  }

  get url(): string {
    return `http://${this.host}`;
  }

  /** A token that this server gave out. */
  issued(authorization: string | undefined): boolean {
    return this.#issued.has(authorization?.replace(/^Bearer /, '') ?? '');
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  // The files that Google's own tools write.

  serviceAccountFile(more: JsonObject = {}): string {
    return JSON.stringify({
      type: 'service_account',
      project_id: 'acme-ml',
      private_key_id: 'key-1',
      private_key: privateKey,
      client_email: account,
      client_id: '1',
      token_uri: `${this.url}/token`,
      universe_domain: 'googleapis.com',
      ...more,
    });
  }

  userFile(more: JsonObject = {}): string {
    return JSON.stringify({
      type: 'authorized_user',
      account: '',
      client_id: 'app.apps.googleusercontent.com',
      client_secret: clientSecret,
      refresh_token: refreshToken,
      token_uri: `${this.url}/token`,
      universe_domain: 'googleapis.com',
      ...more,
    });
  }

  poolFile(source: JsonObject, more: JsonObject = {}): string {
    return JSON.stringify({
      type: 'external_account',
      audience,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      token_url: `${this.url}/v1/token`,
      credential_source: source,
      universe_domain: 'googleapis.com',
      ...more,
    });
  }

  get impersonationUrl(): string {
    return `${this.url}/v1/projects/-/serviceAccounts/${account}:generateAccessToken`;
  }

  #answer(ask: Ask, response: ServerResponse): void {
    const { method = '', url = '' } = ask.request;
    this.asks.push(`${method} ${url}`);
    const { status, body, headers } = this.instead.shift() ?? this.#reply(ask);
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  }

  #reply(ask: Ask): Reply {
    const { method, url = '', headers } = ask.request;
    const route = `${method} ${url}`;
    if (route === `GET /subject`) {
      if (headers['x-source'] !== 'own') return { status: 403, body: {} };
      return { status: 200, body: { access: subject } };
    }
    if (url.startsWith('/computeMetadata/')) return this.#metadata(route, headers);
    if (route === 'POST /token') return this.#oauth(ask);
    if (route === 'POST /v1/token') return this.#exchange(ask);
    if (`${this.url}${url}` === this.impersonationUrl) return this.#impersonate(ask);
    return { status: 404, body: { error: { code: 404, message: 'Not found.' } } };
  }

  #metadata(route: string, headers: IncomingMessage['headers']): Reply {
    const flavor = { 'metadata-flavor': 'Google' };
    const path = `/computeMetadata/v1/instance/service-accounts/default/token?scopes=${scope}`;
    if (headers['metadata-flavor'] !== 'Google' || headers['x-forwarded-for'] !== undefined) {
      return { status: 403, body: 'Missing Metadata-Flavor:Google header.', headers: flavor };
    }
    if (route !== `GET ${path}`) return { status: 404, body: 'not found', headers: flavor };
    return { ...this.#granted('metadata'), headers: flavor };
  }

  #oauth({ request, body }: Ask): Reply {
    if (request.headers['content-type'] !== 'application/x-www-form-urlencoded') {
      return refused('invalid_request', 'Bad content type.');
    }
    const { grant_type: grant, ...form } = Object.fromEntries(new URLSearchParams(body));
    if (grant === 'refresh_token') {
      const wanted = {
        client_id: 'app.apps.googleusercontent.com',
        client_secret: clientSecret,
        refresh_token: refreshToken,
      };
      if (!same(form, wanted))
        return refused('invalid_grant', 'Token has been expired or revoked.');
      return this.#granted('user');
    }
    if (grant !== 'urn:ietf:params:oauth:grant-type:jwt-bearer') {
      return refused('unsupported_grant_type', `Invalid grant_type: ${grant}`);
    }
    const wrong = assertionProblem(form['assertion'] ?? '', `${this.url}/token`);
    return wrong === undefined ? this.#granted('account') : refused('invalid_grant', wrong);
  }

  #exchange({ request, body }: Ask): Reply {
    const form = Object.fromEntries(new URLSearchParams(body));
    const wanted = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience,
      scope,
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      subject_token: subject,
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    };
    if (request.headers.authorization !== undefined || !same(form, wanted)) {
      const given = form['subject_token'];
      return refused('invalid_grant', `Unable to verify the ID Token ${given} signature.`);
    }
    return this.#granted('federated');
  }

  #impersonate({ request, body }: Ask): Reply {
    const { authorization, 'content-type': type } = request.headers;
    const federated = authorization?.startsWith('Bearer ya29.federated') === true;
    if (!federated || !this.issued(authorization))
      return denied('Request is missing a credential.');
    const wanted = { scope: [scope], lifetime: '1800s' };
    if (type !== 'application/json' || body !== JSON.stringify(wanted)) {
      return denied(`Permission 'iam.serviceAccounts.getAccessToken' denied for ${authorization}.`);
    }
    const { access_token: accessToken = '' } = this.#granted('impersonated').body as JsonObject;
    const expireTime = new Date(Date.now() + this.lifeS * 1000).toISOString();
    return { status: 200, body: { accessToken, expireTime } };
  }

  #granted(kind: string): Reply {
    const value = `ya29.${kind}-canary-${this.#issued.size}`;
    this.#issued.add(value);
    const body = { access_token: value, expires_in: this.lifeS, token_type: 'Bearer' };
    return { status: 200, body };
  }
}

function same(one: object, other: object): boolean {
  const text = (of: object): string => JSON.stringify(Object.entries(of).toSorted());
  return text(one) === text(other);
}

function refused(error: string, description: string): Reply {
  return { status: 400, body: { error, error_description: description } };
}

function denied(message: string): Reply {
  return { status: 403, body: { error: { code: 403, message, status: 'PERMISSION_DENIED' } } };
}

/** RFC 7523 as Google checks it; undefined where nothing is wrong. */
function assertionProblem(assertion: string, url: string): string | undefined {
  const [head = '', claims = '', signature = '', ...rest] = assertion.split('.');
  if (rest.length > 0) return 'Invalid JWT: not three parts.';
  const key = createPublicKey(publicKey);
  const signed = Buffer.from(`${head}.${claims}`);
  if (!verify('RSA-SHA256', signed, key, Buffer.from(signature, 'base64url'))) {
    return 'Invalid JWT Signature.';
  }
  const { alg, typ = 'JWT' } = read(head);
  if (alg !== 'RS256' || typ !== 'JWT') return 'Invalid JWT header.';
  const { iss, aud, scope: asked, iat, exp, ...others } = read(claims);
  if (iss !== account) return 'Invalid issuer: Not a valid email or user ID.';
  if (aud !== url) return `Invalid JWT: Failed audience check. The right audience is ${url}.`;
  if (asked !== scope) return 'Invalid scope.';
  if (Object.keys(others).length > 0) return `Unknown claims: ${Object.keys(others).join()}.`;
  const nowS = Date.now() / 1000;
  const young = typeof iat === 'number' && Math.abs(nowS - iat) < 300;
  if (!young || typeof exp !== 'number' || exp <= nowS || exp - iat > 3600) {
    return 'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.';
  }
  return undefined;
}

function read(part: string): JsonObject {
  return tryParseObject(Buffer.from(part, 'base64url').toString()) ?? {};
}
