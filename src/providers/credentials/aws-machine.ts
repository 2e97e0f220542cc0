/**
 * Keys of the role that a container or an instance has, by hand: each is a small request or three. AWS's library follows
 * the proxy of the environment, and waits without end for a service that is slow (decision 0057).
 */
import { readFile } from 'node:fs/promises';
import type { Environment } from '../../core/cloud.ts';
import { askBusy, messageOf, redacted } from './token-answer.ts';
import { isLoopback, type TokenAnswer, type TokenRequest } from './token-request.ts';

/** As the services and AWS's library give them. */
export interface GivenKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

/** A service of the machine answers at once or is not there. */
const timeoutMs = 3000;
const tries = 3;
const maxSaid = 300;

function set(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}

// The container: ECS, and EKS Pod Identity.

const relativeUri = 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI';
const fullUri = 'AWS_CONTAINER_CREDENTIALS_FULL_URI';
const containerHost = 'http://169.254.170.2';
const containerHosts: ReadonlySet<string> = new Set([
  '169.254.170.2',
  '169.254.170.23',
  '[fd00:ec2::23]',
]);

/** What is missing for `auth: container`, or wrong, in words that follow `auth`; undefined when nothing is. */
export function containerProblem(env: Environment): string | undefined {
  if (set(env, relativeUri) === undefined && set(env, fullUri) === undefined) {
    return `needs ${relativeUri} or ${fullUri}, which ECS and EKS set`;
  }
  if (containerUrl(env) !== undefined) return undefined;
  const name = set(env, relativeUri) === undefined ? fullUri : relativeUri;
  return `has an ${name} that is neither an https:// address nor one of this machine`;
}

function containerUrl(env: Environment): URL | undefined {
  const path = set(env, relativeUri);
  if (path !== undefined) {
    const url = URL.parse(`${containerHost}${path}`);
    // `@evil.example/` would make the address a user name.
    return url?.origin === containerHost && url.username === '' ? url : undefined;
  }
  const url = URL.parse(set(env, fullUri) ?? '');
  return url !== null && mayBeAsked(url, containerHosts) ? url : undefined;
}

/** Keys go over HTTPS, to this machine, or to the addresses of AWS's services on it. */
function mayBeAsked(url: URL, hosts: ReadonlySet<string>): boolean {
  if (url.protocol === 'https:') return true;
  return url.protocol === 'http:' && (isLoopback(url) || hosts.has(url.hostname));
}

/** @throws Error that says which address gave no keys, and why */
export async function containerKeys(env: Environment): Promise<GivenKeys> {
  const url = containerUrl(env);
  if (url === undefined) throw new Error(`auth: container ${containerProblem(env) ?? ''}`);
  const token = await containerToken(env);
  const headers = token === undefined ? {} : { authorization: token };
  return keysIn(await asked({ url, headers }, token), url);
}

/** The authorization of a container; its file is read anew, since it is replaced before its content ends. */
async function containerToken(env: Environment): Promise<string | undefined> {
  const file = set(env, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE');
  if (file === undefined) return set(env, 'AWS_CONTAINER_AUTHORIZATION_TOKEN');
  return (await readFile(file, 'utf8')).trim();
}

// The instance: IMDSv2. The older version, which requests no token, is not used.

const instanceVariable = 'AWS_EC2_METADATA_SERVICE_ENDPOINT';
const instanceHosts: ReadonlySet<string> = new Set(['169.254.169.254', '[fd00:ec2::254]']);
const rolePath = '/latest/meta-data/iam/security-credentials/';

/** What is wrong for `auth: instance`, in words that follow `auth`; undefined when nothing is. */
export function instanceProblem(env: Environment): string | undefined {
  if (set(env, 'AWS_EC2_METADATA_DISABLED')?.toLowerCase() === 'true') {
    return 'is instance, but AWS_EC2_METADATA_DISABLED switches the service off';
  }
  if (instanceUrl(env) !== undefined) return undefined;
  return `has an ${instanceVariable} that is neither an https:// address nor one of this machine`;
}

function instanceUrl(env: Environment): URL | undefined {
  const isSix = set(env, 'AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE')?.toLowerCase() === 'ipv6';
  const usual = isSix ? 'http://[fd00:ec2::254]' : 'http://169.254.169.254';
  const url = URL.parse(set(env, instanceVariable) ?? usual);
  return url !== null && mayBeAsked(url, instanceHosts) ? url : undefined;
}

/** @throws Error that says which address gave no keys, and why */
export async function instanceKeys(env: Environment): Promise<GivenKeys> {
  const base = instanceUrl(env);
  if (base === undefined) throw new Error(`auth: instance ${instanceProblem(env) ?? ''}`);
  const at = (path: string): URL => new URL(path, base);
  const token = await asked({
    url: at('/latest/api/token'),
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' },
  });
  const letIn = token.text.trim();
  const headers = { 'x-aws-ec2-metadata-token': letIn };
  const named = await asked({ url: at(rolePath), headers }, letIn);
  const [role = ''] = named.text.trim().split('\n');
  const url = at(`${rolePath}${encodeURIComponent(role.trim())}`);
  if (role.trim() === '') throw new Error(`${placeOf(url)} names no role`);
  return keysIn(await asked({ url, headers }, letIn), url);
}

/** @param secret no text may quote it. @throws Error where the answer is not a 200 */
async function asked(
  request: Pick<TokenRequest, 'url' | 'method' | 'headers'>,
  secret?: string,
): Promise<TokenAnswer> {
  const place = placeOf(request.url);
  const answer = await askBusy({ ...request, timeoutMs }, tries).catch((error: unknown) => {
    throw new Error(`${place}: ${messageOf(error)}`, { cause: error });
  });
  const { status, body } = answer;
  if (status === 200) return answer;
  if (status >= 300 && status < 400) throw new Error(`${place}: it answered with a redirect`);
  const said = body['message'] ?? body['Message'];
  // A secret is replaced before the text is cut: the cut may lie within it.
  const words = typeof said === 'string' ? `: ${redacted(said, [secret]).slice(0, maxSaid)}` : '';
  throw new Error(`${place}: it answered ${status}${words}`);
}

function placeOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`;
}

function keysIn({ body }: TokenAnswer, url: URL): GivenKeys {
  const keys = body;
  const { AccessKeyId: id, SecretAccessKey: secret, Token: token, Expiration: end } = keys;
  const expiration = new Date(typeof end === 'string' ? end : Number.NaN);
  const isWhole = typeof id === 'string' && typeof secret === 'string' && typeof token === 'string';
  if (!isWhole || id === '' || secret === '' || Number.isNaN(expiration.getTime())) {
    const code = typeof keys['Code'] === 'string' ? ` (${keys['Code'].slice(0, maxSaid)})` : '';
    throw new Error(`${placeOf(url)}: its answer holds no keys${code}`);
  }
  return { accessKeyId: id, secretAccessKey: secret, sessionToken: token, expiration };
}
