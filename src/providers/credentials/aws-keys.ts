/**
 * Where the keys come from that sign requests to AWS: the config, the environment, or the sources of AWS's own tools by
 * their own library, which is loaded with the first key that is fetched (decision 0055).
 */
import type { CloudSettings, Environment } from '../../core/cloud.ts';
import type { GatewayError } from '../../core/errors.ts';
import type { Clock } from '../../core/runtime.ts';
import { Secret, withoutKeys } from '../../core/secret.ts';
import type { AwsKeys } from './aws-signature.ts';
import { credentialError, type Token, type TokenSource } from './token-cache.ts';
import { isLoopback } from './token-request.ts';

/** What a declaration says of its keys, together with the environment. */
export interface AwsInput {
  readonly settings: CloudSettings;
  readonly env: Environment;
  readonly region: string;
}

export type AwsAuth = 'keys' | 'profile' | 'web_identity' | 'container' | 'instance';

/** Keys that do not end. */
export interface FixedKeys {
  readonly description: string;
  readonly keys: AwsKeys;
}

export type KeySource = FixedKeys | TokenSource<AwsKeys>;

type Found = Pick<AwsInput, 'settings' | 'env'>;

function set(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}

/** The first source that is there, where the config names none. Metadata services are never asked unasked. */
export function usualSource({ settings, env }: Found): AwsAuth | undefined {
  if (keysOfConfig(settings) !== undefined || keysOfEnvironment(env) !== undefined) return 'keys';
  if (settings.profile !== undefined || set(env, 'AWS_PROFILE') !== undefined) return 'profile';
  if (set(env, 'AWS_WEB_IDENTITY_TOKEN_FILE') !== undefined) return 'web_identity';
  return undefined;
}

/** What is missing for a source, or wrong, in words that follow `auth`; undefined when nothing is. */
export function sourceProblem(auth: AwsAuth, { settings, env }: Found): string | undefined {
  switch (auth) {
    case 'keys':
      if (keysOfConfig(settings) ?? keysOfEnvironment(env)) return undefined;
      return 'needs access_key_id and secret_access_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
    case 'web_identity':
      if (set(env, 'AWS_WEB_IDENTITY_TOKEN_FILE') === undefined) {
        return 'needs AWS_WEB_IDENTITY_TOKEN_FILE';
      }
      if (set(env, 'AWS_ROLE_ARN') === undefined) return 'needs AWS_ROLE_ARN';
      return addressProblem(env, 'AWS_ENDPOINT_URL_STS');
    case 'container':
      if (set(env, 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI') !== undefined) return undefined;
      if (set(env, 'AWS_CONTAINER_CREDENTIALS_FULL_URI') === undefined) {
        return 'needs AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or AWS_CONTAINER_CREDENTIALS_FULL_URI, which ECS and EKS set';
      }
      return addressProblem(env, 'AWS_CONTAINER_CREDENTIALS_FULL_URI');
    default:
      return undefined;
  }
}

const containerHosts: ReadonlySet<string> = new Set([
  '169.254.170.2',
  '169.254.170.23',
  '[fd00:ec2::23]',
]);

/** Tokens go over HTTPS, to this machine, or to the addresses of the container services. */
function addressProblem(env: Environment, name: string): string | undefined {
  const text = set(env, name);
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url?.protocol === 'https:') return undefined;
  if (url !== null && (isLoopback(url) || containerHosts.has(url.hostname))) return undefined;
  return `has an ${name} that is neither an https:// address nor one of this machine`;
}

function keysOfConfig(settings: CloudSettings): AwsKeys | undefined {
  const { accessKeyId, secretAccessKey, sessionToken } = settings;
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

function keysOfEnvironment(env: Environment): AwsKeys | undefined {
  const accessKeyId = set(env, 'AWS_ACCESS_KEY_ID');
  const secret = set(env, 'AWS_SECRET_ACCESS_KEY');
  const token = set(env, 'AWS_SESSION_TOKEN');
  if (accessKeyId === undefined || secret === undefined) return undefined;
  return {
    accessKeyId,
    secretAccessKey: new Secret(secret),
    ...(token === undefined ? {} : { sessionToken: new Secret(token) }),
  };
}

/** @throws Error where `sourceProblem` finds one */
export function keySource(auth: AwsAuth, input: AwsInput, clock: Pick<Clock, 'wall'>): KeySource {
  const { settings, env } = input;
  if (auth === 'keys') {
    const ofConfig = keysOfConfig(settings);
    const keys = ofConfig ?? keysOfEnvironment(env);
    if (keys === undefined) throw new Error(`auth: keys ${sourceProblem(auth, input) ?? ''}`);
    const place = ofConfig === undefined ? 'environment' : 'config';
    return { description: `keys of the ${place}`, keys };
  }
  const { description, identity, advice, fetch } = fetched[auth](input);
  return {
    description,
    identity: JSON.stringify(['aws', auth, ...identity]),
    fetch: async () => {
      try {
        return tokenOf(await fetch(), clock.wall());
      } catch (error) {
        throw noKeys(error, { description, advice });
      }
    },
  };
}

function noKeys(
  error: unknown,
  { description, advice }: Pick<Fetched, 'description' | 'advice'>,
): GatewayError {
  const why = error instanceof Error ? error.message : String(error);
  return credentialError(
    `No AWS keys (${description}): ${withoutKeys(why).replace(/\.$/, '')}. ${advice}`,
  );
}

/** As AWS's library gives them. */
interface GivenKeys {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
  readonly expiration?: Date | undefined;
}

/** Keys without an end are asked for again: their file may change. */
const withoutEndMs = 15 * 60_000;

function tokenOf(given: GivenKeys, wallMs: number): Token<AwsKeys> {
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = given;
  const lifeMs = expiration === undefined ? withoutEndMs : expiration.getTime() - wallMs;
  return {
    lifeMs,
    value: {
      accessKeyId,
      secretAccessKey: new Secret(secretAccessKey),
      ...(sessionToken === undefined ? {} : { sessionToken: new Secret(sessionToken) }),
    },
  };
}

interface Fetched {
  readonly description: string;
  /** The difference between two sources of a kind. */
  readonly identity: readonly (string | undefined)[];
  /** What the operator can do about a failure. */
  readonly advice: string;
  fetch(): Promise<GivenKeys>;
}

// eslint-disable-next-line @typescript-eslint/explicit-function-return-type
const library = () => import('@aws-sdk/credential-providers');

/** A service of the machine answers at once or is not there. */
const machine = { timeout: 3000, maxRetries: 2 } as const;

const fetched: { readonly [A in Exclude<AwsAuth, 'keys'>]: (input: AwsInput) => Fetched } = {
  profile: ({ settings, env, region }) => {
    const profile = settings.profile ?? set(env, 'AWS_PROFILE') ?? 'default';
    const filepath = set(env, 'AWS_SHARED_CREDENTIALS_FILE');
    const configFilepath = set(env, 'AWS_CONFIG_FILE');
    return {
      description: `profile ${profile}`,
      identity: [profile, filepath, configFilepath, region],
      advice: `Check [${profile}] in ~/.aws/config and ~/.aws/credentials; for SSO: aws sso login --profile ${profile}.`,
      fetch: async () =>
        (await library()).fromIni({
          profile,
          ignoreCache: true,
          ...(filepath === undefined ? {} : { filepath }),
          ...(configFilepath === undefined ? {} : { configFilepath }),
          clientConfig: stsAt(region, env),
        })(),
    };
  },
  web_identity: ({ env, region }) => {
    const file = set(env, 'AWS_WEB_IDENTITY_TOKEN_FILE') ?? '';
    const role = set(env, 'AWS_ROLE_ARN') ?? '';
    const session = set(env, 'AWS_ROLE_SESSION_NAME') ?? 'model-gateway';
    return {
      description: `web identity, token of ${file}`,
      identity: [file, role, session, region],
      advice: `Check that ${role} trusts the identity provider of the token.`,
      fetch: async () =>
        (await library()).fromTokenFile({
          webIdentityTokenFile: file,
          roleArn: role,
          roleSessionName: session,
          clientConfig: stsAt(region, env),
        })(),
    };
  },
  container: ({ env }) => {
    const relative = set(env, 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI');
    const full = set(env, 'AWS_CONTAINER_CREDENTIALS_FULL_URI');
    const token = set(env, 'AWS_CONTAINER_AUTHORIZATION_TOKEN');
    const tokenFile = set(env, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE');
    return {
      description: 'role of the container',
      identity: [relative, full, tokenFile],
      advice: 'Does the task or the pod have a role?',
      fetch: async () =>
        (await library()).fromHttp({
          ...machine,
          ...(relative === undefined
            ? { awsContainerCredentialsFullUri: full ?? '' }
            : { awsContainerCredentialsRelativeUri: relative }),
          ...(token === undefined ? {} : { awsContainerAuthorizationToken: token }),
          ...(tokenFile === undefined ? {} : { awsContainerAuthorizationTokenFile: tokenFile }),
        })(),
    };
  },
  instance: () => ({
    description: 'role of the instance',
    identity: [],
    advice: 'Does this machine have an instance profile, and is IMDSv2 reachable (hop limit)?',
    fetch: async () =>
      (await library()).fromInstanceMetadata({ ...machine, ec2MetadataV1Disabled: true })(),
  }),
};

/** The token service of a role. */
function stsAt(region: string, env: Environment): { region: string; endpoint?: string } {
  const endpoint = set(env, 'AWS_ENDPOINT_URL_STS');
  return { region, ...(endpoint === undefined ? {} : { endpoint }) };
}
