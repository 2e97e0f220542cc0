/**
 * What a request asks a vendor for besides an answer of its model: web searches, which have a price each, and other
 * models that may answer instead.
 */
import type { NamedModels, SearchRequest } from '../../../core/description.ts';
import { invalidRequest } from '../../../core/errors.ts';
import { openFields, whole, wholes } from '../../../core/shape.ts';
import { type Json, type JsonObject, isObject } from '../../../json/value.ts';

/** Searches that are reserved where the request says no number. */
const defaultSearches = 5;
/** Results of one search; OpenRouter charges its `web` plugin by them, five by default. */
const defaultResults = 5;
/** Sources of a live search that are reserved where the request says no number. */
const defaultSources = 20;

/** @param always the target searches for each request that requests it, whatever its model wants. */
export function searchesIn(body: JsonObject, always: boolean): readonly SearchRequest[] {
  const found: SearchRequest[] = [];
  if (isObject(body['web_search_options'])) found.push(oneSearch('web_search_options'));
  if (body['enable_search'] === true) found.push(oneSearch('enable_search'));
  found.push(...searchesOfParameters(body['search_parameters']));
  for (const tool of listOf(body['tools'])) found.push(...searchesOfTool(tool, always));
  for (const plugin of listOf(body['plugins'])) found.push(...searchesOfPlugin(plugin));
  return found;
}

/** One search that is run for sure. */
export function oneSearch(member: string): SearchRequest {
  return { member, most: defaultSearches, unreported: 1 };
}

/** xAI's live search, which costs by the source. */
function searchesOfParameters(parameters: Json | undefined): readonly SearchRequest[] {
  if (!isObject(parameters) || parameters['mode'] === 'off') return [];
  const sources = parameters['max_search_results'];
  const most = typeof sources === 'number' && sources > 0 ? Math.ceil(sources) : defaultSources;
  return [{ member: 'search_parameters', most, unreported: 0 }];
}

/** `web_search_…` of the messages format, `openrouter:web_search`; the model may leave it alone. */
function searchesOfTool(tool: Json, always: boolean): readonly SearchRequest[] {
  if (!isObject(tool)) return [];
  const { type, max_uses: uses } = tool;
  if (typeof type !== 'string' || !isSearch(type)) return [];
  const most = typeof uses === 'number' && uses >= 0 ? Math.ceil(uses) : defaultSearches;
  return most === 0 ? [] : [{ member: 'tools', most, unreported: always ? 1 : 0 }];
}

/** Whether a tool of this type has the provider search the web. */
export function isSearch(type: string): boolean {
  return type.startsWith('web_search') || type.endsWith(':web_search');
}

function searchesOfPlugin(plugin: Json): readonly SearchRequest[] {
  if (!isObject(plugin) || plugin['id'] !== 'web' || plugin['enabled'] === false) return [];
  const results = plugin['max_results'];
  const paid = typeof results === 'number' ? Math.ceil(results / defaultResults) : 1;
  const unreported = Math.max(1, paid);
  return [{ member: 'plugins', most: Math.max(defaultSearches, unreported), unreported }];
}

/** `fallbacks` of the messages format and of proxies; OpenRouter's `models`, and `preset`, which may hold some. */
const modelMembers = ['fallbacks', 'models', 'preset'] as const;
/** Messages: `advisor` tools ask another model. OpenRouter: its own tools and plugins do. */
const modelLists = ['tools', 'plugins'] as const;

/** The spellings of each name are compared one by one, so their number is bounded. */
const maxNames = 20;
/** No provider has longer names; a longer one matches no allowed model. */
const maxNameLength = 512;

/**
 * Models by all members: a harmless one must not hide another. Most requests have none, and nothing is allocated then.
 * @throws GatewayError `invalid_request` for more than 20 names.
 */
export function modelsNamedIn(body: JsonObject): NamedModels | undefined {
  const found: Found = { member: '', names: undefined };
  for (const member of modelMembers) note(found, member, namesIn(body[member]));
  for (const member of modelLists) {
    const value = body[member];
    if (!Array.isArray(value)) continue;
    for (const each of value) note(found, member, namedBy(each));
  }
  const { member, names } = found;
  return names === undefined ? undefined : { member, names: [...names] };
}

interface Found {
  member: string;
  /** A set, since a long body can repeat one name a million times. */
  names: Set<string> | undefined;
}

function note(found: Found, member: string, names: readonly string[] | undefined): void {
  if (names === undefined) return;
  if (found.names === undefined) {
    found.names = new Set();
    found.member = member;
  }
  for (const name of names) found.names.add(name.length > maxNameLength ? '' : name);
  if (found.names.size > maxNames) {
    throw invalidRequest(`A request may name at most ${maxNames} models in addition to its own.`, [
      member,
    ]);
  }
}

function namesIn(value: Json | undefined): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) return [nameOf(value)];
  return value.length === 0 ? undefined : value.map(nameOf);
}

/** A function that the client runs names its parameters a level below. */
function namedBy(tool: Json): readonly string[] | undefined {
  if (!isObject(tool)) return undefined;
  const { model, parameters } = tool;
  if (typeof model === 'string') return [model];
  const inner = isObject(parameters) ? parameters['model'] : undefined;
  if (typeof inner === 'string') return [inner];
  const several = tool['models'] ?? tool['analysis_models'];
  return Array.isArray(several) ? several.map(nameOf) : undefined;
}

/** `''`, which only a key for all models may call, stands for a value that is not a name. */
function nameOf(value: Json): string {
  if (typeof value === 'string') return value;
  if (!isObject(value)) return '';
  const { model } = value;
  return typeof model === 'string' ? model : (Object.keys(value)[0] ?? '');
}

function listOf(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

// Members outside both APIs that the gateway reads in every dialect: they name other models or have a price
// (`gateway/call-size.ts`), or are read as part of the prompt.

/** What names models: texts, objects with `model`, or objects whose first key is one. */
const models = openFields(wholes('model'));

/** The members of tools that ask other models or have a price. */
export const pricedTool = {
  ...wholes('type', 'model', 'models', 'analysis_models', 'max_uses'),
  parameters: models,
};

export const vendorMembers = {
  fallbacks: models,
  models,
  preset: models,
  plugins: openFields({
    ...wholes('id', 'enabled', 'max_results', 'models', 'analysis_models', 'model'),
    parameters: models,
  }),
  route: whole,
  provider: openFields(wholes('order', 'only', 'ignore', 'sort', 'quantizations')),
  speed: whole,
  service_tier: whole,
  system: whole,
  output_config: whole,
  functions: whole,
  response_format: whole,
  web_search_options: whole,
  search_parameters: openFields(wholes('mode', 'max_search_results')),
  enable_search: whole,
  prediction: whole,
  modalities: whole,
  mcp_servers: whole,
  inference_geo: whole,
  context_management: openFields({ edits: openFields(wholes('type')) }),
  metadata: whole,
  user: whole,
  safety_identifier: whole,
} as const;
