/**
 * Local references of a JSON Schema, for servers that take none. A reference to what is being
 * resolved already is a cycle; it is cut. Small schemas can mean huge ones, so what references add is
 * bounded.
 */
import type { SchemaRules } from '../../../core/traits.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';

/** Sub-schemas that references of one tool may add. */
const maxAdded = 4000;
/** References that may lead through each other. */
const maxChain = 24;

class SchemaRefs {
  readonly #root: JsonObject;
  /** What is being resolved, outermost first. */
  readonly #open: string[] = [];
  #added = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /**
   * Calls `use` with the schema that a reference points to, or with undefined when it is foreign,
   * broken, a cycle, or more than a schema may grow.
   */
  follow<T>(ref: string, use: (target: JsonObject | undefined) => T): T {
    const tooMuch = this.#added >= maxAdded || this.#open.length >= maxChain;
    const target = tooMuch || this.#open.includes(ref) ? undefined : this.#find(ref);
    if (target === undefined) return use(undefined);
    this.#open.push(ref);
    try {
      return use(target);
    } finally {
      this.#open.pop();
    }
  }

  /** Counts a sub-schema that is read; only those behind a reference are bounded. */
  count(): void {
    if (this.#open.length > 0) this.#added += 1;
  }

  /** No more may be added: what is left of the schemas behind references is left open. */
  get full(): boolean {
    return this.#open.length > 0 && this.#added >= maxAdded;
  }

  #find(ref: string): JsonObject | undefined {
    if (!ref.startsWith('#')) return undefined;
    let at: Json | undefined = this.#root;
    for (const step of ref.slice(1).split('/').slice(1)) at = member(at, unescaped(step));
    // `#name` points to an anchor, which tools do not use.
    if (ref.length > 1 && !ref.startsWith('#/')) return undefined;
    return isObject(at) ? at : undefined;
  }
}

function member(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return Object.getOwnPropertyDescriptor(value, key)?.value;
}

function unescaped(step: string): string {
  let text = step;
  try {
    text = decodeURIComponent(step);
  } catch {
    // A lone percent sign stands for itself.
  }
  return text.replaceAll('~1', '/').replaceAll('~0', '~');
}

// The OpenAPI subset of JSON Schema that Gemini takes: no lists of types, enums
// of strings, few formats. What it refuses moves into the description, where the model still reads it.

/** A schema under construction. */
interface Members {
  [key: string]: Json | undefined;
}

const plain: ReadonlySet<string> = new Set([
  'title',
  'description',
  'nullable',
  'default',
  'required',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'minLength',
  'maxLength',
  'pattern',
  'minimum',
  'maximum',
  'propertyOrdering',
]);
const formats: ReadonlySet<string> = new Set([
  'date-time',
  'enum',
  'int32',
  'int64',
  'float',
  'double',
]);
/** A rule that became words is short; longer ones are only noise in a prompt. */
const maxRuleLength = 200;

/** One schema, keyword by keyword. Sub-schemas were cleaned before. */
class OpenapiSchema {
  readonly kept: Members = {};
  readonly #hints: string[] = [];
  readonly #removed: Set<string>;

  constructor(removed: Set<string>) {
    this.#removed = removed;
  }

  keep(key: string, value: Json): void {
    if (plain.has(key) || (key === 'format' && formats.has(textOf(value)))) {
      setMember(this.kept, key, value);
    } else if (key === 'type') {
      this.#keepType(value);
    } else if (key === 'enum' || key === 'const') {
      this.#keepEnum(key, key === 'const' ? [value] : value);
    } else {
      this.#hint(key, value);
    }
  }

  finish(): Members {
    const { kept } = this;
    const properties = kept['properties'];
    if (isObject(properties)) {
      kept['type'] ??= 'object';
      this.#keepRequired(properties);
    } else if (kept['required'] !== undefined) {
      kept['required'] = undefined;
    }
    // A list must say of what.
    if (hasType(kept, 'array') && kept['items'] === undefined) kept['items'] = { type: 'string' };
    if (this.#hints.length > 0) kept['description'] = described(kept['description'], this.#hints);
    return kept;
  }

  /** Several types are alternatives; `null` among them is a flag. */
  #keepType(value: Json): void {
    if (!isList(value)) return setMember(this.kept, 'type', value);
    const types = value.filter((type) => type !== 'null');
    if (types.length < value.length) this.kept['nullable'] = true;
    if (types.length === 1) this.kept['type'] = types[0];
    else if (types.length > 1) this.kept['anyOf'] ??= types.map((type) => ({ type }));
    if (types.includes('array') && types.length > 1) {
      this.kept['anyOf'] = types.map((type) =>
        type === 'array' ? { type, items: { type: 'string' } } : { type },
      );
    }
  }

  /** Only strings can be listed. */
  #keepEnum(key: string, value: Json): void {
    if (!isList(value)) return;
    const values = value.filter((each) => each !== null);
    if (values.length < value.length) this.kept['nullable'] = true;
    if (values.length > 0 && values.every((each) => typeof each === 'string')) {
      this.kept['enum'] = values;
      this.kept['type'] ??= 'string';
    } else if (values.length > 0) {
      this.#hint(key, value);
    }
  }

  #keepRequired(properties: JsonObject): void {
    const { required } = this.kept;
    if (!isList(required)) return;
    const known = required.filter(
      (name) => typeof name === 'string' && Object.hasOwn(properties, name),
    );
    this.kept['required'] = known.length === 0 ? undefined : known;
  }

  #hint(key: string, value: Json): void {
    // That no other properties are allowed is what models assume anyway.
    if (key === 'additionalProperties' && typeof value === 'boolean') return;
    this.#removed.add(key);
    const words = JSON.stringify(value);
    if (words.length <= maxRuleLength) this.#hints.push(`${key}: ${words}`);
  }
}

/** All of two schemas. */
function joined(one: JsonObject, other: JsonObject): JsonObject {
  const { properties, required } = one;
  return {
    ...other,
    ...one,
    ...(isObject(properties) || isObject(other['properties'])
      ? { properties: { ...asObject(properties), ...asObject(other['properties']) } }
      : {}),
    ...(isList(required) || isList(other['required'])
      ? { required: [...new Set([...asList(required), ...asList(other['required'])])] }
      : {}),
  };
}

/** Not an assignment: the key may be `__proto__`. */
function setMember(members: Members, key: string, value: Json): void {
  Object.defineProperty(members, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

function hasType(schema: JsonObject, type: string): boolean {
  const { type: own } = schema;
  return own === type || (isList(own) && own.includes(type));
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function asObject(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function asList(value: Json | undefined): readonly Json[] {
  return isList(value) ? value : [];
}

function described(description: Json | undefined, hints: readonly string[]): string {
  const rules = `(${hints.join(', ')})`;
  return typeof description === 'string' && description !== '' ? `${description} ${rules}` : rules;
}

// Tool schemas for servers that refuse parts of JSON Schema. Which server needs what is a trait;
// all others get schemas as the client wrote them. Names of properties are data, never keywords.

interface CleanSchema {
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
export function cleanSchema(schema: JsonObject, rules: SchemaRules): CleanSchema {
  const cleaner = new Cleaner(schema, rules);
  const cleaned = cleaner.schema(schema);
  return { schema: cleaned, removed: [...cleaner.removed] };
}

class Cleaner {
  readonly removed = new Set<string>();
  readonly #refs: SchemaRefs;
  readonly #openapi: boolean;
  #depth = 0;

  constructor(root: JsonObject, rules: SchemaRules) {
    this.#refs = new SchemaRefs(root);
    this.#openapi = rules === 'openapi';
  }

  schema(schema: JsonObject): JsonObject {
    this.#refs.count();
    const ref = schema['$ref'] ?? schema['$dynamicRef'];
    if (typeof ref !== 'string') return this.#members(schema);
    const { $ref: _ref, $dynamicRef: _dynamic, ...siblings } = schema;
    return this.#refs.follow(ref, (target) => {
      if (target !== undefined) return this.schema({ ...target, ...siblings });
      this.removed.add('$ref');
      return this.#members(siblings);
    });
  }

  #members(schema: JsonObject): JsonObject {
    const kept = this.#openapi ? this.#openapiMembers(schema) : this.#resolvedMembers(schema);
    if (hasType(kept, 'object') && !isObject(kept['properties'])) kept['properties'] = {};
    return kept;
  }

  #resolvedMembers(schema: JsonObject): Members {
    const kept: Members = {};
    for (const [key, value] of Object.entries(schema)) {
      if (value === undefined || identity.has(key)) continue;
      setMember(kept, key === 'const' ? 'enum' : key, this.#value(key, value));
    }
    return kept;
  }

  #openapiMembers(schema: JsonObject): Members {
    const written = new OpenapiSchema(this.removed);
    for (const [key, value] of Object.entries(this.#merged(schema))) {
      if (value !== undefined && !identity.has(key)) this.#keepOpenapi(written, key, value);
    }
    return written.finish();
  }

  #value(key: string, value: Json): Json {
    if (key === 'const') return [value];
    if (listKeywords.has(key)) return this.#list(value);
    if (namedKeywords.has(key)) return this.#named(value);
    if (!schemaKeywords.has(key)) return value;
    if (isList(value)) return this.#list(value);
    return isObject(value) ? this.schema(value) : value;
  }

  #list(value: Json): Json {
    if (!isList(value)) return value;
    const items: Json[] = [];
    for (const each of value) items.push(this.#nested(each));
    return items;
  }

  #named(value: Json): Json {
    if (!isObject(value)) return value;
    const members: Members = {};
    // Making pairs of 80,000 names takes five times as long.
    for (const name of Object.keys(value)) {
      setMember(members, name, this.#nested(value[name] ?? null));
    }
    return members;
  }

  /** `true` and `false` are schemas too; the servers that need this know objects only. */
  #nested(schema: Json): JsonObject {
    if (!isObject(schema) || this.#refs.full || this.#depth >= maxDepth) return {};
    this.#depth += 1;
    const cleaned = this.schema(schema);
    this.#depth -= 1;
    return cleaned;
  }

  /** One keyword as the OpenAPI subset has it. */
  #keepOpenapi(written: OpenapiSchema, key: string, value: Json): void {
    switch (key) {
      case 'properties':
        return setMember(written.kept, key, this.#named(value));
      case 'anyOf':
      case 'oneOf':
        return setMember(written.kept, 'anyOf', this.#list(value));
      case 'items':
        return setMember(
          written.kept,
          key,
          this.#nested(isList(value) ? (value[0] ?? null) : value),
        );
      default:
        return written.keep(key, value);
    }
  }

  /** All of several schemas is one schema with the members of all. */
  #merged(schema: JsonObject): JsonObject {
    const { allOf, ...own } = schema;
    if (!isList(allOf)) return schema;
    let all: JsonObject = own;
    for (const each of allOf) if (isObject(each)) all = joined(all, this.schema(each));
    return all;
  }
}
