/**
 * Tokens of Microsoft Entra, by hand: each is one HTTP call. For an app with a secret, a certificate or a federated
 * token (workload identity), and for the identity of the machine (managed identity).
 */
import { createHash, createPrivateKey, randomUUID, sign, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { CloudSettings, Environment } from '../../core/cloud.ts';
import type { Clock } from '../../core/runtime.ts';
import { messageOf, tokenFrom } from './token-answer.ts';
import { credentialError, type TokenSource } from './token-cache.ts';
import { askForToken, isLoopback, type TokenAnswer } from './token-request.ts';

export interface EntraOptions {
  readonly settings: CloudSettings;
  readonly env: Environment;
  /** `https://cognitiveservices.azure.com/.default` */
  readonly scope: string;
  readonly clock: Pick<Clock, 'wall'>;
}

/** The proof of an app: a secret, a certificate or a federated token. */
interface AppProof {
  readonly description: string;
  /** Distinguishes two proofs without revealing them. */
  readonly fingerprint: string;
  /** The members of the form. @throws Error where a file cannot be read */
  form(audience: string): Promise<{ readonly [name: string]: string }>;
}

const authorities: ReadonlySet<string> = new Set([
  'login.microsoftonline.com',
  'login.microsoftonline.us',
  'login.chinacloudapi.cn',
  'login.partner.microsoftonline.cn',
]);
const nameForm = /^[A-Za-z0-9.-]+$/;
const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const assertionLifeS = 600;

/** The value of a setting or of its variable; an empty variable is none. */
function given(value: string | undefined, env: Environment, name: string): string | undefined {
  if (value !== undefined) return value;
  return env[name] === '' ? undefined : env[name];
}

/** The first problem of `auth: entra`; undefined if there is none. */
export function entraProblem(settings: CloudSettings, env: Environment): string | undefined {
  const tenant = given(settings.tenantId, env, 'AZURE_TENANT_ID');
  const client = given(settings.clientId, env, 'AZURE_CLIENT_ID');
  if (tenant === undefined) return 'needs tenant_id or AZURE_TENANT_ID';
  if (client === undefined) return 'needs client_id or AZURE_CLIENT_ID';
  if (!nameForm.test(tenant)) return 'has a tenant that is neither an id nor a domain';
  if (authorityOf(env) === undefined) {
    return 'has an AZURE_AUTHORITY_HOST that is none of the login hosts of Microsoft';
  }
  if (proofOf(settings, env) === undefined) {
    return 'needs client_secret or AZURE_CLIENT_SECRET, AZURE_CLIENT_CERTIFICATE_PATH, or AZURE_FEDERATED_TOKEN_FILE';
  }
  return undefined;
}

/** Tokens for an app of Entra. @throws Error where `entraProblem` finds one */
export function entraApp({ settings, env, scope, clock }: EntraOptions): TokenSource {
  const tenant = given(settings.tenantId, env, 'AZURE_TENANT_ID') ?? '';
  const client = given(settings.clientId, env, 'AZURE_CLIENT_ID') ?? '';
  const proof = proofOf(settings, env, { client, clock });
  const authority = authorityOf(env);
  if (proof === undefined || authority === undefined) {
    throw new Error(`auth: entra ${entraProblem(settings, env) ?? 'is incomplete'}`);
  }
  const url = new URL(`/${tenant}/oauth2/v2.0/token`, authority);
  const description = `Entra app ${client}, ${proof.description}`;
  return {
    identity: JSON.stringify(['entra', url.href, client, scope, proof.fingerprint]),
    description,
    fetch: async () => {
      const form = await proof.form(url.href).catch((error: unknown) => {
        throw credentialError(`No token (${description}): ${messageOf(error)}.`);
      });
      const secrets = [form['client_secret'], form['client_assertion']];
      const advice = 'Check the app in Entra.';
      const send = (): Promise<TokenAnswer> =>
        askForToken({ url, form: { ...form, client_id: client, scope } });
      return tokenFrom(send, { description, url, clock, secrets, advice });
    },
  };
}

function authorityOf(env: Environment): URL | undefined {
  const text = given(undefined, env, 'AZURE_AUTHORITY_HOST') ?? 'https://login.microsoftonline.com';
  const url = URL.parse(text.includes('://') ? text : `https://${text}`);
  if (url === null) return undefined;
  const known = url.protocol === 'https:' && authorities.has(url.host);
  return known || (url.protocol === 'http:' && isLoopback(url)) ? url : undefined;
}

interface Signing {
  readonly client: string;
  readonly clock: Pick<Clock, 'wall'>;
}

function proofOf(
  { clientSecret }: CloudSettings,
  env: Environment,
  signing?: Signing,
): AppProof | undefined {
  const secret = given(clientSecret?.reveal(), env, 'AZURE_CLIENT_SECRET');
  if (secret !== undefined) {
    const form = { grant_type: 'client_credentials', client_secret: secret };
    const fingerprint = createHash('sha256').update(secret).digest('hex');
    return { description: 'client secret', fingerprint, form: () => Promise.resolve(form) };
  }
  const certificate = given(undefined, env, 'AZURE_CLIENT_CERTIFICATE_PATH');
  const file = certificate ?? given(undefined, env, 'AZURE_FEDERATED_TOKEN_FILE');
  if (file === undefined) return undefined;
  const description = certificate === undefined ? `token of ${file}` : `certificate ${file}`;
  return {
    description,
    fingerprint: file,
    // Read anew each time, since the file is replaced before its content expires.
    form: async (audience) => {
      const text = await readFile(file, 'utf8');
      const assertion =
        certificate === undefined || signing === undefined
          ? text.trim()
          : signedAssertion(text, audience, signing);
      return {
        grant_type: 'client_credentials',
        client_assertion_type: assertionType,
        client_assertion: assertion,
      };
    },
  };
}

/** The app's own assertion: a JWT signed with the private key that a PEM file has with its certificate (RFC 7523). */
function signedAssertion(pem: string, audience: string, { client, clock }: Signing): string {
  const { raw } = new X509Certificate(pem);
  const thumbprint = createHash('sha256').update(raw).digest('base64url');
  const now = Math.floor(clock.wall() / 1000);
  const claims = {
    aud: audience,
    iss: client,
    sub: client,
    jti: randomUUID(),
    nbf: now,
    exp: now + assertionLifeS,
  };
  const head = { alg: 'RS256', typ: 'JWT', 'x5t#S256': thumbprint };
  const signed = [head, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== 'rsa') throw new Error('its private key is not RSA');
  const signature = sign('RSA-SHA256', Buffer.from(signed), key);
  return `${signed}.${signature.toString('base64url')}`;
}

const machineAddress = 'http://169.254.169.254';
/** The service of a machine answers at once or is not there. */
const machineTimeoutMs = 3000;
const machineTries = 3;

/** The problem of the environment's addresses for `auth: managed_identity`. */
export function machineProblem(env: Environment): string | undefined {
  for (const name of ['IDENTITY_ENDPOINT', 'AZURE_POD_IDENTITY_AUTHORITY_HOST']) {
    const text = given(undefined, env, name);
    if (text !== undefined && !isOfMachine(text)) {
      return `has an ${name} that is neither an https:// address nor one of this machine`;
    }
  }
  return undefined;
}

/** Services of a machine of Azure have link-local addresses. */
function isOfMachine(text: string): boolean {
  const url = URL.parse(text);
  if (url === null) return false;
  const isPlain = url.protocol === 'http:';
  return (
    url.protocol === 'https:' ||
    (isPlain && (isLoopback(url) || /^169\.254\.\d+\.\d+$/.test(url.hostname)))
  );
}

/**
 * Tokens for the identity of the machine: of App Service and Container Apps where IDENTITY_ENDPOINT is set, else of a
 * virtual machine.
 */
export function entraMachine({ settings, env, scope, clock }: EntraOptions): TokenSource {
  const client = given(settings.clientId, env, 'AZURE_CLIENT_ID');
  const service = given(undefined, env, 'IDENTITY_ENDPOINT');
  const host = given(undefined, env, 'AZURE_POD_IDENTITY_AUTHORITY_HOST') ?? machineAddress;
  const url = new URL(service ?? new URL('/metadata/identity/oauth2/token', host));
  url.searchParams.set('api-version', service === undefined ? '2018-02-01' : '2019-08-01');
  url.searchParams.set('resource', scope.replace(/\/\.default$/, ''));
  if (client !== undefined) url.searchParams.set('client_id', client);
  const headers: { readonly [name: string]: string } =
    service === undefined
      ? { metadata: 'true' }
      : { 'x-identity-header': env['IDENTITY_HEADER'] ?? '' };
  const description = `managed identity${client === undefined ? '' : ` ${client}`}`;
  const advice =
    'Is an identity assigned to this machine, and does it have a role on the resource? Outside of Azure use auth: entra or api_key.';
  const secrets = [env['IDENTITY_HEADER']];
  return {
    identity: JSON.stringify(['machine', url.href]),
    description,
    fetch: () =>
      tokenFrom(() => askForToken({ url, headers, timeoutMs: machineTimeoutMs }), {
        description,
        url,
        clock,
        secrets,
        advice,
        tries: machineTries,
      }),
  };
}
