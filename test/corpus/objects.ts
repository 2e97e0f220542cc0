/** The objects of a request, but for those that are carried whole, whatever is in them. */
import { isObject, type Json, type JsonObject } from '../../src/json/value.ts';

export interface FoundObject {
  readonly path: readonly (string | number)[];
  readonly value: JsonObject;
}

/** Schemas, inputs of calls, and what a client keeps for itself. */
const freeForm: ReadonlySet<string> = new Set([
  'parameters',
  'input_schema',
  'schema',
  'input',
  'metadata',
  'logit_bias',
  'extra_content',
]);

export function objectsIn(body: JsonObject): readonly FoundObject[] {
  return find(body, []);
}

function find(value: Json | undefined, path: readonly (string | number)[]): readonly FoundObject[] {
  if (Array.isArray(value)) return value.flatMap((item: Json, i) => find(item, [...path, i]));
  if (!isObject(value)) return [];
  const inner = Object.entries(value).flatMap(([key, item]) =>
    freeForm.has(key) ? [] : find(item, [...path, key]),
  );
  return [{ path, value }, ...inner];
}

/** The body with another member in the object at a path. */
export function withMember(
  body: JsonObject,
  path: readonly (string | number)[],
  [key, item]: readonly [string, Json],
): JsonObject {
  // One object may stand at two places of a sample; here it is two.
  const copy: JsonObject = JSON.parse(JSON.stringify(body));
  let at: unknown = copy;
  for (const step of path) at = Reflect.get(Object(at), step);
  Object.defineProperty(at, key, { value: item, enumerable: true });
  return copy;
}
