/**
 * Models that a request names besides its own. Some vendors answer with one of them when they like, and
 * charge for it: what holds for a call's model holds for these.
 */
import type { Json, JsonObject } from '../core/conversation.ts';
import { invalidRequest } from '../core/errors.ts';
import { isObject } from '../core/json.ts';
import type { Route } from '../core/provider.ts';

export interface OtherModels {
  /** The first member of the request that names one. */
  readonly member: string;
  /** All of them, as clients would call them here. */
  readonly names: readonly string[];
}

/** `fallbacks` of the messages format and of proxies; OpenRouter's `models`, and `preset`, which may hold some. */
const members = ['fallbacks', 'models', 'preset'] as const;
/** Messages: `advisor` tools ask another model. OpenRouter: its own tools and plugins do. */
const lists = ['tools', 'plugins'] as const;

/** Their spellings are looked at one by one: a long list is no list of models. */
const mostNames = 20;
/** No provider has longer ones; one that is longer is no name at all. */
const longestName = 512;

/**
 * Undefined where there are none, or no target of the route would be told.
 * @throws GatewayError `invalid_request` where there are more than anybody needs.
 */
export function otherModels(
  body: JsonObject,
  { dialect, route }: { readonly dialect: { readonly id: string }; readonly route: Route },
): OtherModels | undefined {
  const found = namedIn(body);
  if (found === undefined) return undefined;
  const told = route.targets.filter(({ provider }) => provider.dialect.id === dialect.id);
  if (told.length === 0) return undefined;
  const names = told.flatMap(({ provider }) => found.names.map((name) => `${provider.id}/${name}`));
  return { member: found.member, names };
}

/** By all members: a harmless one must not hide another. Most requests have none, and nothing is made for them. */
function namedIn(body: JsonObject): OtherModels | undefined {
  const found: Found = { member: '', names: undefined };
  for (const member of members) note(found, member, namesIn(body[member]));
  for (const member of lists) {
    const value = body[member];
    if (!Array.isArray(value)) continue;
    for (const each of value) note(found, member, namedBy(each));
  }
  const { member, names } = found;
  return names === undefined ? undefined : { member, names: [...names] };
}

interface Found {
  member: string;
  /** Each once: a long body can name one a million times. */
  names: Set<string> | undefined;
}

function note(found: Found, member: string, names: readonly string[] | undefined): void {
  if (names === undefined) return;
  if (found.names === undefined) {
    found.names = new Set();
    found.member = member;
  }
  for (const name of names) found.names.add(name.length > longestName ? '' : name);
  if (found.names.size > mostNames) {
    throw invalidRequest(`A request may name at most ${mostNames} models besides its own.`, [
      member,
    ]);
  }
}

function namesIn(value: Json | undefined): readonly string[] | undefined {
  if (value === undefined || value === null || isEmpty(value)) return undefined;
  return Array.isArray(value) ? value.map(nameOf) : [nameOf(value)];
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

function isEmpty(value: Json): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** What is no name at all is a model that nobody may call unless he may call all. */
function nameOf(value: Json): string {
  if (typeof value === 'string') return value;
  if (!isObject(value)) return '';
  const { model } = value;
  return typeof model === 'string' ? model : (Object.keys(value)[0] ?? '');
}
