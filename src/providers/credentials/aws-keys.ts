/**
 * Where the keys come from that sign requests to AWS: the config, the environment, or the sources of AWS's own tools by
 * their own library, which is loaded with the first key that is fetched (decision 0055).
 */
import type { CloudSettings, Environment } from '../../core/cloud.ts';
import type { GatewayError } from '../../core/errors.ts';
import type { Clock } from '../../core/runtime.ts';
import { Secret, withoutKeys } from '../../core/secret.ts';
import type { AwsKeys } from './aws-signature.ts';
import {
  containerKeys,
  containerProblem,
  type GivenKeys,
  instanceKeys,
  instanceProblem,
} from './aws-machine.ts';
import { credentialError, type Token, type TokenSource } from './token-cache.ts';
import { isLoopback } from './token-request.ts';

/** A declaration's settings for keys, together with the environment. */
export interface AwsInput {
  readonly settings: CloudSettings;
  readonly env: Environment;
  readonly region: string;
}

export type AwsAuth = 'keys' | 'profile' | 'web_identity' | 'container' | 'instance';

/** Keys without an expiry. */
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

/** The first available source, if the config names none. Metadata services are used only if the config names them. */
export function usualSource({ settings, env }: Found): AwsAuth | undefined {
  if (keysOfConfig(settings) !== undefined || keysOfEnvironment(env) !== undefined) return 'keys';
  if (settings.profile !== undefined || set(env, 'AWS_PROFILE') !== undefined) return 'profile';
  if (set(env, 'AWS_WEB_IDENTITY_TOKEN_FILE') !== undefined) return 'web_identity';
  return undefined;
}

/** The problem of a source, as a text that follows `auth`; undefined if there is none. */
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
      return containerProblem(env);
    case 'instance':
      return instanceProblem(env);
    default:
      return undefined;
  }
}

/** Tokens go over HTTPS, or to this machine. */
function addressProblem(env: Environment, name: string): string | undefined {
  const text = set(env, name);
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url?.protocol === 'https:') return undefined;
  if (url !== null && isLoopback(url)) return undefined;
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

/** Keys without an expiry are read again, since their file may change. */
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
  /** The values that distinguish two sources of a kind. */
  readonly identity: readonly (string | undefined)[];
  /** Advice to the operator after a failure. */
  readonly advice: string;
  fetch(): Promise<GivenKeys>;
}

type Library = typeof import('@aws-sdk/credential-providers');

/** The time that a call waits for the library. */
const libraryMs = 20_000;
/** The library repeats a request after this silence. Its own bound is five minutes. */
const silenceMs = 60_000;

/**
 * Fetches of one source by the library, one at a time. A fetch that is late cannot be ended, and the programs of
 * profiles that hang would add up if each call began a new one. So the next call waits for the same fetch.
 * @returns a fetch that throws an Error of the library, or one where the library takes too long
 */
function fromLibrary(ask: (library: Library) => Promise<GivenKeys>): () => Promise<GivenKeys> {
  let running: Promise<GivenKeys> | undefined;
  const begin = async (): Promise<GivenKeys> => {
    try {
      return await ask(await import('@aws-sdk/credential-providers'));
    } finally {
      running = undefined;
    }
  };
  return () => {
    const isEarlier = running !== undefined;
    const asked = (running ??= begin());
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(new Error(lateText(isEarlier))), libraryMs);
    return Promise.race([asked, late.promise]).finally(() => clearTimeout(timer));
  };
}

function lateText(isEarlier: boolean): string {
  const seconds = libraryMs / 1000;
  return isEarlier
    ? `no answer within another ${seconds} s of a fetch that began earlier; a new one begins when it has ended (end a credential_process that hangs)`
    : `no answer within ${seconds} s`;
}

const fetched: { readonly [A in Exclude<AwsAuth, 'keys'>]: (input: AwsInput) => Fetched } = {
  profile: ({ settings, env, region }) => {
    const profile = settings.profile ?? set(env, 'AWS_PROFILE') ?? 'default';
    const filepath = set(env, 'AWS_SHARED_CREDENTIALS_FILE');
    const configFilepath = set(env, 'AWS_CONFIG_FILE');
    return {
      description: `profile ${profile}`,
      identity: [profile, filepath, configFilepath, region],
      advice: `Check [${profile}] in ~/.aws/config and ~/.aws/credentials; for SSO: aws sso login --profile ${profile}.`,
      fetch: fromLibrary(({ fromIni }) =>
        fromIni({
          profile,
          ignoreCache: true,
          ...(filepath === undefined ? {} : { filepath }),
          ...(configFilepath === undefined ? {} : { configFilepath }),
          clientConfig: stsAt(region, env),
        })(),
      ),
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
      fetch: fromLibrary(({ fromTokenFile }) =>
        fromTokenFile({
          webIdentityTokenFile: file,
          roleArn: role,
          roleSessionName: session,
          clientConfig: stsAt(region, env),
        })(),
      ),
    };
  },
  container: ({ env }) => ({
    description: 'role of the container',
    identity: [
      set(env, 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'),
      set(env, 'AWS_CONTAINER_CREDENTIALS_FULL_URI'),
      set(env, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE'),
    ],
    advice:
      'Does the task or the pod have a role? Outside of ECS and EKS use another auth: profile, web_identity or instance.',
    fetch: () => containerKeys(env),
  }),
  instance: ({ env }) => ({
    description: 'role of the instance',
    identity: [set(env, 'AWS_EC2_METADATA_SERVICE_ENDPOINT')],
    advice:
      'Does this machine have an instance profile, and is IMDSv2 reachable (hop limit 2 for containers)? Outside of EC2 use another auth: profile, web_identity or container.',
    fetch: () => instanceKeys(env),
  }),
};

interface StsClient {
  readonly region: string;
  readonly endpoint?: string;
  readonly requestHandler: { readonly socketTimeout: number };
}

/** The token service of a role. */
function stsAt(region: string, env: Environment): StsClient {
  const endpoint = set(env, 'AWS_ENDPOINT_URL_STS');
  return {
    region,
    ...(endpoint === undefined ? {} : { endpoint }),
    requestHandler: { socketTimeout: silenceMs },
  };
}
