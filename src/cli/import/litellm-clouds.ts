/**
 * Deployments of LiteLLM at clouds (docs.litellm.ai/docs/providers/azure, …/vertex, …/bedrock): address,
 * region and credentials of each become members of a provider here.
 */
import type { Draft, Fields, ProviderInput } from './draft.ts';
import type { ConfigPath } from '../../config/yaml-text.ts';
import {
  defined,
  numberOf,
  plainText,
  secretReference,
  tableOf,
  textOf,
  type Table,
} from './values.ts';

/** A deployment at a cloud. */
export interface CloudContext {
  /** Id of the cloud here. */
  readonly vendor: string;
  /** As LiteLLM has it, without the cloud in front. */
  readonly model: string;
  /** `api_base`. */
  readonly address: string | undefined;
  readonly params: Table;
  readonly draft: Draft;
  /** Of `litellm_params`. */
  readonly path: ConfigPath;
}

/** Options of the provider, and the model's name here. */
export interface CloudDeployment {
  readonly model: string;
  readonly input: Pick<ProviderInput, 'apiKey' | 'cloud'>;
}

type Reader = (context: CloudContext) => CloudDeployment | undefined;

/** By the cloud's id here. */
const readers: ReadonlyMap<string, Reader> = new Map([
  ['azure', readAzure],
  ['foundry', readAzure],
  ['vertex', readVertex],
  ['bedrock', readBedrock],
]);

/** Members of `litellm_params` that are read here. */
export const cloudParams: readonly string[] = [
  'api_version',
  'tenant_id',
  'client_id',
  'client_secret',
  'vertex_project',
  'vertex_location',
  'vertex_credentials',
  'vertex_ai_project',
  'vertex_ai_location',
  'vertex_ai_credentials',
  'aws_region_name',
  'aws_access_key_id',
  'aws_secret_access_key',
  'aws_session_token',
  'aws_profile_name',
  'aws_role_name',
  'aws_session_name',
  'aws_web_identity_token',
  'aws_bedrock_runtime_endpoint',
  'guardrailConfig',
];

/** Clouds whose `deployments` say which model a name stands for. */
export const namesDeployments: ReadonlySet<string> = new Set(['azure', 'foundry', 'bedrock']);

/** @returns undefined where the model cannot be called here, which is noted */
export function readCloud(context: CloudContext): CloudDeployment | undefined {
  const reader = readers.get(context.vendor);
  if (reader !== undefined) return reader(context);
  context.draft.note('left out', context.path, `import writes no provider for ${context.vendor}`);
  return undefined;
}

/** LiteLLM documents two names for each member of Vertex AI: `vertex_project` and `vertex_ai_project`. */
function vertexMember(params: Table, name: string): string {
  return params[`vertex_ai_${name}`] === undefined ? `vertex_${name}` : `vertex_ai_${name}`;
}

/** A member that is no secret. */
function plain({ params, draft }: CloudContext, member: string): string | undefined {
  const value = textOf(params[member]);
  return value === undefined ? undefined : plainText(value, draft);
}

/** A member that is a secret; `variable` takes its place where it is in the file. */
function secret(context: CloudContext, member: string, variable: string): string | undefined {
  const { params, draft, path } = context;
  const value = textOf(params[member]);
  return value === undefined
    ? undefined
    : secretReference(value, { draft, path: [...path, member], variable });
}

function readAzure(context: CloudContext): CloudDeployment {
  const { vendor, model, address, draft, path } = context;
  const resource =
    /^https:\/\/([A-Za-z0-9-]+)\.(?:openai\.azure|services\.ai\.azure|cognitiveservices\.azure)\.com(?:\/|$)/.exec(
      address ?? '',
    )?.[1];
  if (address === undefined) {
    draft.note('changed', path, `${vendor} needs its address: AZURE_API_BASE of the environment`);
  }
  const base = address ?? draft.variable('AZURE_API_BASE');
  const version = vendor === 'foundry' ? undefined : plain(context, 'api_version');
  const isDated = version !== undefined && /^(\$\{|20\d\d-|preview$)/.test(version);
  const tenant = plain(context, 'tenant_id');
  const client = plain(context, 'client_id');
  const entra = tenant !== undefined && client !== undefined;
  const cloud = defined({
    resource,
    base_url: resource === undefined ? base : undefined,
    api_version: isDated ? version : undefined,
    ...(entra ? { auth: 'entra', tenant_id: tenant, client_id: client } : {}),
    client_secret: secret(context, 'client_secret', 'AZURE_CLIENT_SECRET'),
  });
  if (entra) return { model, input: { cloud } };
  const apiKey = secret(context, 'api_key', 'AZURE_API_KEY') ?? draft.variable('AZURE_API_KEY');
  return { model, input: { apiKey, cloud } };
}

function readVertex(context: CloudContext): CloudDeployment | undefined {
  const { model, address, draft, path } = context;
  // The number of an endpoint of one's own, which runs a tuned model.
  const endpoint = /^(?:gemini\/)?(\d+)$/.exec(model)?.[1];
  if (/^openai\/\d/.test(model)) {
    const text = 'endpoints of own models with the API of OpenAI: declare it with base_url';
    draft.note('left out', [...path, 'model'], text);
    return undefined;
  }
  const { params } = context;
  const location = plain(context, vertexMember(params, 'location'));
  if (location === undefined) {
    const text = 'without vertex_location LiteLLM asks us-central1; VERTEXAI_LOCATION is not read';
    draft.note('changed', path, text);
  }
  const cloud = defined({
    project: plain(context, vertexMember(params, 'project')) ?? draft.variable('VERTEXAI_PROJECT'),
    location: location ?? 'us-central1',
    base_url: address,
    credentials: googleFile(context),
  });
  return { model: endpoint === undefined ? model : `endpoints/${endpoint}`, input: { cloud } };
}

/** The path of the file, or of the variable that names it. */
function googleFile(context: CloudContext): string | undefined {
  const { params, draft, path } = context;
  const member = vertexMember(params, 'credentials');
  const at = [...path, member];
  const value = params[member];
  if (value === undefined) {
    const why =
      'the account is that of GOOGLE_APPLICATION_CREDENTIALS, or of "gcloud auth application-default login"';
    draft.note('changed', path, why);
    draft.variables.add('GOOGLE_APPLICATION_CREDENTIALS');
    return undefined;
  }
  const text = textOf(value);
  if (text === undefined || text.trimStart().startsWith('{')) {
    const why =
      'the account stands in the file: write it to a file that VERTEXAI_CREDENTIALS names';
    draft.note('changed', at, why);
    return draft.variable('VERTEXAI_CREDENTIALS');
  }
  const reference = plainText(text, draft);
  if (reference !== text) draft.note('changed', at, 'the variable must hold the path of a file');
  return reference;
}

/** How LiteLLM asks, in front of the model: `converse/`, a region. Each model has one API here. */
const apiPrefix = /^(?:converse|converse_like|invoke)\//;
const regionInFront = /^([a-z]{2}(?:-[a-z]{2,12}){1,3}-\d{1,2})\//;
/** Agents, and models that an account has imported: neither Converse nor InvokeModel takes them as they are named. */
const notModels = /^(?:agent|agentcore|async_invoke|llama|deepseek_r1|qwen3|openai)\//;

function readBedrock(context: CloudContext): CloudDeployment | undefined {
  const { draft, path, address } = context;
  const named = context.model.replace(apiPrefix, '');
  const region = regionInFront.exec(named)?.[1];
  const model = region === undefined ? named : named.slice(region.length + 1);
  if (notModels.test(model)) {
    const text = `${model.slice(0, model.indexOf('/'))}: no model that Converse or InvokeModel answers for`;
    draft.note('left out', [...path, 'model'], text);
    return undefined;
  }
  const apiKey = secret(context, 'api_key', 'AWS_BEARER_TOKEN_BEDROCK');
  const cloud = defined({
    region: plain(context, 'aws_region_name') ?? region ?? draft.variable('AWS_REGION_NAME'),
    ...(apiKey === undefined ? awsAuth(context) : { auth: 'bearer' }),
    endpoint: plain(context, 'aws_bedrock_runtime_endpoint') ?? address,
    guardrail: guardrail(context),
  });
  return { model, input: { ...(apiKey === undefined ? {} : { apiKey }), cloud } };
}

/** What signs the calls. A role is not taken over by import: the chain of roles is in `~/.aws/config` here. */
function awsAuth(context: CloudContext): Fields {
  const { params, draft, path } = context;
  if (params['aws_web_identity_token'] !== undefined) {
    const names = ['AWS_WEB_IDENTITY_TOKEN_FILE', 'AWS_ROLE_ARN'];
    for (const name of names) draft.variable(name);
    const text = `read from ${names.join(' and ')}`;
    draft.note('changed', [...path, 'aws_web_identity_token'], text);
    return { auth: 'web_identity' };
  }
  if (params['aws_role_name'] !== undefined) {
    const text = 'a role is taken by a profile: role_arn in ~/.aws/config, and profile: NAME here';
    draft.note('changed', [...path, 'aws_role_name'], text);
  }
  const profile = plain(context, 'aws_profile_name');
  if (profile !== undefined) return { auth: 'profile', profile };
  const id = secret(context, 'aws_access_key_id', 'AWS_ACCESS_KEY_ID');
  if (id === undefined) {
    const text =
      'keys come from the environment; auth: container, instance, profile or web_identity take them elsewhere';
    draft.note('changed', path, text);
  }
  const key =
    secret(context, 'aws_secret_access_key', 'AWS_SECRET_ACCESS_KEY') ??
    draft.variable('AWS_SECRET_ACCESS_KEY');
  const token = secret(context, 'aws_session_token', 'AWS_SESSION_TOKEN');
  return defined({
    auth: 'keys',
    access_key_id: id ?? draft.variable('AWS_ACCESS_KEY_ID'),
    secret_access_key: key,
    session_token: token,
  });
}

/** `ID:VERSION` */
function guardrail({ params, draft }: CloudContext): string | undefined {
  const { guardrailIdentifier, guardrailVersion } = tableOf(params['guardrailConfig']);
  const id = textOf(guardrailIdentifier);
  const version = numberOf(guardrailVersion) ?? textOf(guardrailVersion);
  return id === undefined || version === undefined
    ? undefined
    : plainText(`${id}:${version}`, draft);
}
