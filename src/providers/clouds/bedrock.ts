/**
 * Amazon Bedrock: addresses by region, keys and signatures, and the API of each model: Claude by its own
 * behind InvokeModel, all others by Converse (docs/operator/clouds.md).
 */
import type { CloudProblem, CloudInput } from '../../core/cloud.ts';
import type { Endpoint, ForwardedHeader, Provider, TokenCounter } from '../../core/provider.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { upstreamDialect } from '../../dialects/registry.ts';
import { tryParseObject } from '../../json/parse.ts';
import { Pieces } from '../../json/pieces.ts';
import type { JsonObject } from '../../json/value.ts';
import type { ProviderRow } from '../compatible.ts';
import { encodedSegment } from '../credentials/aws-signature.ts';
import type { HttpDialect } from '../http-provider.ts';
import {
  accountProblems,
  auths,
  bearerKey,
  claudeBetas,
  credentialKeys,
  keyVariable,
  regionOf,
  signerOf,
} from './aws/account.ts';
import { awsErrorReader, readAwsError } from './aws/errors.ts';
import { converseMembers, invokeHeaders } from './aws/call-settings.ts';
import { EventFrames, eventStreamType } from './aws/event-frames.ts';
import {
  baseModelId,
  converseModelTraits,
  isClaude,
  isModelId,
  listedAs,
  makersName,
  sentModelId,
} from './aws/models.ts';
import type { Cloud, ModelPlace } from './cloud.ts';
import { alone, claudePrice, isSafe, makerRow, notSafe, set } from './declaration.ts';

const endpointVariable = 'AWS_ENDPOINT_URL_BEDROCK_RUNTIME';
/** The parts of Anthropic's API that Bedrock takes, besides the members of the body. */
const claudeTraits: Partial<UpstreamTraits> = {
  cacheScopes: false,
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
    allowed: claudeBetas,
    member: (value = '') => (value === '' ? {} : { anthropic_beta: value.split(',') }),
  },
];

/**
 * Its row.
 * @param vendors the rows of the makers whose dialects and traits hold there
 */
export function bedrockRow(vendors: readonly ProviderRow[]): ProviderRow {
  const claude = makerRow(vendors, 'anthropic');
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
      ...credentialKeys,
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
    key: bearerKey,
    tokens: () => undefined,
    signer: (input, credentials) => signerOf(input, credentials, 'bedrock'),
    listsModels: canList,
    listedAs,
    priceOf: (_, model, price) => (isClaude(model) ? claudePrice(price) : price),
    // Ids of application inference profiles have no dot.
    mayHave: isModelId,
    modelOf: makersName,
    place: placeOf,
    rowOf,
  };
}

function endpointOf({ declared, env }: CloudInput): string | undefined {
  return declared.cloud.endpoint ?? set(env, endpointVariable);
}

/** The address without paths. Undefined if it is not configured. */
function baseOf(input: CloudInput): string | undefined {
  const region = regionOf(input);
  const address =
    endpointOf(input) ?? (region && `https://bedrock-runtime.${region}.${hostIn(region)}`);
  return address?.replace(/\/+$/, '');
}

/** The address of the lists of models. */
function controlOf(input: CloudInput): string {
  const region = regionOf(input) ?? '';
  const { controlEndpoint } = input.declared.cloud;
  return (controlEndpoint ?? `https://bedrock.${region}.${hostIn(region)}`).replace(/\/+$/, '');
}

/** At the operator's own address there is no list of models. */
function canList(input: CloudInput): boolean {
  return input.declared.cloud.controlEndpoint !== undefined || endpointOf(input) === undefined;
}

function hostIn(region: string): string {
  return region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
}

function placeOf(input: CloudInput, name: string, model: string | undefined): ModelPlace {
  const invokes = isClaude(model ?? '') && input.declared.cloud.door !== 'converse';
  const dialect = invokes ? 'anthropic-messages' : 'bedrock-converse';
  const at = `/model/${encodedSegment(sentModelId(name))}`;
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

/** Streams are AWS event streams, and errors have their type in a header. */
function answersIn(dialect: HttpDialect): Pick<Provider, 'splitter' | 'readError'> {
  const { readError } = upstreamDialect(dialect);
  return {
    splitter: (contentType) =>
      contentType.includes(eventStreamType)
        ? new EventFrames((type, body) => readAwsError({ status: 200, type, body }, readError))
        : undefined,
    readError: awsErrorReader(readError),
  };
}

/** Longer bodies are estimated, since counting would serialise them on the event loop. */
const maxCounted = 1024 * 1024;

/** The model of an inference profile counts tokens. The profile itself cannot. */
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

/** The counting endpoint takes a whole request. */
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
  const { dialect, cloud } = input.declared;
  const found = [...accountProblems(input)];
  if (dialect !== undefined) {
    found.push({ key: 'dialect', message: 'does not apply here: the model decides it' });
  }
  const variable = cloud.endpoint === undefined ? set(input.env, endpointVariable) : undefined;
  if (variable !== undefined && !isSafe(variable)) {
    found.push({ message: `${endpointVariable} ${notSafe}` });
  }
  return found;
}
