/** JSON Schema's ways to combine schemas: references, `allOf`, and which keywords mean anything. */
import { isArray, isObject, type Json, type JsonObject } from './engine-error.ts';

/** Keywords that do not restrict values. */
export const annotations: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$comment',
  '$anchor',
  '$defs',
  'definitions',
  'title',
  'description',
  'default',
  'example',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
  'contentEncoding',
  'contentMediaType',
]);

export type SchemaType = 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean' | 'null';

/** Keywords that restrict values of one type only. */
export const typeKeywords: { readonly [type in SchemaType]: readonly string[] } = {
  object: [
    'properties',
    'required',
    'additionalProperties',
    'minProperties',
    'maxProperties',
    'patternProperties',
    'propertyNames',
    'dependentRequired',
    'dependentSchemas',
    'dependencies',
    'unevaluatedProperties',
  ],
  array: [
    'items',
    'minItems',
    'maxItems',
    'prefixItems',
    'additionalItems',
    'uniqueItems',
    'contains',
    'minContains',
    'maxContains',
    'unevaluatedItems',
  ],
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  integer: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  boolean: [],
  null: [],
};

const schemaTypes: readonly SchemaType[] = [
  'object',
  'array',
  'string',
  'number',
  'integer',
  'boolean',
  'null',
];

/** The types that a schema names, or that its keywords speak of; undefined = any. */
export function typesOf(schema: JsonObject): readonly SchemaType[] | undefined {
  const type = schema['type'];
  const named = isArray(type) ? type : type === undefined ? [] : [type];
  const types = schemaTypes.filter((name) => named.includes(name));
  if (named.length > 0) return types;
  const meant = schemaTypes.find((name) => typeKeywords[name].some((key) => key in schema));
  return meant === undefined ? undefined : [meant];
}

/** What a `#/…` reference points at; undefined when there is nothing. */
export function resolveReference(root: Json, reference: string): Json | undefined {
  if (!reference.startsWith('#')) return undefined;
  let current: Json | undefined = root;
  for (const step of reference.slice(1).split('/').slice(1)) {
    const key = decoded(step).replaceAll('~1', '/').replaceAll('~0', '~');
    if (isArray(current)) current = current[Number(key)];
    else current = isObject(current) && Object.hasOwn(current, key) ? current[key] : undefined;
  }
  return current;
}

/** A percent sign that begins no escape stands for itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * One schema that says what both say; a keyword's name when they speak of the same thing in ways that
 * cannot be put together.
 */
export function mergeSchemas(first: JsonObject, second: JsonObject): JsonObject | string {
  const merged: Record<string, Json | undefined> = { ...first };
  for (const [key, value] of Object.entries(second)) {
    if (value === undefined || annotations.has(key)) continue;
    const both = mergeValues(key, merged[key], value);
    if (both === undefined) return key;
    merged[key] = both;
  }
  // "No other properties" counts the properties of its own schema only.
  const closed = [first, second].some((schema) => 'additionalProperties' in schema);
  const bothDeclare = 'properties' in first && 'properties' in second;
  return closed && bothDeclare ? 'additionalProperties' : merged;
}

/** One keyword's value that says what both say; undefined when there is none. */
function mergeValues(key: string, first: Json | undefined, second: Json): Json | undefined {
  if (first === undefined) return second;
  if (key === 'required' && isArray(first) && isArray(second)) {
    return [...new Set([...first, ...second])];
  }
  if (key === 'properties' && isObject(first) && isObject(second)) {
    const shared = Object.keys(second).some((name) => Object.hasOwn(first, name));
    return shared ? undefined : { ...first, ...second };
  }
  return JSON.stringify(first) === JSON.stringify(second) ? first : undefined;
}
