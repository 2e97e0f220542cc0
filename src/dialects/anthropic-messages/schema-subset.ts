/**
 * The part of JSON Schema that the native service can enforce (wire/messages.md §2.3). What it refuses
 * moves into the description, where the model still reads it (wire/translation.md §1.7).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
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
export function strictSchema(schema: JsonObject): SubsetSchema {
  const moved = new Set<string>();
  return { schema: subset(schema, moved), moved: [...moved] };
}

function subset(schema: JsonObject, moved: Set<string>): JsonObject {
  const kept: JsonMembers = {};
  const told: string[] = [];
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || silentKeywords.has(key)) continue;
    const name = key === 'oneOf' ? 'anyOf' : key;
    const enforced = enforceable(name, value, moved);
    if (enforced !== undefined) setMember(kept, name, enforced);
    else if (name !== 'additionalProperties' || value !== false) {
      moved.add(key);
      told.push(`${key}: ${JSON.stringify(value)}`);
    }
  }
  if (isObjectSchema(kept)) kept['additionalProperties'] = false;
  if (told.length > 0) kept['description'] = described(kept['description'], told);
  return kept;
}

/** The keyword's value as the service takes it; undefined for a keyword that it refuses. */
function enforceable(name: string, value: Json, moved: Set<string>): Json | undefined {
  if (plainKeywords.has(name)) return value;
  if (nestedKeywords.has(name)) return subsetValue(value, moved);
  if (namedKeywords.has(name)) return subsetMembers(value, moved);
  return name === 'format' && stringFormats.has(String(value)) ? value : undefined;
}

function subsetValue(value: Json, moved: Set<string>): Json {
  if (isArray(value)) return value.map((each) => (isObject(each) ? subset(each, moved) : each));
  return isObject(value) ? subset(value, moved) : value;
}

/** Property names are data: one may be called like a keyword, or `__proto__` (B40). */
function subsetMembers(value: Json, moved: Set<string>): Json {
  if (!isObject(value)) return value;
  const members: JsonMembers = {};
  for (const [name, schema] of Object.entries(value)) {
    setMember(members, name, isObject(schema) ? subset(schema, moved) : (schema ?? null));
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
