/**
 * The part of JSON Schema that the native service can enforce (wire/messages.md §2.3). What it refuses
 * moves into the description, where the model still reads it (wire/translation.md §1.7).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import { Pace, type Steps } from '../../core/steps.ts';
import { isArray, type JsonMembers } from './fields.ts';

export interface SubsetSchema {
  readonly schema: JsonObject;
  /** Keywords that were moved, each once, in order of appearance. */
  readonly moved: readonly string[];
}

/** Keywords that are kept as they are. */
const plainKeywords: ReadonlySet<string> = new Set([
  'type',
  'title',
  'description',
  'enum',
  'const',
  'default',
  'required',
  '$ref',
]);
/** Keywords whose value is a schema, or a list of schemas. */
const nestedKeywords: ReadonlySet<string> = new Set(['items', 'anyOf', 'allOf']);
/** Keywords whose members are schemas under names of their own. */
const namedKeywords: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions']);
/** Keywords that say nothing about the value. */
const silentKeywords: ReadonlySet<string> = new Set(['$schema', '$id', '$comment']);
const stringFormats: ReadonlySet<string> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]);

/** The schema as the native service takes it, and what had to move. */
export function* strictSchema(schema: JsonObject): Steps<SubsetSchema> {
  const moved = new Set<string>();
  return { schema: yield* subset(schema, { moved, pace: new Pace() }), moved: [...moved] };
}

interface Narrowing {
  readonly moved: Set<string>;
  readonly pace: Pace;
}

function* subset(schema: JsonObject, narrowing: Narrowing): Steps<JsonObject> {
  if (narrowing.pace.due) yield;
  const kept: JsonMembers = {};
  const told: string[] = [];
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || silentKeywords.has(key)) continue;
    const name = key === 'oneOf' ? 'anyOf' : key;
    const enforced = yield* enforceable(name, value, narrowing);
    if (enforced !== undefined) setMember(kept, name, enforced);
    else if (name !== 'additionalProperties' || value !== false) {
      narrowing.moved.add(key);
      told.push(`${key}: ${JSON.stringify(value)}`);
    }
  }
  if (isObjectSchema(kept)) kept['additionalProperties'] = false;
  if (told.length > 0) kept['description'] = described(kept['description'], told);
  return kept;
}

/** The keyword's value as the service takes it; undefined for a keyword that it refuses. */
function* enforceable(name: string, value: Json, narrowing: Narrowing): Steps<Json | undefined> {
  if (plainKeywords.has(name)) return value;
  if (nestedKeywords.has(name)) return yield* subsetValue(value, narrowing);
  if (namedKeywords.has(name)) return yield* subsetMembers(value, narrowing);
  return name === 'format' && stringFormats.has(String(value)) ? value : undefined;
}

function* subsetValue(value: Json, narrowing: Narrowing): Steps<Json> {
  if (!isArray(value)) return isObject(value) ? yield* subset(value, narrowing) : value;
  const items: Json[] = [];
  for (const each of value) items.push(isObject(each) ? yield* subset(each, narrowing) : each);
  return items;
}

/** Property names are data: one may be called like a keyword, or `__proto__` (B40). */
function* subsetMembers(value: Json, narrowing: Narrowing): Steps<Json> {
  if (!isObject(value)) return value;
  const members: JsonMembers = {};
  // Pairs of 80,000 names would take five times as long to make, in one step.
  for (const name of Object.keys(value)) {
    const schema = value[name];
    setMember(
      members,
      name,
      isObject(schema) ? yield* subset(schema, narrowing) : (schema ?? null),
    );
  }
  return members;
}

function setMember(members: JsonMembers, key: string, value: Json): void {
  Object.defineProperty(members, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function isObjectSchema(schema: JsonObject): boolean {
  const { type } = schema;
  return (
    type === 'object' ||
    (isArray(type) && type.includes('object')) ||
    isObject(schema['properties'])
  );
}

function described(description: Json | undefined, told: readonly string[]): string {
  const rules = `(${told.join(', ')})`;
  return typeof description === 'string' && description !== '' ? `${description} ${rules}` : rules;
}
