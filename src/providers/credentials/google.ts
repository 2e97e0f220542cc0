/**
 * Tokens of Google: of the files that Google's own tools write, and of the metadata server of a machine (decision 0056).
 * `google-auth-library` makes the requests; it is loaded with the first token, and it never sends anything itself.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { gaxios, IdentityPoolClientOptions } from 'google-auth-library';
import type { CloudSettings, Environment } from '../../core/cloud.ts';
import type { GatewayError } from '../../core/errors.ts';
import type { Clock } from '../../core/runtime.ts';
import { tryParseObject } from '../../json/parse.ts';
import { isObject, type Json, type JsonObject } from '../../json/value.ts';
import { messageOf, tokenFrom } from './token-answer.ts';
import { credentialError, type Token, type TokenSource } from './token-cache.ts';
import { askForToken, isLoopback, type TokenAnswer, type TokenRequest } from './token-request.ts';

const scope = 'https://www.googleapis.com/auth/cloud-platform';
const role = 'the role Vertex AI User (roles/aiplatform.user)';
const tokenLifeS = 3600;

type WallClock = Pick<Clock, 'wall'>;

/** The file of `auth: file`: that of the config, of the environment, or the one that gcloud writes. */
export function googleFile(
  { credentialsFile }: CloudSettings,
  env: Environment,
): string | undefined {
  const named = credentialsFile ?? env['GOOGLE_APPLICATION_CREDENTIALS'];
  if (named !== undefined && named !== '') return named;
  const { CLOUDSDK_CONFIG: own, APPDATA: roaming, HOME: home = homedir() } = env;
  const folder =
    own ?? (roaming === undefined ? join(home, '.config', 'gcloud') : join(roaming, 'gcloud'));
  const file = join(folder, 'application_default_credentials.json');
  return existsSync(file) ? file : undefined;
}

/** Tokens of a file, which is read anew for each: it may be replaced. */
export function googleFileTokens(file: string, clock: WallClock): TokenSource {
  return {
    identity: JSON.stringify(['google', file]),
    description: `file ${file}`,
    fetch: async () => {
      const text = await readFile(file, 'utf8').catch((error: unknown) => {
        throw problemOf(file, `cannot be read (${messageOf(error)})`);
      });
      const credential = tryParseObject(text);
      if (credential === undefined) throw problemOf(file, 'is not a JSON object');
      const kind = String(credential['type']);
      const from = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
      if (from === undefined) {
        const known = Object.keys(kinds).join(', ');
        throw problemOf(file, `has the type ${JSON.stringify(kind)}; known are ${known}`);
      }
      return from({ file, credential, clock });
    },
  };
}

function problemOf(file: string, problem: string): GatewayError {
  return credentialError(
    `No token (file ${file}): it ${problem}. Use the key file of a service account, the file of a workload identity pool, or what "gcloud auth application-default login" writes.`,
  );
}

interface CredentialFile {
  readonly file: string;
  readonly credential: JsonObject;
  readonly clock: WallClock;
}

const kinds: { readonly [type: string]: (of: CredentialFile) => Promise<Token> } = {
  service_account: serviceAccount,
  authorized_user: authorizedUser,
  external_account: externalAccount,
};

async function serviceAccount(of: CredentialFile): Promise<Token> {
  const email = textIn(of, 'client_email');
  const key = textIn(of, 'private_key');
  const url = addressIn(of, 'token_uri', 'https://oauth2.googleapis.com/token');
  const { JWT, gaxios: http } = await import('google-auth-library');
  const send = (): Promise<TokenAnswer> =>
    sentBy(url, (options) => {
      const transporter = new http.Gaxios(options);
      // The library names its own address as the audience, whatever the file says.
      const additionalClaims = { aud: url.href };
      const own = { transporter, useAuthRequestParameters: false };
      return new JWT({ email, key, scopes: [scope], additionalClaims, ...own }).authorize();
    });
  const advice = `Is the key of ${of.file} still valid at Google, and does the account have ${role}?`;
  const description = `service account ${email} of ${of.file}`;
  return tokenFrom(send, { description, url, clock: of.clock, advice, secrets: [key] });
}

async function authorizedUser(of: CredentialFile): Promise<Token> {
  const clientId = textIn(of, 'client_id');
  const clientSecret = textIn(of, 'client_secret');
  const refreshToken = textIn(of, 'refresh_token');
  const url = addressIn(of, 'token_uri', 'https://oauth2.googleapis.com/token');
  const { UserRefreshClient, gaxios: http } = await import('google-auth-library');
  const send = (): Promise<TokenAnswer> =>
    sentBy(url, (options) => {
      const transporter = new http.Gaxios(options);
      const own = { transporter, useAuthRequestParameters: false };
      return new UserRefreshClient({
        clientId,
        clientSecret,
        refreshToken,
        ...own,
      }).refreshAccessToken();
    });
  const secrets = [clientSecret, refreshToken];
  const advice = `Log in again with "gcloud auth application-default login"; the user needs ${role}.`;
  return tokenFrom(send, {
    description: `user of ${of.file}`,
    url,
    clock: of.clock,
    advice,
    secrets,
  });
}

/** Workload identity federation: a token of another issuer is exchanged, then perhaps one of a service account requested. */
async function externalAccount(of: CredentialFile): Promise<Token> {
  const { credential, file, clock } = of;
  const audience = textIn(of, 'audience');
  const url = addressIn(of, 'token_url', 'https://sts.googleapis.com/v1/token');
  const impersonated = credential['service_account_impersonation_url'];
  const account =
    impersonated === undefined ? undefined : addressIn(of, 'service_account_impersonation_url');
  const subject = await subjectToken(of);
  const description = `workload identity of ${file}`;
  const user = credential['workforce_pool_user_project'];
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience,
    scope,
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token: subject,
    subject_token_type: textIn(of, 'subject_token_type'),
    ...(typeof user === 'string' ? { options: JSON.stringify({ userProject: user }) } : {}),
  };
  const advice = `Does the pool's provider ${audience} accept the issuer and the audience of the token?${account === undefined ? ` The principal needs ${role}.` : ''}`;
  const exchanged = await tokenFrom(
    () => askForToken({ url, form, headers: clientHeaders(credential) }),
    {
      description,
      url,
      clock,
      advice,
      secrets: [subject, textOf(credential['client_secret'])],
    },
  );
  if (account === undefined) return exchanged;
  const bearer = exchanged.value.reveal();
  return tokenFrom(() => impersonate(account, bearer, credential), {
    description: `${description}, as ${account.pathname.split('/').at(-1) ?? ''}`,
    url: account,
    clock,
    secrets: [subject, bearer],
    advice: `Does the principal have the role Workload Identity User (roles/iam.workloadIdentityUser) on that account, and the account ${role}?`,
  });
}

/** Of a workforce pool, whose client proves itself. */
function clientHeaders({ client_id: id, client_secret: secret }: JsonObject): {
  readonly [name: string]: string;
} {
  if (typeof id !== 'string') return {};
  const pair = Buffer.from(`${id}:${textOf(secret) ?? ''}`).toString('base64');
  return { authorization: `Basic ${pair}` };
}

async function impersonate(url: URL, bearer: string, credential: JsonObject): Promise<TokenAnswer> {
  const wanted = credential['service_account_impersonation'];
  const seconds = Number(
    isObject(wanted) ? (wanted['token_lifetime_seconds'] ?? tokenLifeS) : tokenLifeS,
  );
  const answer = await askForToken({
    url,
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    text: JSON.stringify({ scope: [scope], lifetime: `${seconds}s` }),
  });
  const { accessToken, expireTime } = answer.body;
  if (accessToken === undefined) return answer;
  const until = Date.parse(String(expireTime)) / 1000;
  return { ...answer, body: { access_token: accessToken, expires_on: until } };
}

/** The token of the other issuer, from where the file says. @throws GatewayError `upstream_auth` */
async function subjectToken(of: CredentialFile): Promise<string> {
  const { credential, file } = of;
  const source = credential['credential_source'];
  if (!isObject(source) || source['certificate'] !== undefined) {
    throw problemOf(file, 'has no credential_source with a file, a url, an executable or AWS');
  }
  const { ExternalAccountClient, gaxios: http } = await import('google-auth-library');
  const transporter = new http.Gaxios(through(askSource));
  // The library checks the members that it reads.
  const options = {
    ...credential,
    transporter,
    useAuthRequestParameters: false,
  } as unknown as IdentityPoolClientOptions;
  try {
    const token = await ExternalAccountClient.fromJSON(options)?.retrieveSubjectToken();
    if (token === undefined || token === '') throw new Error('it is empty');
    return token.trim();
  } catch (error) {
    throw credentialError(
      `No token (workload identity of ${file}): the token of its credential_source cannot be had: ${messageOf(error)}. Does the source exist, and may the gateway read it?`,
    );
  }
}

/** A text that the file must have. @throws GatewayError `upstream_auth` that names the member, never its value */
function textIn({ file, credential }: CredentialFile, member: string): string {
  const value = textOf(credential[member]);
  if (value === undefined) throw problemOf(file, `has no ${member}`);
  return value;
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A forged file must not send an assertion anywhere but to Google. @throws GatewayError as `textIn` */
function addressIn(of: CredentialFile, member: string, otherwise?: string): URL {
  const url = URL.parse(textOf(of.credential[member]) ?? otherwise ?? '');
  const google = url?.protocol === 'https:' && url.host.endsWith('.googleapis.com');
  if (url !== null && (google || (url.protocol === 'http:' && isLoopback(url)))) return url;
  throw problemOf(of.file, `has a ${member} that is no https:// address of googleapis.com`);
}

// How the library sends: by the gateway's own small client, which follows no redirect and asks no proxy.

/** The answer to the one request that a grant of the library makes. */
async function sentBy(
  url: URL,
  grant: (options: gaxios.GaxiosOptions) => Promise<unknown>,
): Promise<TokenAnswer> {
  let answer: TokenAnswer | undefined;
  const sent = through(async (_, request) => {
    answer = await askForToken({ ...request, url });
    return answer;
  });
  try {
    await grant(sent);
  } catch (error) {
    // The message of the server is passed on unchanged.
    if (answer === undefined) throw error;
  }
  if (answer === undefined) throw new Error('nothing was asked');
  return answer;
}

type SentRequest = Omit<TokenRequest, 'url'>;

/** The library repeats nothing: the next fetch does. */
function through(
  send: (url: URL, request: SentRequest) => Promise<TokenAnswer>,
): gaxios.GaxiosOptions {
  return {
    retry: false,
    retryConfig: { retry: 0 },
    fetchImplementation: async (input, init) => {
      const url = new URL(input instanceof Request ? input.url : input);
      const body = init?.body;
      const { status, headers, text } = await send(url, {
        headers: Object.fromEntries(new Headers(init?.headers)),
        ...(init?.method === 'PUT' ? { method: init.method } : {}),
        ...(body instanceof URLSearchParams ? { form: Object.fromEntries(body) } : {}),
        ...(typeof body === 'string' ? { text: body } : {}),
      });
      if (status !== 200) throw new Error(`${url.origin}${url.pathname} answered ${status}`);
      const type = headers['content-type'] ?? 'application/json';
      return new Response(text, { headers: { 'content-type': type } });
    },
  };
}

/** The file of a pool may name the metadata service of another cloud's machine. */
const machineHosts: ReadonlySet<string> = new Set(['169.254.169.254', '[fd00:ec2::254]']);

function askSource(url: URL, request: SentRequest): Promise<TokenAnswer> {
  const { protocol, hostname } = url;
  if (protocol === 'https:' || isLoopback(url) || machineHosts.has(hostname)) {
    return askForToken({ ...request, url });
  }
  return Promise.reject(new Error('its address is neither https:// nor one of this machine'));
}

// The service account of a machine.

const metadataHost = 'metadata.google.internal';
/** It answers at once or is not there. */
const metadataTimeoutMs = 3000;
const metadataTries = 3;

/** What is wrong with the address that the environment names. */
export function metadataProblem(env: Environment): string | undefined {
  return metadataUrl(env) === undefined
    ? 'has a GCE_METADATA_HOST that is no host:port'
    : undefined;
}

function metadataUrl({ GCE_METADATA_HOST: host = '' }: Environment): URL | undefined {
  const url = URL.parse(`http://${host === '' ? metadataHost : host}`);
  if (url === null || url.pathname !== '/') return undefined;
  return new URL(
    `/computeMetadata/v1/instance/service-accounts/default/token?scopes=${scope}`,
    url,
  );
}

/** Tokens of the service account that is attached to the machine. @throws Error where `metadataProblem` finds one */
export function googleMachineTokens(env: Environment, clock: WallClock): TokenSource {
  const url = metadataUrl(env);
  if (url === undefined) throw new Error(`auth: metadata ${metadataProblem(env) ?? ''}`);
  const description = 'service account of the machine';
  const flavor = 'metadata-flavor';
  const send = async (): Promise<TokenAnswer> => {
    const answer = await askForToken({
      url,
      headers: { [flavor]: 'Google' },
      timeoutMs: metadataTimeoutMs,
    });
    if (answer.headers[flavor] === 'Google') return answer;
    throw new Error('what answered is not the metadata server of Google');
  };
  const advice = `Is a service account with the scope cloud-platform attached to this machine, and does it have ${role}? Outside of Google Cloud use auth: file.`;
  return {
    identity: JSON.stringify(['google-machine', url.href]),
    description,
    fetch: () =>
      tokenFrom(send, { description, url, clock, advice, secrets: [], tries: metadataTries }),
  };
}
