/** Questions about schemas that need their values: which type one has, whether two schemas overlap. */
import { isArray, isObject, type Json, type JsonObject } from './json.ts';
import { typesOf, type SchemaType } from './schema-merge.ts';

export function isOfType(value: Json, type: SchemaType): boolean {
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

/** Types that can be told apart: an integer is a number. */
function kindsOf(schema: JsonObject): readonly string[] | undefined {
  if (schema['type'] === undefined) return undefined;
  return typesOf(schema)?.map((type) => (type === 'integer' ? 'number' : type));
}
