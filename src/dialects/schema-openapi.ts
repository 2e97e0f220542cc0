/**
 * The OpenAPI subset of JSON Schema that Gemini takes (wire/upstreams.md §1): no lists of types, enums
 * of strings, few formats. What it refuses moves into the description, where the model still reads it.
 */
import type { Json, JsonObject } from '../core/conversation.ts';
import { isObject } from '../core/json.ts';

/** A schema under construction. */
export interface Members {
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
const maxTold = 200;

/** One schema, keyword by keyword. Sub-schemas were cleaned before. */
export class OpenapiSchema {
  readonly kept: Members = {};
  readonly #told: string[] = [];
  readonly #removed: Set<string>;

  constructor(removed: Set<string>) {
    this.#removed = removed;
  }

  keep(key: string, value: Json): void {
    if (plain.has(key) || (key === 'format' && formats.has(String(value)))) {
      setMember(this.kept, key, value);
    } else if (key === 'type') {
      this.#keepType(value);
    } else if (key === 'enum' || key === 'const') {
      this.#keepEnum(key, key === 'const' ? [value] : value);
    } else {
      this.#tell(key, value);
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
    if (this.#told.length > 0) kept['description'] = described(kept['description'], this.#told);
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
      this.#tell(key, value);
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

  #tell(key: string, value: Json): void {
    // That no other properties are allowed is what models assume anyway.
    if (key === 'additionalProperties' && typeof value === 'boolean') return;
    this.#removed.add(key);
    const words = JSON.stringify(value);
    if (words.length <= maxTold) this.#told.push(`${key}: ${words}`);
  }
}

/** All of two schemas. */
export function joined(one: JsonObject, other: JsonObject): JsonObject {
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

/** Not an assignment: the key may be `__proto__` (B40). */
export function setMember(members: Members, key: string, value: Json): void {
  Object.defineProperty(members, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

export function hasType(schema: JsonObject, type: string): boolean {
  const { type: own } = schema;
  return own === type || (isList(own) && own.includes(type));
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

function asObject(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function asList(value: Json | undefined): readonly Json[] {
  return isList(value) ? value : [];
}

function described(description: Json | undefined, told: readonly string[]): string {
  const rules = `(${told.join(', ')})`;
  return typeof description === 'string' && description !== '' ? `${description} ${rules}` : rules;
}
