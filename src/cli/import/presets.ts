/**
 * Configs of Portkey (portkey.ai/docs/product/ai-gateway/configs) and presets of OpenRouter
 * (openrouter.ai/docs/features/presets): one name with its targets.
 */
import { durationText } from '../../config/options.ts';
import type { ConfigPath } from '../../config/yaml-text.ts';
import type { Draft, Fields, KnownVendor, ProviderInput } from './draft.ts';
import {
  addressProblem,
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

/** Portkey's word → the vendor's id here, where they differ. */
const portkeyVendors: ReadonlyMap<string, string> = new Map([
  ['azure-openai', 'azure'],
  ['azure-ai', 'foundry'],
  ['google', 'gemini'],
  ['together-ai', 'together'],
  ['fireworks-ai', 'fireworks'],
  ['mistral-ai', 'mistral'],
  ['x-ai', 'xai'],
  ['vertex-ai', 'vertex'],
  ['dashscope', 'qwen'],
]);

interface Target {
  readonly target: string;
  readonly weight: number;
}

/** @param name what clients will call the config */
export function readPortkey(root: Table, draft: Draft, name: string): void {
  const targets = readTargets(root, [], draft);
  const isWeighted = readStrategy(tableOf(root['strategy']), draft) === 'weighted';
  const ms = numberOf(root['request_timeout']) ?? 0;
  if (ms > 0) draft.note('taken', ['request_timeout'], 'timeouts.document');
  for (const member of Object.keys(root)) {
    if (!portkeyMembers.has(member) && !isTargetMember(member)) noteMember([member], draft);
  }
  const plain = [...new Set(targets.map(({ target }) => target))];
  if (plain.length === 0) return;
  if (plain.length === 1 && ms <= 0) return draft.model(name, plain[0] ?? '', []);
  const route: Fields = {
    targets: isWeighted ? targets : plain,
    ...(isWeighted ? { order: 'weighted' } : {}),
    ...(ms > 0 ? { timeouts: { document: durationText(ms) } } : {}),
  };
  draft.model(name, route, []);
}

/** The order of the route. */
function readStrategy(strategy: Table, draft: Draft): string {
  const mode = textOf(strategy['mode']) ?? 'single';
  const order = mode === 'loadbalance' ? 'weighted' : 'listed';
  if (['loadbalance', 'fallback'].includes(mode))
    draft.note('taken', ['strategy'], `order: ${order}`);
  else if (mode !== 'single') {
    draft.note('left out', ['strategy'], `mode ${mode}: give each case a model name of its own`);
  }
  if (strategy['on_status_codes'] !== undefined) {
    const text = 'failures that another target may mend are repeated there: docs/user/retries.md';
    draft.note('changed', ['strategy', 'on_status_codes'], text);
  }
  return order;
}

const portkeyMembers = new Set(['strategy', 'targets', 'request_timeout']);

function isTargetMember(member: string): boolean {
  return /^(provider|api_key|virtual_key|custom_host|override_params|weight|azure_\w+|aws_\w+|vertex_\w+|name)$/.test(
    member,
  );
}

const memberWords: ReadonlyMap<string, readonly ['changed' | 'left out', string]> = new Map<
  string,
  readonly ['changed' | 'left out', string]
>([
  ['retry', ['changed', 'at most three attempts a call, with waits of their own']],
  [
    'cache',
    [
      'left out',
      'answers are not cached; a repeated call with an Idempotency-Key gets its stored answer',
    ],
  ],
  ['input_guardrails', ['left out', 'there are no guardrails']],
  ['output_guardrails', ['left out', 'there are no guardrails']],
  ['before_request_hooks', ['left out', 'there are no guardrails']],
  ['after_request_hooks', ['left out', 'there are no guardrails']],
  ['forward_headers', ['left out', 'headers of clients are not passed on']],
]);

function noteMember(path: ConfigPath, draft: Draft): void {
  const [kind, text] = memberWords.get(String(path.at(-1))) ?? [
    'not known',
    'no such option is known',
  ];
  draft.note(kind, path, text);
}

/** Nested strategies become one list, in their order. */
function readTargets(table: Table, path: ConfigPath, draft: Draft): readonly Target[] {
  const nested = listOf(table['targets']);
  if (nested.length === 0) {
    const own = readTarget(table, path, draft);
    return own === undefined ? [] : [own];
  }
  if (path.length > 0) {
    draft.note('changed', path, 'its targets stand in the list of the outer strategy');
  }
  return nested.flatMap((each, i) => readTargets(tableOf(each), [...path, 'targets', i], draft));
}

function readTarget(table: Table, path: ConfigPath, draft: Draft): Target | undefined {
  const overrides = tableOf(table['override_params']);
  const wanted = textOf(overrides['model']);
  const catalog = /^@([^/]+)\/(.+)$/.exec(wanted ?? '');
  const slug = textOf(table['provider']) ?? catalog?.[1] ?? textOf(table['virtual_key']);
  if (slug === undefined) {
    draft.note('not known', path, 'it names no provider');
    return undefined;
  }
  const input = readProvider(slug, table, { draft, path });
  if (input === undefined) return undefined;
  noteTargetMembers(table, path, draft);
  const id = draft.provider(input, path);
  const model = catalog?.[2] ?? wanted ?? textOf(table['azure_deployment_id']);
  if (model === undefined) {
    draft.note('changed', path, `it has no model: clients call ${id}/MODEL`);
    return undefined;
  }
  draft.note('taken', path, `${id}/${model}`);
  const weight = numberOf(table['weight']) ?? 1;
  return { target: `${id}/${model}`, weight: weight > 0 ? weight : 0.001 };
}

function noteTargetMembers(table: Table, path: ConfigPath, draft: Draft): void {
  // Those of the whole config are noted with it.
  const members = path.length === 0 ? [] : Object.keys(table);
  for (const member of members) if (!isTargetMember(member)) noteMember([...path, member], draft);
  for (const member of Object.keys(tableOf(table['override_params']))) {
    if (member === 'model') continue;
    const text = 'nothing is added to requests; clients send it';
    draft.note('left out', [...path, 'override_params', member], text);
  }
}

interface Position {
  readonly draft: Draft;
  readonly path: ConfigPath;
}

function readProvider(slug: string, table: Table, position: Position): ProviderInput | undefined {
  const { draft, path } = position;
  const plain = slug.replace(/^@/, '');
  const vendor = vendorOf(plain, draft);
  const host = textOf(table['custom_host']);
  const problem = host === undefined ? undefined : addressProblem(host);
  if ((vendor === undefined && host === undefined) || problem !== undefined) {
    const text =
      problem === undefined ? `there is no provider ${plain} here` : `the address ${problem}`;
    draft.note('left out', path, text);
    return undefined;
  }
  const baseUrl = host === undefined ? {} : { baseUrl: plainText(withoutSlash(host), draft) };
  const named = { name: plain, ...baseUrl };
  const vendorId = vendor?.id;
  const signed = signedClouds.get(vendorId ?? '');
  if (signed !== undefined) return { vendor: vendorId, ...named, cloud: signed(table, position) };
  const apiKey = keyOf(slug, vendor?.keyVariable ?? variableName(`${plain}_API_KEY`), {
    ...position,
    table,
  });
  const input = { vendor: vendorId, apiKey, ...named };
  return vendor?.isCloud === true ? { ...input, cloud: azureOf(table, draft) } : input;
}

function keyOf(
  slug: string,
  variable: string,
  { table, ...position }: Position & { readonly table: Table },
): string {
  if (table['virtual_key'] !== undefined || slug.startsWith('@')) {
    position.draft.note('changed', position.path, `its key stays with Portkey: set ${variable}`);
  }
  return secretOf(table, 'api_key', variable, position);
}

/** A secret, or the variable that takes its place where the config has none. */
function secretOf(
  table: Table,
  member: string,
  variable: string,
  { draft, path }: Position,
): string {
  const text = textOf(table[member]);
  return text === undefined
    ? draft.variable(variable)
    : secretReference(text, { draft, path: [...path, member], variable });
}

/** `@openai-prod` and `openai-3a9f` name a vendor in front. */
function vendorOf(slug: string, draft: Draft): KnownVendor | undefined {
  return [slug, slug.split('-')[0] ?? '']
    .map((name) => draft.vendor(portkeyVendors.get(name) ?? name))
    .find((each) => each !== undefined);
}

function azureOf(table: Table, draft: Draft): Fields {
  const resource = textOf(table['azure_resource_name']);
  const version = textOf(table['azure_api_version']);
  return {
    ...(resource === undefined ? { base_url: draft.variable('AZURE_API_BASE') } : { resource }),
    ...(version !== undefined && /^20\d\d-/.test(version) ? { api_version: version } : {}),
  };
}

/** Clouds that take no single key, by id: the members of the provider. */
const signedClouds: ReadonlyMap<string, (table: Table, position: Position) => Fields> = new Map([
  ['bedrock', bedrockOf],
  ['vertex', vertexOf],
]);

function bedrockOf(table: Table, position: Position): Fields {
  const { draft } = position;
  const token = textOf(table['aws_session_token']);
  return {
    region: plainText(textOf(table['aws_region']) ?? '', draft) || draft.variable('AWS_REGION'),
    auth: 'keys',
    access_key_id: secretOf(table, 'aws_access_key_id', 'AWS_ACCESS_KEY_ID', position),
    secret_access_key: secretOf(table, 'aws_secret_access_key', 'AWS_SECRET_ACCESS_KEY', position),
    ...(token === undefined
      ? {}
      : { session_token: secretOf(table, 'aws_session_token', 'AWS_SESSION_TOKEN', position) }),
  };
}

function vertexOf(table: Table, { draft, path }: Position): Fields {
  const text = 'the account is read from the file that GOOGLE_APPLICATION_CREDENTIALS names';
  draft.note('changed', path, text);
  draft.variables.add('GOOGLE_APPLICATION_CREDENTIALS');
  const location = textOf(table['vertex_region']);
  return {
    project:
      plainText(textOf(table['vertex_project_id']) ?? '', draft) ||
      draft.variable('GOOGLE_CLOUD_PROJECT'),
    ...(location === undefined ? {} : { location: plainText(location, draft) }),
  };
}

/** An OpenRouter preset: the config itself, or the answer of its API. */
export function readOpenrouter(root: Table, draft: Draft, name: string): void {
  const data = tableOf(root['data']);
  const version = tableOf(data['designated_version']);
  const isAnswer = root['data'] !== undefined;
  const config = isAnswer ? tableOf(version['config']) : root;
  const at = isAnswer ? ['data', 'designated_version', 'config'] : [];
  const models = [textOf(config['model']), ...listOf(config['models']).map(textOf)].flatMap(
    (model) => (model === undefined || model.startsWith('@preset/') ? [] : [model]),
  );
  const id = draft.provider(
    { vendor: 'openrouter', apiKey: draft.variable('OPENROUTER_API_KEY') },
    at,
  );
  const targets = [...new Set(models)].map((model) => `${id}/${model}`);
  if (targets.length === 0) draft.note('not known', at, 'it names no model');
  else {
    draft.note('taken', [...at, 'model'], `${name} → ${targets.join(', ')}`);
    draft.model(name, targets.length === 1 ? (targets[0] ?? '') : { targets }, at);
  }
  for (const member of Object.keys(config)) {
    if (member === 'model' || member === 'models') continue;
    const text =
      member === 'provider'
        ? 'the choice among hosts stays with OpenRouter: keep the preset there and call openrouter/@preset/NAME'
        : 'nothing is added to requests; clients send it';
    draft.note('left out', [...at, member], text);
  }
}
