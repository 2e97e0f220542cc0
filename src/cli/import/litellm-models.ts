/**
 * `model_list` of LiteLLM (docs.litellm.ai/docs/proxy/configs): deployments become providers and targets, groups of one
 * name become routes.
 */
import { durationText } from '../../config/options.ts';
import type { ConfigPath } from '../../config/yaml-text.ts';
import { decimalText, scaledDecimal } from '../../core/money.ts';
import { cloudParams, namesDeployments, readCloud } from './litellm-clouds.ts';
import { slug, type Draft, type Fields, type KnownVendor, type ProviderInput } from './draft.ts';
import {
  addressProblem,
  headersOf,
  listOf,
  numberOf,
  plainText,
  secretReference,
  tableOf,
  textOf,
  variableName,
  withoutSlash,
  type Table,
} from './values.ts';

/** One deployment, as a target of its group. */
export interface Deployment {
  /** `provider/model` */
  readonly target: string;
  readonly weight: number | undefined;
  /** Lower comes first. */
  readonly order: number | undefined;
  readonly documentMs: number | undefined;
  readonly firstEventMs: number | undefined;
  readonly usesResponses: boolean;
  readonly marksCache: boolean;
  readonly path: ConfigPath;
}

/** By `model_name`, in the order of the file. */
export type Groups = Map<string, Deployment[]>;

/** LiteLLM's prefix → the vendor's id here. */
const vendorIds: ReadonlyMap<string, string> = new Map([
  ['openai', 'openai'],
  ['azure', 'azure'],
  ['azure_ai', 'foundry'],
  ['anthropic', 'anthropic'],
  ['openrouter', 'openrouter'],
  ['groq', 'groq'],
  ['mistral', 'mistral'],
  ['deepseek', 'deepseek'],
  ['xai', 'xai'],
  ['together_ai', 'together'],
  ['fireworks_ai', 'fireworks'],
  ['moonshot', 'moonshot'],
  ['zai', 'zai'],
  ['dashscope', 'qwen'],
  ['minimax', 'minimax'],
  ['cerebras', 'cerebras'],
  ['gemini', 'gemini'],
  ['vertex_ai', 'vertex'],
  ['vertex_ai_beta', 'vertex'],
  ['bedrock', 'bedrock'],
  ['bedrock_converse', 'bedrock'],
  ['ollama', 'ollama'],
  ['ollama_chat', 'ollama'],
  ['hosted_vllm', 'vllm'],
  ['lm_studio', 'lm-studio'],
]);

/** Vendors without a row here that speak chat completions, with the addresses that they publish. */
const compatibleAddresses: ReadonlyMap<string, string> = new Map([
  ['perplexity', 'https://api.perplexity.ai'],
  ['nvidia_nim', 'https://integrate.api.nvidia.com/v1'],
  ['deepinfra', 'https://api.deepinfra.com/v1/openai'],
  ['sambanova', 'https://api.sambanova.ai/v1'],
]);

/** Prefixes of any server that speaks chat completions. */
const anyServer = new Set(['openai_like', 'custom_openai', 'litellm_proxy', 'llamafile']);

/** Names that LiteLLM gives to a vendor without a prefix. */
const namesOfVendors: readonly (readonly [RegExp, string])[] = [
  [/^(gpt-|o\d|chatgpt-|ft:gpt-)/, 'openai'],
  [/^claude-/, 'anthropic'],
];

/** Members that are read; everything else is known without a counterpart, or not known. */
const readParams = new Set([
  'model',
  'custom_llm_provider',
  'api_key',
  'api_base',
  'base_url',
  'organization',
  'headers',
  'extra_headers',
  'default_headers',
  'weight',
  'rpm',
  'tpm',
  'order',
  'timeout',
  'stream_timeout',
  'cache_control_injection_points',
  'litellm_credential_name',
  ...cloudParams,
]);

const costNames: readonly (readonly [string, string])[] = [
  ['input_cost_per_token', 'input'],
  ['output_cost_per_token', 'output'],
  ['cache_read_input_token_cost', 'cache_read'],
  ['cache_creation_input_token_cost', 'cache_write'],
  ['output_cost_per_reasoning_token', 'reasoning'],
];

/** Why a known member has no counterpart. */
const withoutCounterpart: ReadonlyMap<string, string> = new Map([
  ['max_retries', 'at most three attempts a call, always'],
  ['num_retries', 'at most three attempts a call, always'],
  ['max_parallel_requests', 'limits belong to keys, teams and tags: concurrent'],
  ['azure_ad_token', 'tokens are fetched: auth: entra with tenant_id, client_id and client_secret'],
  ['tags', 'targets are not chosen by tags; give each tag a model name of its own'],
  ['max_budget', 'budgets belong to keys, teams and tags'],
  ['budget_duration', 'budgets belong to keys, teams and tags'],
  ['ssl_verify', 'certificates are always verified; ca: names an authority'],
  [
    'drop_params',
    'what a target cannot take is dropped and named in x-gateway-notes, or refused with strict: true',
  ],
  ['additional_drop_params', 'members that a target refuses are left out by themselves'],
  ['mock_response', 'nothing is made up here'],
  ['merge_reasoning_content_in_choices', 'reasoning stays apart from the answer'],
  ['use_in_pass_through', 'there are no pass-through endpoints'],
  ['region_name', 'providers have region, for models that must stay in one'],
  ['input_cost_per_second', 'prices are by token and by call'],
  ['output_cost_per_second', 'prices are by token and by call'],
]);

/** Members of requests that LiteLLM adds to each call. */
const requestMembers =
  /^(temperature|max_tokens|max_completion_tokens|top_p|top_k|stop|seed|n|presence_penalty|frequency_penalty|extra_body|reasoning_effort|thinking|response_format|tools|tool_choice|logit_bias|user|stream|service_tier|allowed_openai_params)$/;

/** Modes of models that clients of this gateway can call. */
const callableModes = new Set(['chat', 'completion', 'responses']);

interface Context {
  readonly draft: Draft;
  /** `credential_list`, by name. */
  readonly credentials: ReadonlyMap<string, Table>;
  /** `litellm_settings`: what all models of Vertex AI have. */
  readonly settings: Table;
}

/** Reads `model_list`; providers and prices go into the draft. */
export function readModelList(root: Table, draft: Draft): Groups {
  const groups: Groups = new Map();
  const settings = tableOf(root['litellm_settings']);
  const context = { draft, credentials: readCredentials(root, draft), settings };
  if (root['model_list'] !== undefined && !Array.isArray(root['model_list'])) {
    draft.note('not known', ['model_list'], 'a list of models was expected');
  }
  listOf(root['model_list']).forEach((item, i) => {
    const path = ['model_list', i];
    const entry = tableOf(item);
    const name = textOf(entry['model_name']);
    if (name === undefined) return draft.note('not known', path, 'it has no model_name');
    const deployment = readDeployment(name, entry, { ...context, path });
    if (deployment === undefined) return;
    groups.set(name, [...(groups.get(name) ?? []), deployment]);
  });
  return groups;
}

function readCredentials(root: Table, draft: Draft): ReadonlyMap<string, Table> {
  const entries = listOf(root['credential_list']).flatMap((item, i) => {
    const { credential_name: name, credential_values: values } = tableOf(item);
    if (typeof name !== 'string') return [];
    draft.note('taken', ['credential_list', i], 'into the providers of its models');
    return [[name, tableOf(values)] as const];
  });
  return new Map(entries);
}

interface Scope extends Context {
  readonly path: ConfigPath;
}

function readDeployment(name: string, entry: Table, scope: Scope): Deployment | undefined {
  const { draft, path, credentials, settings } = scope;
  const own = tableOf(entry['litellm_params']);
  const credential = credentials.get(String(own['litellm_credential_name']));
  const params = { ...vertexSettings(settings), ...credential, ...own };
  const info = tableOf(entry['model_info']);
  const at = [...path, 'litellm_params'];
  const model = textOf(params['model']);
  if (model === undefined) {
    draft.note('not known', path, 'it has no litellm_params.model');
    return undefined;
  }
  const mode = textOf(info['mode']) ?? 'chat';
  if (!callableModes.has(mode)) {
    draft.note('left out', path, `${name}: there is no endpoint for mode ${mode}`);
    return undefined;
  }
  const found = readUpstream(model, params, { ...scope, path: at });
  if (found === undefined) return undefined;
  const id = draft.provider(found.input, path);
  noteRest({ name, own, info, scope });
  if (found.model.includes('*')) {
    draft.note('changed', path, `every model of ${id} is called ${id}/MODEL, without an entry`);
    return undefined;
  }
  const base = textOf(info['base_model'])?.replace(/^(azure|bedrock)\//, '');
  if (base !== undefined && namesDeployments.has(found.input.vendor ?? '')) {
    draft.deployment(id, found.model, base);
  }
  const target = `${id}/${found.model}`;
  readPrice(target, { ...info, ...params }, scope);
  if (/\s/.test(name)) {
    draft.note('changed', path, 'names of models have no spaces: they became -');
  }
  draft.note('taken', path, `${name.replace(/\s+/g, '-')} → ${target}`);
  const seconds = (member: string): number | undefined => {
    const value = numberOf(params[member]);
    return value === undefined || value <= 0 ? undefined : Math.round(value * 1000);
  };
  return {
    target,
    weight: numberOf(params['weight'] ?? params['rpm'] ?? params['tpm']),
    order: numberOf(params['order']),
    documentMs: seconds('timeout'),
    firstEventMs: seconds('stream_timeout'),
    usesResponses: found.usesResponses || mode === 'responses',
    marksCache: params['cache_control_injection_points'] !== undefined,
    path,
  };
}

/** `vertex_project`, `vertex_location`. */
function vertexSettings(settings: Table): Table {
  return Object.fromEntries(
    Object.entries(settings).filter(([name]) => name.startsWith('vertex_')),
  );
}

interface Upstream {
  readonly input: ProviderInput;
  readonly model: string;
  readonly usesResponses: boolean;
}

function readUpstream(text: string, params: Table, scope: Scope): Upstream | undefined {
  const { draft, path } = scope;
  const named = textOf(params['custom_llm_provider']);
  const slash = text.indexOf('/');
  const guessed = namesOfVendors.find(([form]) => form.test(text))?.[1];
  const prefix = named ?? (slash === -1 ? guessed : text.slice(0, slash));
  const whole = slash === -1 || (named !== undefined && !text.startsWith(`${named}/`));
  const rest = whole ? text : text.slice(slash + 1);
  if (prefix === undefined) {
    draft.note('not known', [...path, 'model'], `${text} names no provider: write provider/model`);
    return undefined;
  }
  const model = rest.replace(/^responses\//, '');
  const server = readServer(prefix, { ...scope, params, model });
  return server === undefined ? undefined : { model, usesResponses: model !== rest, ...server };
}

interface Server extends Scope {
  readonly params: Table;
  readonly model: string;
}

interface FoundServer {
  readonly input: ProviderInput;
  /** Where the model has another name here. */
  readonly model?: string;
}

function readServer(prefix: string, scope: Server): FoundServer | undefined {
  const { draft, path } = scope;
  const address = readAddress(scope);
  if (address === false) return undefined;
  const vendorId = vendorIds.get(prefix);
  const isOwn = isOwnAddress(vendorId, address, draft);
  const isGeneric = anyServer.has(prefix) || (vendorId === 'openai' && !isOwn);
  const compatible = compatibleAddresses.get(prefix);
  const vendor = isGeneric ? undefined : draft.vendor(vendorId ?? '');
  if (vendor?.isCloud === true) return cloudServer(vendor.id, address, scope);
  if (vendor === undefined && compatible === undefined && !(isGeneric && address !== undefined)) {
    const text = `import writes no provider for ${prefix}: declare it under providers: (docs/operator/clouds.md)`;
    draft.note('left out', [...path, 'model'], text);
    return undefined;
  }
  const baseUrl = isOwn && vendor !== undefined ? undefined : (address ?? compatible);
  return { input: serverInput({ vendor, baseUrl, prefix }, scope) };
}

function cloudServer(
  vendor: string,
  address: string | undefined,
  scope: Server,
): FoundServer | undefined {
  const { model, params, draft, path } = scope;
  const cloud = readCloud({ vendor, model, address, params, draft, path });
  if (cloud === undefined) return undefined;
  const headers = readHeaders(params, { ...scope, prefix: vendor });
  return { model: cloud.model, input: { vendor, headers, ...cloud.input } };
}

interface ServerInput {
  readonly vendor: KnownVendor | undefined;
  readonly baseUrl: string | undefined;
  readonly prefix: string;
}

function serverInput({ vendor, baseUrl, prefix }: ServerInput, scope: Server): ProviderInput {
  const { draft, params } = scope;
  const isNamed = compatibleAddresses.has(prefix);
  const server = baseUrl === undefined || isNamed ? prefix : slug(baseUrl);
  const variable = vendor?.keyVariable ?? variableName(`${server}_API_KEY`);
  const given = readKey(params, { ...scope, variable });
  // LiteLLM reads the vendor's variable itself.
  const isUsual = vendor?.keyVariable !== undefined || isNamed;
  const apiKey = given ?? (isUsual ? draft.variable(variable) : undefined);
  const organization = textOf(params['organization']);
  return {
    vendor: vendor?.id,
    ...(baseUrl === undefined ? {} : { baseUrl: engineAddress(vendor?.id, baseUrl) }),
    ...(apiKey === undefined ? {} : { apiKey }),
    headers: {
      ...(organization === undefined
        ? {}
        : { 'openai-organization': plainText(organization, draft) }),
      ...readHeaders(params, { ...scope, prefix }),
    },
    ...(isNamed ? { name: prefix } : {}),
  };
}

/** Undefined where there is none; false where it cannot be taken, which is noted. */
function readAddress({ draft, path, params }: Server): string | undefined | false {
  const member = params['api_base'] === undefined ? 'base_url' : 'api_base';
  const text = textOf(params[member]);
  if (text === undefined) return undefined;
  const address = withoutSlash(plainText(text, draft));
  const problem = addressProblem(address);
  if (problem === undefined) return address;
  draft.note('not known', [...path, member], `the address ${problem}`);
  return false;
}

/** Whether the address is the vendor's own, or none is given. */
function isOwnAddress(
  vendorId: string | undefined,
  address: string | undefined,
  draft: Draft,
): boolean {
  const own = vendorId === undefined ? undefined : draft.vendor(vendorId)?.baseUrl;
  return address === undefined || address === own || `${address}/v1` === own;
}

/** LiteLLM's address of Ollama is without the path of its OpenAI API. */
function engineAddress(vendor: string | undefined, address: string): string {
  return vendor === 'ollama' && !address.endsWith('/v1') ? `${address}/v1` : address;
}

/** What people write for a server that requires no key. */
const noKeys =
  /^(none|null|empty|dummy|na|ollama|lm-studio|anything|sk-anything|fake-key|not-needed)$/i;

function readKey(
  params: Table,
  { draft, path, variable }: Server & { readonly variable: string },
): string | undefined {
  const text = textOf(params['api_key']);
  if (text === undefined || noKeys.test(text)) return undefined;
  return secretReference(text, { draft, path: [...path, 'api_key'], variable });
}

function readHeaders(
  params: Table,
  { draft, path, prefix }: Server & { readonly prefix: string },
): { readonly [name: string]: string } {
  const members = ['headers', 'default_headers', 'extra_headers'];
  const each = members.map((member) =>
    headersOf(tableOf(params[member]), { draft, path: [...path, member], prefix }),
  );
  return Object.assign({}, ...each);
}

/** Dollars a token there, dollars per million tokens here. */
function readPrice(target: string, source: Table, { draft, path }: Scope): void {
  const rates = costNames.flatMap(([there, here]) => {
    const value = numberOf(source[there]);
    const read = value === undefined ? undefined : scaledDecimal(String(value), 12);
    return read === undefined ? [] : [[here, Number(decimalText(read.units, 6))] as const];
  });
  const price = Object.fromEntries(rates);
  if (Object.keys(price).length === 0) return;
  if (price['input'] === undefined || price['output'] === undefined) {
    return draft.note(
      'left out',
      path,
      'a price needs input_cost_per_token and output_cost_per_token',
    );
  }
  draft.option('prices', target, price);
  draft.note('taken', path, `price of ${target}`);
}

interface RestOf {
  readonly name: string;
  readonly own: Table;
  readonly info: Table;
  readonly scope: Scope;
}

/** Notes on members that have no counterpart. */
function noteRest({ own, info, scope: { draft, path } }: RestOf): void {
  const costs = new Set(costNames.map(([there]) => there));
  for (const member of Object.keys(own)) {
    if (readParams.has(member) || costs.has(member)) continue;
    const why = requestMembers.test(member)
      ? 'nothing is added to requests; clients send it'
      : withoutCounterpart.get(member);
    const kind = why === undefined ? 'not known' : 'left out';
    draft.note(kind, [...path, 'litellm_params', member], why ?? 'no such option is known');
  }
  const [share, ...others] = ['weight', 'rpm', 'tpm'].filter((each) => own[each] !== undefined);
  for (const member of [share, ...others].filter((each) => each === 'rpm' || each === 'tpm')) {
    const limits = 'limits belong to keys, teams and tags';
    const text = `where the name has several targets it is a weight among them; ${limits}`;
    const at = [...path, 'litellm_params', member];
    if (member === share) draft.note('changed', at, text);
    else draft.note('left out', at, limits);
  }
  for (const member of ['access_groups', 'team_id'].filter((each) => info[each] !== undefined)) {
    const text = 'keys name the models that they may use: models: [GLOB]';
    draft.note('left out', [...path, 'model_info', member], text);
  }
}

/** `timeouts` of a route. */
export function timeoutsOf(deployments: readonly Deployment[]): Fields | undefined {
  const longest = (values: readonly (number | undefined)[]): number | undefined => {
    const given = values.flatMap((value) => (value === undefined ? [] : [value]));
    return given.length === 0 ? undefined : Math.max(...given);
  };
  const document = longest(deployments.map(({ documentMs }) => documentMs));
  const firstEvent = longest(deployments.map(({ firstEventMs }) => firstEventMs));
  if (document === undefined && firstEvent === undefined) return undefined;
  return {
    ...(document === undefined ? {} : { document: durationText(document) }),
    ...(firstEvent === undefined ? {} : { first_event: durationText(firstEvent) }),
  };
}
