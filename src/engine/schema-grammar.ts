/**
 * A JSON Schema as a grammar. What is written keeps to the schema; where the schema leaves a choice
 * the grammar may leave less (declared properties only, in the schema's order; bounded lengths). What
 * a grammar cannot hold is refused with its path, or, for schemas that only guide, left to the model.
 */
import { type Json, type JsonObject, isArray, isObject, unsupported } from './engine-error.ts';
import {
  type SchemaType,
  annotations,
  mergeSchemas,
  resolveReference,
  typeKeywords,
  typesOf,
} from './schema-merge.ts';

// Questions about schemas that need their values: which type one has, whether two schemas overlap.

function isOfType(value: Json, type: SchemaType): boolean {
  switch (type) {
    case 'object':
      return isObject(value);
    case 'array':
      return isArray(value);
    case 'null':
      return value === null;
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

/** True when no value fits two of the schemas, as far as types and constants show it. */
export function areDisjoint(schemas: readonly JsonObject[]): boolean {
  return schemas.every((first, index) =>
    schemas.slice(index + 1).every((second) => excludeEachOther(first, second)),
  );
}

function excludeEachOther(first: JsonObject, second: JsonObject): boolean {
  const [values, others] = [constantsOf(first), constantsOf(second)];
  if (values !== undefined && others !== undefined) {
    return !values.some((value) => others.includes(value));
  }
  const [types, otherTypes] = [kindsOf(first), kindsOf(second)];
  if (types !== undefined && otherTypes !== undefined) {
    if (!types.some((type) => otherTypes.includes(type))) return true;
  }
  return haveDifferentTags(first, second);
}

/** A property that both need, with constants that differ. */
function haveDifferentTags(first: JsonObject, second: JsonObject): boolean {
  const [own, other] = [first['properties'], second['properties']];
  const [needed, otherNeeded] = [first['required'], second['required']];
  if (!isObject(own) || !isObject(other) || !isArray(needed) || !isArray(otherNeeded)) return false;
  return Object.entries(own).some(([name, schema]) => {
    const twin = Object.hasOwn(other, name) ? other[name] : undefined;
    if (!needed.includes(name) || !otherNeeded.includes(name)) return false;
    if (!isObject(schema) || !isObject(twin)) return false;
    const [values, others] = [constantsOf(schema), constantsOf(twin)];
    return values !== undefined && others !== undefined && !values.some((v) => others.includes(v));
  });
}

/** The values of `const` or `enum`, as JSON. */
function constantsOf(schema: JsonObject): readonly string[] | undefined {
  if (Object.hasOwn(schema, 'const')) return [JSON.stringify(schema['const'])];
  const list = schema['enum'];
  return isArray(list) ? list.map((value) => JSON.stringify(value)) : undefined;
}

/** Types that differ in JSON: an integer is a number. */
function kindsOf(schema: JsonObject): readonly string[] | undefined {
  if (schema['type'] === undefined) return undefined;
  return typesOf(schema)?.map((type) => (type === 'integer' ? 'number' : type));
}

// Grammar rules for numbers between bounds.

/** Bounds of a number; absent = as far as 15 digits go. */
interface Bounds {
  readonly low?: number;
  readonly high?: number;
}

const most = 999_999_999_999_999;

/** Integers from `low` to `high`, both included; undefined when there is none. */
export function integerRule(
  rules: GrammarRules,
  { low = -most, high = most }: Bounds,
): string | undefined {
  const first = Math.max(-most, Math.ceil(low));
  const last = Math.min(most, Math.floor(high));
  if (first > last) return undefined;
  const parts: string[] = [];
  if (first < 0) parts.push(`"-" (${naturals(Math.max(1, -last), -first)})`);
  if (last >= 0) parts.push(naturals(Math.max(0, first), last));
  return rules.add(parts.join(' | '));
}

/**
 * Numbers between integer bounds, inclusive unless `exclusive` is set; undefined when a bound is not an integer
 * or the range is empty.
 */
export function numberRule(
  rules: GrammarRules,
  { low = -most, high = most }: Bounds,
  exclusive: { readonly low: boolean; readonly high: boolean },
): string | undefined {
  if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high) || low >= high) return undefined;
  const integers = integerRule(rules, {
    low: exclusive.low ? low + 1 : low,
    high: exclusive.high ? high - 1 : high,
  });
  // The numbers strictly between two neighbouring integers; the last digit excludes the lower one.
  const broken = '"." [0-9]{0,14} [1-9]';
  const parts = integers === undefined ? [] : [integers, `(${integers} ".0")`];
  if (high > 0) parts.push(`(${naturals(Math.max(0, low), high - 1)}) ${broken}`);
  if (low < 0) parts.push(`"-" (${naturals(Math.max(0, -high), -low - 1)}) ${broken}`);
  return rules.add(parts.join(' | '));
}

/** Alternatives for the integers from `low` to `high`, neither below zero. */
function naturals(low: number, high: number): string {
  const parts: string[] = [];
  let start = low;
  while (start <= high) {
    const digits = String(start).length;
    const end = Math.min(high, 10 ** digits - 1);
    parts.push(sameLength(String(start), String(end)));
    start = end + 1;
  }
  return parts.join(' | ');
}

function sameLength(low: string, high: string): string {
  if (low === '') return '""';
  const rest = low.length - 1;
  if (/^0*$/.test(low.slice(1)) && /^9*$/.test(high.slice(1))) {
    return `${digit(Number(low[0]), Number(high[0]))}${anyDigits(rest)}`;
  }
  if (low[0] === high[0]) return `"${low[0]}" (${sameLength(low.slice(1), high.slice(1))})`;
  const parts = [`"${low[0]}" (${sameLength(low.slice(1), '9'.repeat(rest))})`];
  const [from, to] = [Number(low[0]) + 1, Number(high[0]) - 1];
  if (from <= to) parts.push(`${digit(from, to)}${anyDigits(rest)}`);
  parts.push(`"${high[0]}" (${sameLength('0'.repeat(rest), high.slice(1))})`);
  return parts.join(' | ');
}

function digit(from: number, to: number): string {
  return from === to ? `"${from}"` : `[${from}-${to}]`;
}

function anyDigits(count: number): string {
  return count === 0 ? '' : ` [0-9]{${count}}`;
}

export interface SchemaGrammarOptions {
  readonly rules: GrammarRules;
  /** Where the schema is in the request, for refusals. */
  readonly path: string;
  /** Refuse what cannot be enforced; else such parts are left to the model. */
  readonly strict: boolean;
}

const maxRules = 3000;
/** Schemas examined, in all of a grammar: references can make a small one endless. */
const maxVisits = 20_000;
const maxChoices = 2000;
const maxLength = 1000;
const maxDepth = 64;
/** Holds for any type, so it is examined before types are. */
const combining = ['$ref', 'enum', 'const', 'anyOf', 'oneOf', 'allOf', 'type'] as const;

/** The name of a rule that a schema's values follow. @throws EngineError 400 that names the part. */
export function schemaRule(schema: Json, options: SchemaGrammarOptions): string {
  return new SchemaReader(schema, options).read(schema, { path: options.path, depth: 0 });
}

interface Place {
  readonly path: string;
  readonly depth: number;
}

class SchemaReader {
  readonly #root: Json;
  readonly #options: SchemaGrammarOptions;
  readonly #references = new Map<string, string>();

  constructor(root: Json, options: SchemaGrammarOptions) {
    this.#root = root;
    this.#options = options;
  }

  read(schema: Json | undefined, place: Place): string {
    const { rules } = this.#options;
    if (schema === true || schema === undefined) return 'value';
    if (!isObject(schema)) return this.#give(place.path, 'no value can fit it');
    const visits = rules.visit();
    if (visits > maxVisits || rules.size > maxRules || place.depth > maxDepth) {
      return this.#give(place.path, 'the schema is too large');
    }
    return this.#combination(schema, place) ?? this.#typed(schema, place);
  }

  /** What holds for any type; undefined when nothing of it is there. */
  #combination(schema: JsonObject, place: Place): string | undefined {
    if (schema['$ref'] !== undefined) return this.#reference(schema, place);
    if (schema['enum'] !== undefined) return this.#choices(schema, schema['enum'], place);
    if (schema['const'] !== undefined) return this.#choices(schema, [schema['const']], place);
    const key = (['allOf', 'anyOf', 'oneOf'] as const).find((name) => schema[name] !== undefined);
    return key === undefined ? undefined : this.#combined(schema, key, place);
  }

  #reference(schema: JsonObject, place: Place): string {
    const reference = schema['$ref'];
    this.#allow(schema, ['$ref'], place);
    const target =
      typeof reference === 'string' ? resolveReference(this.#root, reference) : undefined;
    if (typeof reference !== 'string' || target === undefined) {
      return this.#give(`${place.path}.$ref`, 'it points at nothing inside the schema');
    }
    const known = this.#references.get(reference);
    if (known !== undefined) return known;
    const { rules } = this.#options;
    const name = rules.reserve();
    this.#references.set(reference, name);
    const pointed = reference === '#' ? '' : reference.slice(1).replaceAll('/', '.');
    const path = `${this.#options.path}${pointed}`;
    rules.define(name, this.read(target, { path, depth: place.depth + 1 }));
    return name;
  }

  #choices(schema: JsonObject, choices: Json, place: Place): string {
    this.#allow(schema, ['enum', 'const', 'type'], place);
    const types = schema['type'] === undefined ? undefined : typesOf(schema);
    const list = isArray(choices) ? choices : [];
    const isConst = (value: Json): boolean =>
      !Object.hasOwn(schema, 'const') || JSON.stringify(value) === JSON.stringify(schema['const']);
    const fitting = list.filter(
      (value) => isConst(value) && (types?.some((type) => isOfType(value, type)) ?? true),
    );
    if (fitting.length === 0) return this.#give(place.path, 'no value can fit it');
    if (fitting.length > maxChoices) {
      return this.#give(place.path, `more than ${maxChoices} values are listed`);
    }
    return this.#options.rules.add(oneOf(fitting.map((value) => literal(JSON.stringify(value)))));
  }

  #combined(schema: JsonObject, key: 'allOf' | 'anyOf' | 'oneOf', place: Place): string {
    const { [key]: branches, ...rest } = schema;
    const path = `${place.path}.${key}`;
    if (!isArray(branches) || branches.length === 0) return this.#give(path, 'it needs schemas');
    const whole = branches.map((branch, index) => {
      const target = isObject(branch) ? this.#followed(branch) : branch === true ? {} : undefined;
      if (target === undefined) return this.#giveSchema(`${path}[${index}]`);
      return { target, place: { path: `${path}[${index}]`, depth: place.depth + 1 } };
    });
    const own = Object.keys(rest).some((name) => !annotations.has(name));
    if (key === 'allOf') {
      let merged = rest;
      for (const branch of whole) merged = this.#merged(merged, branch.target, branch.place.path);
      return this.read(merged, { ...place, depth: place.depth + 1 });
    }
    if (key === 'oneOf' && !areDisjoint(whole.map((branch) => branch.target))) {
      this.#give(path, 'its schemas may fit the same value; use anyOf');
    }
    const alternatives = whole.map((branch, index) => {
      // A reference that is alone stays one, so that it may lead back here.
      if (!own) return this.read(branches[index], branch.place);
      return this.read(this.#merged(rest, branch.target, branch.place.path), branch.place);
    });
    return this.#options.rules.add(oneOf(alternatives));
  }

  /** A schema that is one reference and nothing else, followed; others as they are. */
  #followed(schema: JsonObject): JsonObject | undefined {
    let current = schema;
    for (let steps = 0; typeof current['$ref'] === 'string'; steps++) {
      const target = resolveReference(this.#root, current['$ref']);
      if (!isObject(target) || steps > maxDepth) return undefined;
      current = target;
    }
    return current;
  }

  #merged(first: JsonObject, second: JsonObject, path: string): JsonObject {
    const merged = mergeSchemas(first, second);
    if (typeof merged !== 'string') return merged;
    this.#give(`${path}.${merged}`, 'it cannot be merged with the keywords next to it');
    return first;
  }

  #typed(schema: JsonObject, place: Place): string {
    const { rules } = this.#options;
    const types = typesOf(schema);
    if (types === undefined) {
      this.#allow(schema, [], place);
      return 'value';
    }
    if (types.length === 0) return this.#give(`${place.path}.type`, 'it names no type');
    this.#allow(schema, ['type', ...Object.values(typeKeywords).flat()], place);
    // A number may be an integer anyway: twice the same would only make the grammar ambiguous.
    const distinct = types.filter((type) => type !== 'integer' || !types.includes('number'));
    const bodies = distinct.map((type) => this.#single(schema, type, place));
    return bodies.length === 1 ? (bodies[0] ?? 'value') : rules.add(oneOf(bodies));
  }

  #single(schema: JsonObject, type: SchemaType, place: Place): string {
    switch (type) {
      case 'object':
        return this.#object(schema, place);
      case 'array':
        return this.#array(schema, place);
      case 'string': {
        this.#refuse(schema, ['pattern'], place);
        const { format } = schema;
        const low = this.#count(schema, 'minLength', place) ?? 0;
        const high = this.#count(schema, 'maxLength', place);
        if (typeof format === 'string') {
          const body = stringFormats[format];
          if (body === undefined)
            this.#give(`${place.path}.format`, `"${format}" is not known here`);
          else if (low > 0 || high !== undefined)
            this.#give(`${place.path}.format`, 'it has a length too');
          else return this.#options.rules.add(String.raw`"\"" ${body} "\""`);
        }
        if (low === 0 && high === undefined) return 'string';
        if (low > Math.min(high ?? maxLength, maxLength)) {
          return this.#give(`${place.path}.minLength`, `it exceeds maxLength or ${maxLength}`);
        }
        const most = high === undefined ? '' : Math.min(high, maxLength);
        return this.#options.rules.add(String.raw`"\"" char{${low},${most}} "\""`);
      }
      case 'number':
      case 'integer':
        return this.#number(schema, type, place);
      default:
        return type;
    }
  }

  #number(schema: JsonObject, type: 'number' | 'integer', place: Place): string {
    this.#refuse(schema, ['multipleOf'], place);
    const bounds = ['minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum'].map((key) => {
      const value = schema[key];
      if (value === undefined || typeof value === 'number') return value;
      this.#give(`${place.path}.${key}`, 'it must be a number');
      return undefined;
    });
    if (bounds.every((bound) => bound === undefined)) return type;
    const [minimum = -Infinity, above = -Infinity, maximum = Infinity, below = Infinity] = bounds;
    const exclusive = {
      low: above >= minimum && above !== -Infinity,
      high: below <= maximum && below !== Infinity,
    };
    const range = withoutInfinity(Math.max(minimum, above), Math.min(maximum, below));
    const { rules } = this.#options;
    // For integers "more than 2" is "at least 3".
    const rule =
      type === 'integer'
        ? integerRule(rules, {
            ...(range.low === undefined
              ? {}
              : { low: exclusive.low ? Math.floor(range.low) + 1 : range.low }),
            ...(range.high === undefined
              ? {}
              : { high: exclusive.high ? Math.ceil(range.high) - 1 : range.high }),
          })
        : numberRule(rules, range, exclusive);
    return (
      rule ??
      this.#give(
        place.path,
        'numbers are held to bounds that are integers, with some between them',
        type,
      )
    );
  }

  #array(schema: JsonObject, place: Place): string {
    const { rules } = this.#options;
    this.#refuse(schema, ['contains', 'minContains', 'maxContains', 'unevaluatedItems'], place);
    if (schema['uniqueItems'] === true) this.#refuse(schema, ['uniqueItems'], place);
    const least = this.#count(schema, 'minItems', place) ?? 0;
    const most = this.#count(schema, 'maxItems', place) ?? Infinity;
    const tuple = isArray(schema['items']) ? schema['items'] : schema['prefixItems'];
    if (isArray(tuple)) return this.#tuple(tuple, { least, most }, place);
    if (least > Math.min(most, maxLength)) {
      return this.#give(`${place.path}.minItems`, `it exceeds maxItems or ${maxLength}`, 'array');
    }
    if (most === 0 || (schema['items'] === false && least === 0)) return rules.add('"[" "]"');
    const item = this.read(schema['items'], inside(place, 'items'));
    return rules.add(arrayRule(item, { least, most: atMost(most) }));
  }

  #tuple(items: readonly Json[], count: TupleCount, place: Place): string {
    const bodies = items.map((item, index) =>
      this.read(item, inside(place, `prefixItems[${index}]`)),
    );
    if (count.least > items.length || items.length > count.most) {
      return this.#give(`${place.path}.prefixItems`, 'more or fewer items are asked for', 'array');
    }
    return this.#options.rules.add(`"[" space ${bodies.join(' "," space ')} "]"`);
  }

  #object(schema: JsonObject, place: Place): string {
    const { rules } = this.#options;
    this.#refuse(schema, unheldObjectKeywords, place);
    const properties = this.#properties(schema, place);
    const others = schema['additionalProperties'];
    const least = this.#count(schema, 'minProperties', place) ?? 0;
    const most = this.#count(schema, 'maxProperties', place) ?? Infinity;
    if (properties.length === 0 && others !== false) {
      const value = this.read(others, inside(place, 'additionalProperties'));
      return rules.add(
        arrayRule(`string ":" space ${value}`, { least, most: atMost(most), brackets: '{}' }),
      );
    }
    if (least > properties.filter((property) => property.required).length) {
      this.#give(`${place.path}.minProperties`, 'it exceeds the required properties');
    }
    if (most < properties.length) {
      this.#give(`${place.path}.maxProperties`, 'fewer than the properties are allowed');
    }
    // An object with these properties and no others, in this order; optional ones may be omitted.
    // From the end: what may follow when nothing was written yet, and when something was.
    let first = '""';
    let after = '""';
    for (const { name, required, rule } of properties.toReversed()) {
      const pair = rules.add(`${literal(JSON.stringify(name))} ":" space ${rule}`);
      const begun = `${pair} ${after}`;
      first = rules.add(required ? begun : `${begun} | ${first}`);
      const next = `"," space ${pair} ${after}`;
      after = rules.add(required ? next : `${next} | ${after}`);
    }
    return rules.add(`"{" space ${first} "}"`);
  }

  /** The declared ones, and those that are required without being declared. */
  #properties(schema: JsonObject, place: Place): readonly Property[] {
    const declared = isObject(schema['properties']) ? schema['properties'] : {};
    const listed = schema['required'];
    const required = isArray(listed) ? listed.filter((name) => typeof name === 'string') : [];
    const others = schema['additionalProperties'];
    const undeclared = required.filter((name) => !Object.hasOwn(declared, name));
    if (others === false && undeclared.length > 0) {
      this.#give(`${place.path}.required`, `"${undeclared[0]}" is required, but not allowed`);
    }
    return [
      ...Object.entries(declared).map(([name, value]) => ({
        name,
        required: required.includes(name),
        rule: this.read(value, inside(place, `properties.${name}`)),
      })),
      ...undeclared.map((name) => ({
        name,
        required: true,
        rule: this.read(others === false ? true : others, inside(place, 'additionalProperties')),
      })),
    ];
  }

  #count(schema: JsonObject, key: string, { path }: Place): number | undefined {
    const value = schema[key];
    if (
      value === undefined ||
      (typeof value === 'number' && Number.isInteger(value) && value >= 0)
    ) {
      return value;
    }
    this.#give(`${path}.${key}`, 'it must be an integer, not below 0');
    return undefined;
  }

  #allow(schema: JsonObject, known: readonly string[], { path }: Place): void {
    for (const key of Object.keys(schema)) {
      if (annotations.has(key) || known.includes(key) || schema[key] === undefined) continue;
      const why = combining.some((name) => name === key)
        ? 'it cannot be combined with another of its kind'
        : undefined;
      this.#give(`${path}.${key}`, why ?? 'the engine cannot enforce it');
    }
  }

  #refuse(schema: JsonObject, keys: readonly string[], { path }: Place): void {
    for (const key of keys) {
      if (schema[key] !== undefined) {
        this.#give(`${path}.${key}`, 'the engine cannot enforce it');
      }
    }
  }

  /** Refuses, or continues the given rule where the schema only guides. */
  #give(path: string, why: string, instead = 'value'): string {
    if (!this.#options.strict) return instead;
    throw unsupported(
      `The local engine cannot use this part of the schema, ${path}: ${why}.`,
      path,
    );
  }

  #giveSchema(path: string): { readonly target: JsonObject; readonly place: Place } {
    this.#give(path, 'it must be a schema');
    return { target: {}, place: { path, depth: 0 } };
  }
}

interface TupleCount {
  readonly least: number;
  readonly most: number;
}

function inside(place: Place, step: string): Place {
  return { path: `${place.path}.${step}`, depth: place.depth + 1 };
}

/** Without a bound there is none; large ones are made smaller, which any value still keeps to. */
function atMost(count: number): number | undefined {
  return count === Infinity ? undefined : Math.min(count, maxLength);
}

const unheldObjectKeywords = [
  'patternProperties',
  'propertyNames',
  'dependentRequired',
  'dependentSchemas',
  'dependencies',
  'unevaluatedProperties',
] as const;

function withoutInfinity(low: number, high: number): Bounds {
  return {
    ...(low === -Infinity ? {} : { low }),
    ...(high === Infinity ? {} : { high }),
  };
}

// Formats of JSON Schema strings that the engine can hold an answer to, as grammar rules.

const day31 = '("0" [1-9] | [12] [0-9] | "3" [01])';
const day30 = '("0" [1-9] | [12] [0-9] | "30")';
const day28 = '("0" [1-9] | "1" [0-9] | "2" [0-8])';
const long = '("0" [13578] | "10" | "12")';
const short = '("0" [469] | "11")';
const date = `("20" | "19") [0-9]{2} "-" (${long} "-" ${day31} | ${short} "-" ${day30} | "02-" ${day28})`;
const hour = '([01] [0-9] | "2" [0-3])';
const time = `${hour} ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})? ("Z" | [-+] ${hour} ":" [0-5] [0-9])`;
const hex = (count: number): string => `[0-9a-f]{${count}}`;
const byte = '("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9]{2} | [1-9] [0-9] | [0-9])';
const label = '[a-z0-9] ([-a-z0-9]{0,30} [a-z0-9])?';
const host = `${label} ("." ${label}){0,3} "." [a-z]{2,12}`;

/** What is between the quotes. */
const stringFormats: { readonly [format: string]: string | undefined } = {
  date,
  time,
  'date-time': `${date} "T" ${time}`,
  uuid: `${hex(8)} "-" ${hex(4)} "-4" ${hex(3)} "-" [89ab] ${hex(3)} "-" ${hex(12)}`,
  ipv4: `${byte} "." ${byte} "." ${byte} "." ${byte}`,
  ipv6: `[0-9a-f]{1,4} (":" [0-9a-f]{1,4}){7}`,
  hostname: host,
  email: `[a-z0-9] ([a-z0-9] | [._] [a-z0-9]){0,30} "@" ${host}`,
};

// Grammar rules of objects and arrays.

interface Property {
  readonly name: string;
  readonly required: boolean;
  /** What its value follows. */
  readonly rule: string;
}

interface ItemCount {
  readonly least: number;
  readonly most: number | undefined;
  readonly brackets?: '[]' | '{}';
}

/** A number of items between two brackets; `most` undefined = no upper bound. */
function arrayRule(item: string, { least, most, brackets = '[]' }: ItemCount): string {
  const [open, close] = brackets;
  if (most === 0) return `"${open}" "${close}"`;
  const more = `("," space ${item}){${Math.max(0, least - 1)},${most === undefined ? '' : most - 1}}`;
  const items = `${item} ${more}`;
  return `"${open}" space ${least > 0 ? items : `(${items})?`} "${close}"`;
}

// Grammars in llama.cpp's GBNF: a set of named rules, and the rules of JSON itself.

/** Values as compact JSON; one space may be where models like to put one. */
const jsonRules = String.raw`
object ::= "{" space (member ("," space member)*)? "}"
member ::= string ":" space value
array ::= "[" space (value ("," space value)*)? "]"
value ::= object | array | string | number | boolean | null
boolean ::= "true" | "false"
null ::= "null"
string ::= "\"" char* "\""
char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt/] | "u" ([0-9a-cA-CefEF] hex | [dD] [0-7]) hex hex)
hex ::= [0-9a-fA-F]
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,14})
space ::= " "?
`;

/** Rules of one grammar, each body kept once. */
export class GrammarRules {
  readonly #bodies = new Map<string, string>();
  readonly #names = new Map<string, string>();
  #visits = 0;

  get size(): number {
    return this.#bodies.size;
  }

  /** How many schemas were examined for this grammar, this one included. */
  visit(): number {
    this.#visits += 1;
    return this.#visits;
  }

  /** The name of a rule with this body. */
  add(body: string): string {
    const known = this.#names.get(body);
    if (known !== undefined) return known;
    const name = this.reserve();
    this.#bodies.set(name, body);
    this.#names.set(body, name);
    return name;
  }

  /** A name whose body comes later, for rules that need themselves. */
  reserve(): string {
    const name = `r${this.#bodies.size}`;
    this.#bodies.set(name, '');
    return name;
  }

  define(name: string, body: string): void {
    this.#bodies.set(name, body);
  }

  /** The whole grammar. */
  text(root: string): string {
    const rules = [...this.#bodies].map(([name, body]) => `${name} ::= ${body}`);
    return [`root ::= ${root}`, ...rules].join('\n') + jsonRules;
  }
}

/** Any text as a literal. */
export function literal(text: string): string {
  const escaped = text.replace(/[\\"\n\r]/g, (character) => escapes[character] ?? character);
  return `"${escaped}"`;
}

const escapes: { readonly [character: string]: string } = {
  '\\': String.raw`\\`,
  '"': String.raw`\"`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
};

/** One of several rules. */
export function oneOf(rules: readonly string[]): string {
  return [...new Set(rules)].join(' | ');
}
