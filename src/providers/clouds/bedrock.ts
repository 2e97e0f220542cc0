/**
 * Amazon Bedrock: addresses by region, keys and signatures, and by which API each model is asked: Claude by its own
 * behind InvokeModel, all others by Converse (docs/operator/clouds.md).
 */
import type { CloudProblem, CloudInput } from '../../core/cloud.ts';
import type { RequestCredential } from '../../core/credential.ts';
import type { Endpoint, ForwardedHeader, Provider, TokenCounter } from '../../core/provider.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { upstreamDialect } from '../../dialects/registry.ts';
import { tryParseObject } from '../../json/parse.ts';
import { Pieces } from '../../json/pieces.ts';
import type { JsonObject } from '../../json/value.ts';
import type { ProviderRow } from '../compatible.ts';
import { type AwsAuth, keySource, sourceProblem, usualSource } from '../credentials/aws-keys.ts';
import { encodedSegment } from '../credentials/aws-signature.ts';
import { AwsSigner } from '../credentials/aws-signer.ts';
import type { Credentials } from '../credentials/credentials.ts';
import type { HttpDialect } from '../http-provider.ts';
import { readAwsError } from './aws/errors.ts';
import { converseMembers, invokeHeaders } from './aws/call-settings.ts';
import { EventFrames, eventStreamType } from './aws/event-frames.ts';
import { baseModelId, converseModelTraits, isClaude, isModelId, makersName } from './aws/models.ts';
import type { Cloud, ModelPlace } from './cloud.ts';
import { alone, isSafe, keyOf, notSafe, set } from './declaration.ts';

const keyVariable = 'AWS_BEARER_TOKEN_BEDROCK';
const endpointVariable = 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME';
const regionForm = /^[a-z]{2}(?:-[a-z]{2,12}){1,3}-\d{1,2}$/;
const auths: ReadonlySet<string> = new Set([
  'bearer',
  'keys',
  'profile',
  'web_identity',
  'container',
  'instance',
]);

/** What Bedrock takes of Anthropic's API besides the body's own members. */
const claudeTraits: Partial<UpstreamTraits> = {
  dropsBillingHeader: true,
  imageInput: 'base64',
  skippedFields: [
    'container',
    'mcp_servers',
    'inference_geo',
    'service_tier',
    'speed',
    'fallbacks',
  ],
};

/** Betas that AWS lists for Claude; one unknown name fails a whole request. */
const betas = [
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
];

const awsVersion = 'bedrock-2023-05-31';
const claudeHeaders: readonly ForwardedHeader[] = [
  {
    name: 'anthropic-version',
    otherwise: '2023-06-01',
    member: (value = '2023-06-01') => ({
      anthropic_version: value === '2023-06-01' ? awsVersion : value,
    }),
  },
  {
    name: 'anthropic-beta',
    allowed: new Set(betas),
    member: (value = '') => (value === '' ? {} : { anthropic_beta: value.split(',') }),
  },
];

/**
 * Its row.
 * @param vendors the rows of the makers whose dialects and traits hold there
 */
export function bedrockRow(vendors: readonly ProviderRow[]): ProviderRow {
  const anthropic = vendors.find(({ id }) => id === 'anthropic');
  if (anthropic === undefined) throw new Error('there is no row anthropic');
  const { baseUrlVariable: _, keyVariable: __, ...claude } = anthropic;
  const row: ProviderRow = {
    ...claude,
    id: 'bedrock',
    telemetry: 'aws.bedrock',
    baseUrl: 'https://bedrock-runtime.region.amazonaws.com',
    prices: 'aws',
    traits: { ...claude.traits, ...claudeTraits },
  };
  const { modelTraits: _c, ...converse }: ProviderRow = {
    ...row,
    dialect: 'bedrock-converse',
    traits: {},
  };
  const others: ProviderRow = { ...converse, modelTraits: converseModelTraits };
  return {
    ...row,
    cloud: bedrockCloud((dialect) => (dialect === 'bedrock-converse' ? others : row)),
  };
}

function bedrockCloud(rowOf: (dialect: HttpDialect) => ProviderRow): Cloud {
  return {
    keys: [
      'auth',
      'profile',
      'access_key_id',
      'secret_access_key',
      'session_token',
      'endpoint',
      'control_endpoint',
      'deployments',
      'door',
      'guardrail',
      'latency',
      'request_metadata',
    ],
    auth: [...auths],
    problems: problemsOf,
    appears: (env) => set(env, keyVariable) !== undefined && problemsOf(alone(env)).length === 0,
    address: baseOf,
    key: (env) => keyOf(env, [keyVariable]),
    tokens: () => undefined,
    signer: signerOf,
    listsModels: canList,
    // Ids of application inference profiles have no dot.
    mayHave: isModelId,
    modelOf: makersName,
    place: placeOf,
    rowOf,
  };
}

function regionOf({ declared, env }: CloudInput): string | undefined {
  return declared.region ?? set(env, 'AWS_REGION') ?? set(env, 'AWS_DEFAULT_REGION');
}

function endpointOf({ declared, env }: CloudInput): string | undefined {
  return declared.cloud.endpoint ?? set(env, endpointVariable);
}

/** The address without paths; undefined where nothing names it. */
function baseOf(input: CloudInput): string | undefined {
  const region = regionOf(input);
  const address =
    endpointOf(input) ?? (region && `https://bedrock-runtime.${region}.${hostIn(region)}`);
  return address?.replace(/\/+$/, '');
}

/** Where lists of models are. */
function controlOf(input: CloudInput): string {
  const region = regionOf(input) ?? '';
  const { controlEndpoint } = input.declared.cloud;
  return (controlEndpoint ?? `https://bedrock.${region}.${hostIn(region)}`).replace(/\/+$/, '');
}

/** At an address of the operator's own nothing else is asked. */
function canList(input: CloudInput): boolean {
  return input.declared.cloud.controlEndpoint !== undefined || endpointOf(input) === undefined;
}

function hostIn(region: string): string {
  return region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
}

/** What lets calls in; undefined where nothing is there. */
function authOf({ declared, env }: CloudInput): 'bearer' | AwsAuth | undefined {
  const { cloud, hasKey } = declared;
  const { auth } = cloud;
  if (auth !== undefined && auths.has(auth)) return auth as 'bearer' | AwsAuth;
  if (hasKey || set(env, keyVariable) !== undefined) return 'bearer';
  return usualSource({ settings: cloud, env });
}

function signerOf(input: CloudInput, credentials: Credentials): RequestCredential | undefined {
  const auth = authOf(input);
  const region = regionOf(input);
  if (auth === undefined || auth === 'bearer' || region === undefined) return undefined;
  const { declared, env } = input;
  const { clock } = credentials;
  const source = keySource(auth, { settings: declared.cloud, env, region }, clock);
  const scope = { region, service: 'bedrock' };
  const make = (): RequestCredential => new AwsSigner(source, scope, clock);
  if ('keys' in source) return make();
  return credentials.cached(JSON.stringify([source.identity, scope]), make);
}

function placeOf(input: CloudInput, name: string, model: string | undefined): ModelPlace {
  const invokes = isClaude(model ?? '') && input.declared.cloud.door !== 'converse';
  const dialect = invokes ? 'anthropic-messages' : 'bedrock-converse';
  const at = `/model/${encodedSegment(name)}`;
  const paths = invokes
    ? { generate: `${at}/invoke`, stream: `${at}/invoke-with-response-stream` }
    : { generate: `${at}/converse`, stream: `${at}/converse-stream` };
  return {
    dialect,
    baseUrl: baseOf(input) ?? '',
    keyHeader: 'authorization',
    forwarded: invokes ? claudeHeaders : [],
    answers: answersIn(dialect),
    ...(invokes
      ? { headers: invokeHeaders(input.declared.cloud) }
      : { traits: { always: converseMembers(input.declared.cloud) } }),
    body: { inAddress: ['model', 'stream'] },
    paths: {
      ...paths,
      models: `${controlOf(input)}/inference-profiles?maxResults=1000&type=SYSTEM_DEFINED`,
      moreModels: [
        `${controlOf(input)}/foundation-models?byOutputModality=TEXT&byInferenceType=ON_DEMAND`,
      ],
      counter: (endpoint) => counterAt(endpoint, name, invokes ? wrapInvoke : wrapConverse),
    },
  };
}

/** Streams are event streams, and errors have their type beside the body. */
function answersIn(dialect: HttpDialect): Pick<Provider, 'splitter' | 'readError'> {
  const { readError } = upstreamDialect(dialect);
  return {
    splitter: (contentType) =>
      contentType.includes(eventStreamType)
        ? new EventFrames((type, body) => readAwsError({ status: 200, type, body }, readError))
        : undefined,
    readError: (status, headers, body) => {
      const named = headers['x-amzn-errortype'];
      const type = typeof named === 'string' ? named : undefined;
      return readAwsError({ status, type, body }, readError);
    },
  };
}

/** Longer bodies are estimated: they would be written anew on the event loop. */
const maxCounted = 1024 * 1024;

/** Profiles cannot count, the model behind them can. */
function counterAt(
  endpoint: (path: string) => Endpoint,
  name: string,
  wrap: (request: JsonObject) => JsonObject,
): TokenCounter {
  const path = `/model/${encodedSegment(baseModelId(name))}/count-tokens`;
  const wrapped = (body: Pieces): Pieces | undefined => {
    const request = body.length > maxCounted ? undefined : tryParseObject(body.toString());
    return request && Pieces.of(Buffer.from(JSON.stringify({ input: wrap(request) })));
  };
  return {
    countsMedia: true,
    steps: [{ endpoint: endpoint(path), wrap: wrapped }],
    read: (answer) => answer['inputTokens'],
    // "The provided model doesn't support counting tokens"
    lacks: (status, body) => status === 400 && /support counting/.test(body),
  };
}

/** The service wants a whole request. */
function wrapInvoke(request: JsonObject): JsonObject {
  const { model: _, ...rest } = request;
  const whole = JSON.stringify({ max_tokens: 1, ...rest });
  return { invokeModel: { body: Buffer.from(whole).toString('base64') } };
}

function wrapConverse(request: JsonObject): JsonObject {
  const { messages, system, toolConfig, additionalModelRequestFields } = request;
  return { converse: { messages, system, toolConfig, additionalModelRequestFields } };
}

function problemsOf(input: CloudInput): readonly CloudProblem[] {
  const { baseUrl, dialect, hasKey, cloud } = input.declared;
  const { auth, deployments = {} } = cloud;
  const found: CloudProblem[] = [];
  if (dialect !== undefined) {
    found.push({ key: 'dialect', message: 'does not apply here: the model decides it' });
  }
  if (baseUrl !== undefined) {
    found.push({ key: 'base_url', message: 'does not apply here: use region and endpoint' });
  }
  found.push(...addressProblems(input));
  for (const name of Object.keys(deployments)) {
    if (isModelId(name)) continue;
    found.push({ key: 'deployments', message: `"${name}" cannot be the id of a model` });
  }
  if (hasKey && auth !== undefined && auth !== 'bearer') {
    found.push({ key: 'auth', message: 'cannot be combined with api_key: use one of them' });
  } else {
    const problem = credentialProblem(input);
    if (problem !== undefined) found.push(problem);
  }
  return found;
}

function addressProblems(input: CloudInput): readonly CloudProblem[] {
  const region = regionOf(input);
  const found: CloudProblem[] = [];
  if (region === undefined) {
    found.push({ message: 'needs region (or AWS_REGION)' });
  } else if (!regionForm.test(region)) {
    const key = input.declared.region === undefined ? {} : { key: 'region' };
    found.push({ ...key, message: 'has a region that is not of the form eu-central-1' });
  }
  const { cloud } = input.declared;
  const endpoints = { endpoint: cloud.endpoint, control_endpoint: cloud.controlEndpoint };
  for (const [key, address] of Object.entries(endpoints)) {
    if (address !== undefined && !isSafe(address)) found.push({ key, message: notSafe });
  }
  const variable = cloud.endpoint === undefined ? set(input.env, endpointVariable) : undefined;
  if (variable !== undefined && !isSafe(variable)) {
    found.push({ message: `${endpointVariable} ${notSafe}` });
  }
  return found;
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
