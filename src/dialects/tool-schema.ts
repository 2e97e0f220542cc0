/**
 * Tool schemas for servers that refuse parts of JSON Schema (B8). Which server needs what is a trait;
 * all others get schemas as the client wrote them. Names of properties are data, never keywords.
 */
import type { Json, JsonObject } from '../core/conversation.ts';
import { isObject } from '../core/json.ts';
import { Pace, type Steps } from '../core/steps.ts';
import type { SchemaRules } from '../core/traits.ts';
import {
  hasType,
  isList,
  joined,
  OpenapiSchema,
  setMember,
  type Members,
} from './schema-openapi.ts';
import { SchemaRefs } from './schema-refs.ts';

export interface CleanSchema {
  readonly schema: JsonObject;
  /** Keywords whose loss changes what is valid, each once, in order of appearance. */
  readonly removed: readonly string[];
}

/** Say who the schema is, not what is valid; what they define was put where it is used. */
const identity: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$comment',
  '$anchor',
  '$dynamicAnchor',
  '$vocabulary',
  '$defs',
  'definitions',
  'examples',
  'deprecated',
  'readOnly',
  'writeOnly',
]);

const schemaKeywords: ReadonlySet<string> = new Set([
  'items',
  'additionalItems',
  'additionalProperties',
  'unevaluatedItems',
  'unevaluatedProperties',
  'contains',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
]);
const listKeywords: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
const namedKeywords: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  'dependentSchemas',
]);

/** Bodies are not deeper than this; only references could be. */
const maxDepth = 128;

/** The schema as the server takes it: the same for the same schema each time. */
export function* cleanSchema(schema: JsonObject, rules: SchemaRules): Steps<CleanSchema> {
  const cleaner = new Cleaner(schema, rules);
  const cleaned = yield* cleaner.schema(schema);
  return { schema: cleaned, removed: [...cleaner.removed] };
}

class Cleaner {
  readonly removed = new Set<string>();
  readonly #refs: SchemaRefs;
  readonly #openapi: boolean;
  readonly #pace = new Pace();
  #depth = 0;

  constructor(root: JsonObject, rules: SchemaRules) {
    this.#refs = new SchemaRefs(root);
    this.#openapi = rules === 'openapi';
  }

  *schema(schema: JsonObject): Steps<JsonObject> {
    if (this.#pace.due) yield;
    this.#refs.count();
    const ref = schema['$ref'] ?? schema['$dynamicRef'];
    if (typeof ref !== 'string') return yield* this.#members(schema);
    const { $ref: _ref, $dynamicRef: _dynamic, ...siblings } = schema;
    return yield* this.#refs.follow(ref, (target) => {
      if (target !== undefined) return this.schema({ ...target, ...siblings });
      this.removed.add('$ref');
      return this.#members(siblings);
    });
  }

  *#members(schema: JsonObject): Steps<JsonObject> {
    const kept = yield* this.#openapi
      ? this.#openapiMembers(schema)
      : this.#resolvedMembers(schema);
    if (hasType(kept, 'object') && !isObject(kept['properties'])) kept['properties'] = {};
    return kept;
  }

  *#resolvedMembers(schema: JsonObject): Steps<Members> {
    const kept: Members = {};
    for (const [key, value] of Object.entries(schema)) {
      if (value === undefined || identity.has(key)) continue;
      setMember(kept, key === 'const' ? 'enum' : key, yield* this.#value(key, value));
    }
    return kept;
  }

  *#openapiMembers(schema: JsonObject): Steps<Members> {
    const written = new OpenapiSchema(this.removed);
    for (const [key, value] of Object.entries(yield* this.#merged(schema))) {
      if (value !== undefined && !identity.has(key)) yield* this.#keepOpenapi(written, key, value);
    }
    return written.finish();
  }

  *#value(key: string, value: Json): Steps<Json> {
    if (key === 'const') return [value];
    if (listKeywords.has(key)) return yield* this.#list(value);
    if (namedKeywords.has(key)) return yield* this.#named(value);
    if (!schemaKeywords.has(key)) return value;
    if (isList(value)) return yield* this.#list(value);
    return isObject(value) ? yield* this.schema(value) : value;
  }

  *#list(value: Json): Steps<Json> {
    if (!isList(value)) return value;
    const items: Json[] = [];
    for (const each of value) items.push(yield* this.#nested(each));
    return items;
  }

  *#named(value: Json): Steps<Json> {
    if (!isObject(value)) return value;
    const members: Members = {};
    // Pairs of 80,000 names would take five times as long to make, in one step.
    for (const name of Object.keys(value)) {
      setMember(members, name, yield* this.#nested(value[name] ?? null));
    }
    return members;
  }

  /** `true` and `false` are schemas too; the servers that need this know objects only. */
  *#nested(schema: Json): Steps<JsonObject> {
    if (!isObject(schema) || this.#refs.full || this.#depth >= maxDepth) return {};
    this.#depth += 1;
    const cleaned = yield* this.schema(schema);
    this.#depth -= 1;
    return cleaned;
  }

  /** One keyword as the OpenAPI subset has it. */
  *#keepOpenapi(written: OpenapiSchema, key: string, value: Json): Steps<void> {
    switch (key) {
      case 'properties':
        return setMember(written.kept, key, yield* this.#named(value));
      case 'anyOf':
      case 'oneOf':
        return setMember(written.kept, 'anyOf', yield* this.#list(value));
      case 'items':
        return setMember(
          written.kept,
          key,
          yield* this.#nested(isList(value) ? (value[0] ?? null) : value),
        );
      default:
        return written.keep(key, value);
    }
  }

  /** All of several schemas is one schema with the members of all. */
  *#merged(schema: JsonObject): Steps<JsonObject> {
    const { allOf, ...own } = schema;
    if (!isList(allOf)) return schema;
    let all: JsonObject = own;
    for (const each of allOf) if (isObject(each)) all = joined(all, yield* this.schema(each));
    return all;
  }
}
