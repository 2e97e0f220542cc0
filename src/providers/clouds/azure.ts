/**
 * Azure OpenAI and Microsoft Foundry: addresses, credentials and models. They speak dialects of other vendors; what
 * differs is where and under which name a model is found (docs/operator/clouds.md).
 */
import type { CloudProblem, CloudInput } from '../../core/cloud.ts';
import type { ProviderRow } from '../compatible.ts';
import { entraApp, entraMachine, entraProblem, machineProblem } from '../credentials/entra.ts';
import type { HttpDialect } from '../http-provider.ts';
import { hostedModelTraits } from '../model-traits.ts';
import type { Cloud, ModelPlace } from './cloud.ts';
import { claudePrice, alone, isSafe, keyOf, makerRow, notSafe, set } from './declaration.ts';

/** The differences of the two services. */
interface Service {
  /** Behind the resource's name. */
  readonly host: string;
  readonly scope: string;
  /** The variables of the key; the first that is set counts. */
  readonly keyVariables: readonly string[];
  readonly resourceVariable: string;
  /** The variable of the address, with or without the path of an SDK. */
  readonly addressVariable: string;
  /** The service has Claude, under another path. */
  readonly claude?: true;
}

const openaiService: Service = {
  host: 'openai.azure.com',
  scope: 'https://cognitiveservices.azure.com/.default',
  keyVariables: ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'],
  resourceVariable: 'AZURE_RESOURCE_NAME',
  addressVariable: 'AZURE_OPENAI_ENDPOINT',
};

const foundryService: Service = {
  host: 'services.ai.azure.com',
  scope: 'https://ai.azure.com/.default',
  keyVariables: ['ANTHROPIC_FOUNDRY_API_KEY', 'AZURE_API_KEY'],
  resourceVariable: 'ANTHROPIC_FOUNDRY_RESOURCE',
  addressVariable: 'ANTHROPIC_FOUNDRY_BASE_URL',
  claude: true,
};

/** The dialects of OpenAI's models. Claude has its own. */
const dialects: ReadonlySet<string> = new Set(['openai-chat', 'openai-responses']);

const commonKeys = [
  'resource',
  'deployments',
  'auth',
  'tenant_id',
  'client_id',
  'client_secret',
  'scope',
];

/** A deployment is one segment of a path, however it is written. */
function isSegment(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\\]|%2f|%5c/i.test(name);
}

/**
 * The rows of both services.
 * @param vendors the rows of the makers whose dialects and traits hold there
 */
export function azureRows(vendors: readonly ProviderRow[]): readonly ProviderRow[] {
  const openai = makerRow(vendors, 'openai');
  const anthropic = makerRow(vendors, 'anthropic');
  const azure: ProviderRow = {
    ...openai,
    id: 'azure',
    telemetry: 'az.ai.openai',
    baseUrl: `https://resource.${openaiService.host}`,
    prices: 'azure',
    modelTraits: hostedModelTraits,
  };
  const foundry: ProviderRow = {
    ...azure,
    id: 'foundry',
    telemetry: 'az.ai.inference',
    baseUrl: `https://resource.${foundryService.host}`,
  };
  const claude: ProviderRow = { ...anthropic, id: 'foundry', telemetry: 'az.ai.inference' };
  const foundryRow = (dialect: HttpDialect): ProviderRow =>
    dialect === 'anthropic-messages' ? claude : foundry;
  return [
    { ...azure, cloud: cloudOf(openaiService, () => azure) },
    { ...foundry, cloud: cloudOf(foundryService, foundryRow) },
  ];
}

function cloudOf(service: Service, rowIn: (dialect: HttpDialect) => ProviderRow): Cloud {
  const keys = service.claude === true ? commonKeys : [...commonKeys, 'api_version'];
  return {
    keys,
    auth: ['api_key', 'entra', 'managed_identity'],
    responses: true,
    problems: (input) => problemsOf(service, input),
    appears: (env) => problemsOf(service, alone(env)).length === 0,
    address: (input) => baseOf(service, input),
    key: (env) => keyOf(env, service.keyVariables),
    tokens: ({ declared: { cloud: settings }, env }, clock) => {
      const { auth, scope = service.scope } = settings;
      if (auth === undefined || auth === 'api_key') return undefined;
      const make = auth === 'entra' ? entraApp : entraMachine;
      return make({ settings, env, scope, clock });
    },
    mayHave: isSegment,
    priceOf: (_, model, price) => (/^claude/i.test(model) ? claudePrice(price) : price),
    place: (input, name, model) => endpointOf(service, { input, name, model }),
    rowOf: (dialect) => {
      const row = rowIn(dialect);
      const { responses } = row;
      return dialect === 'openai-responses' ? { ...row, dialect, ...responses } : row;
    },
  };
}

/** The address without the paths that SDKs and the gateway add. Undefined if it is not configured. */
function baseOf(
  { host, addressVariable, resourceVariable }: Service,
  { declared: { baseUrl, cloud }, env }: CloudInput,
): string | undefined {
  const of = (resource: string | undefined): string | undefined =>
    resource === undefined || resource === '' ? undefined : `https://${resource}.${host}`;
  const address =
    baseUrl ?? of(cloud.resource) ?? set(env, addressVariable) ?? of(env[resourceVariable]);
  return address?.replace(/\/+$/, '').replace(/\/(openai(\/v1)?|anthropic(\/v1)?)$/, '');
}

interface Placing {
  readonly input: CloudInput;
  readonly name: string;
  readonly model: string | undefined;
}

function endpointOf(service: Service, { input, name, model }: Placing): ModelPlace {
  const { declared } = input;
  const base = baseOf(service, input) ?? '';
  if (service.claude === true && model !== undefined && /^claude/i.test(model)) {
    return { dialect: 'anthropic-messages', baseUrl: `${base}/anthropic` };
  }
  const responses = declared.dialect === 'openai-responses';
  const dialect: HttpDialect = responses ? 'openai-responses' : 'openai-chat';
  const v1 = { dialect, baseUrl: `${base}/openai/v1`, keyHeader: 'api-key' };
  const { apiVersion } = declared.cloud;
  if (apiVersion === undefined) return v1;
  const query = `?api-version=${apiVersion}`;
  if (apiVersion === 'preview') return { ...v1, query };
  // Only chat completions have the deployment in their path; all others name it in the body.
  const inPath = model !== undefined && !responses;
  const deployment = inPath ? `/deployments/${encodeURIComponent(name)}` : '';
  return {
    ...v1,
    baseUrl: `${base}/openai${deployment}`,
    query,
    traits: { endUserField: 'user', usageOption: apiVersion >= '2024-10-21' },
  };
}

function problemsOf(service: Service, input: CloudInput): readonly CloudProblem[] {
  const { baseUrl, dialect, hasKey, cloud } = input.declared;
  const { resource, deployments = {}, auth = 'api_key' } = cloud;
  const found: CloudProblem[] = [];
  if (dialect !== undefined && !dialects.has(dialect)) {
    found.push({ key: 'dialect', message: 'must be openai-chat or openai-responses here' });
  }
  if (resource !== undefined && baseUrl !== undefined) {
    found.push({ key: 'resource', message: 'cannot be combined with base_url: use one of them' });
  }
  const address = addressProblem(service, input);
  if (address !== undefined) found.push(address);
  for (const name of Object.keys(deployments)) {
    if (isSegment(name)) continue;
    found.push({ key: 'deployments', message: `"${name}" cannot be the name of a deployment` });
  }
  if (hasKey && auth !== 'api_key') {
    found.push({ key: 'auth', message: 'cannot be combined with api_key: use one of them' });
  }
  const credential = credentialProblem(service, input);
  if (credential !== undefined) found.push({ key: 'auth', message: credential });
  return found;
}

function addressProblem(service: Service, input: CloudInput): CloudProblem | undefined {
  const { declared, env } = input;
  const address = baseOf(service, input);
  const { resourceVariable, addressVariable } = service;
  if (address === undefined) {
    return { message: `needs resource or base_url (or ${resourceVariable})` };
  }
  const named = declared.baseUrl !== undefined || declared.cloud.resource !== undefined;
  if (
    !named &&
    set(env, resourceVariable) !== undefined &&
    set(env, addressVariable) !== undefined
  ) {
    return { message: `finds ${resourceVariable} and ${addressVariable}: use one of them` };
  }
  if (isSafe(address)) return undefined;
  if (declared.baseUrl !== undefined) return { key: 'base_url', message: notSafe };
  return { message: `${addressVariable} ${notSafe}` };
}

function credentialProblem(service: Service, { declared, env }: CloudInput): string | undefined {
  const { cloud, hasKey, hasHeaders } = declared;
  if (cloud.auth === 'entra') return entraProblem(cloud, env);
  if (cloud.auth === 'managed_identity') return machineProblem(env);
  if (hasKey || hasHeaders || keyOf(env, service.keyVariables) !== undefined) return undefined;
  return `has no key: set ${service.keyVariables[0] ?? ''} or api_key, or auth: entra or managed_identity`;
}
