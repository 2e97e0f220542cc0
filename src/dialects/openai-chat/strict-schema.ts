/** Whether the strict mode of chat completions takes a schema. */
import type { Json } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import { isArray } from './fields.ts';

/** Strict mode wants every property required and no others, at every level. */
export function isStrict(schema: Json | undefined): boolean {
  if (isArray(schema)) return schema.every(isStrict);
  if (!isObject(schema)) return true;
  const { properties, required } = schema;
  if (isObject(properties)) {
    const names = isArray(required) ? required : [];
    if (schema['additionalProperties'] !== false) return false;
    if (!Object.keys(properties).every((name) => names.includes(name))) return false;
    if (!Object.values(properties).every(isStrict)) return false;
  }
  const { $defs, definitions } = schema;
  return (
    [schema['items'], schema['anyOf'], schema['allOf']].every(isStrict) &&
    [$defs, definitions].every((named) => !isObject(named) || Object.values(named).every(isStrict))
  );
}
