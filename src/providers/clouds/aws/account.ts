/** Region and credentials of a declaration, for both services of Bedrock. */
import type { CloudInput, CloudProblem } from '../../../core/cloud.ts';
import type { RequestCredential } from '../../../core/credential.ts';
import { type AwsAuth, keySource, sourceProblem, usualSource } from '../../credentials/aws-keys.ts';
import { AwsSigner } from '../../credentials/aws-signer.ts';
import type { Credentials } from '../../credentials/credentials.ts';
import { isSafe, keyOf, notSafe, set } from '../declaration.ts';
import { isModelId } from './models.ts';
import { profileRegion } from './profile-region.ts';

/** Of a Bedrock API key. */
export const keyVariable = 'AWS_BEARER_TOKEN_BEDROCK';
const regionForm = /^[a-z]{2}(?:-[a-z]{2,12}){1,3}-\d{1,2}$/;

/** Keys of the config for credentials. */
export const credentialKeys = [
  'auth',
  'profile',
  'access_key_id',
  'secret_access_key',
  'session_token',
] as const;
/** Values of `auth`. */
export const auths: ReadonlySet<string> = new Set([
  'bearer',
  'keys',
  'profile',
  'web_identity',
  'container',
  'instance',
]);

/** Betas of `anthropic-beta` that AWS lists for Claude; one unknown name fails a whole request. */
export const claudeBetas: ReadonlySet<string> = new Set([
  'computer-use-2024-10-22',
  'computer-use-2025-01-24',
  'token-efficient-tools-2025-02-19',
  'interleaved-thinking-2025-05-14',
  'output-128k-2025-02-19',
  'dev-full-thinking-2025-05-14',
  'context-1m-2025-08-07',
  'context-management-2025-06-27',
  'effort-2025-11-24',
  'tool-search-tool-2025-10-19',
  'tool-examples-2025-10-29',
]);

export function regionOf(input: CloudInput): string | undefined {
  const { declared, env } = input;
  const named = declared.region ?? set(env, 'AWS_REGION') ?? set(env, 'AWS_DEFAULT_REGION');
  if (named !== undefined || authOf(input) !== 'profile') return named;
  // Clients name models, and each new name asks for it: the file is read once for a declaration.
  if (!ofProfile.has(input)) ofProfile.set(input, profileRegion(declared.cloud, env));
  return ofProfile.get(input);
}

const ofProfile = new WeakMap<CloudInput, string | undefined>();

/** The key of the environment and its variable. */
export function bearerKey(env: CloudInput['env']): ReturnType<typeof keyOf> {
  return keyOf(env, [keyVariable]);
}

/** The kind of credential; undefined if there is none. */
function authOf({ declared, env }: CloudInput): 'bearer' | AwsAuth | undefined {
  const { cloud, hasKey } = declared;
  const { auth } = cloud;
  if (auth !== undefined && auths.has(auth)) return auth as 'bearer' | AwsAuth;
  if (hasKey || set(env, keyVariable) !== undefined) return 'bearer';
  return usualSource({ settings: cloud, env });
}

/**
 * The signer of requests; undefined if an API key is used.
 * @param service in whose name it signs
 */
export function signerOf(
  input: CloudInput,
  credentials: Credentials,
  service: string,
): RequestCredential | undefined {
  const auth = authOf(input);
  const region = regionOf(input);
  if (auth === undefined || auth === 'bearer' || region === undefined) return undefined;
  const { declared, env } = input;
  const { clock } = credentials;
  const source = keySource(auth, { settings: declared.cloud, env, region }, clock);
  const scope = { region, service };
  const make = (): RequestCredential => new AwsSigner(source, scope, clock);
  if ('keys' in source) return make();
  return credentials.cached(JSON.stringify([source.identity, scope]), make);
}

/** What is wrong with addresses, region, names of models and credential. */
export function accountProblems(input: CloudInput): readonly CloudProblem[] {
  const { baseUrl, hasKey, cloud, region: named } = input.declared;
  const { deployments = {}, endpoint, controlEndpoint } = cloud;
  const found: CloudProblem[] = [];
  if (baseUrl !== undefined) {
    found.push({ key: 'base_url', message: 'does not apply here: use region and endpoint' });
  }
  const region = regionOf(input);
  if (region === undefined) {
    found.push({ message: 'needs region (or AWS_REGION)' });
  } else if (!regionForm.test(region)) {
    const key = named === undefined ? {} : { key: 'region' };
    found.push({ ...key, message: 'has a region that is not of the form eu-central-1' });
  }
  for (const [key, address] of [
    ['endpoint', endpoint],
    ['control_endpoint', controlEndpoint],
  ] as const) {
    if (address !== undefined && !isSafe(address)) found.push({ key, message: notSafe });
  }
  for (const name of Object.keys(deployments)) {
    if (isModelId(name)) continue;
    found.push({ key: 'deployments', message: `"${name}" cannot be the id of a model` });
  }
  const isBoth = hasKey && cloud.auth !== undefined && cloud.auth !== 'bearer';
  const problem = isBoth
    ? { key: 'auth', message: 'cannot be combined with api_key: use one of them' }
    : credentialProblem(input);
  return problem === undefined ? found : [...found, problem];
}

function credentialProblem(input: CloudInput): CloudProblem | undefined {
  const { cloud, hasKey, hasHeaders } = input.declared;
  const { accessKeyId, secretAccessKey, auth: named } = cloud;
  if ((accessKeyId === undefined) !== (secretAccessKey === undefined)) {
    const message = 'needs access_key_id and secret_access_key together';
    return { key: accessKeyId === undefined ? 'secret_access_key' : 'access_key_id', message };
  }
  const auth = authOf(input);
  const key = named === undefined ? {} : { key: 'auth' };
  if (auth === undefined) {
    if (hasHeaders) return undefined;
    const message = `has no credential: set ${keyVariable} or api_key, access keys, or auth (profile, web_identity, container, instance)`;
    return { message };
  }
  if (auth === 'bearer') {
    if (hasKey || hasHeaders || set(input.env, keyVariable) !== undefined) return undefined;
    return { ...key, message: `needs api_key or ${keyVariable}` };
  }
  const problem = sourceProblem(auth, { settings: cloud, env: input.env });
  return problem === undefined ? undefined : { ...key, message: problem };
}
