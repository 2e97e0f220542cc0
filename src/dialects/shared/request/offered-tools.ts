/** Tools and formats of a request, as writers of several dialects look at them. */
import type { Conversation, Tool } from '../../../core/conversation.ts';
import type { FieldPath } from '../../../core/errors.ts';
import { pathOf } from '../../../core/notes.ts';
import { isObject, type Json, type JsonObject, isArray } from '../../../json/value.ts';

/** The type of a provider-defined tool; `''` for a function. */
export function typeOf({ native }: Tool): string {
  return String(native?.value['type'] ?? '');
}

/** Whether the provider itself would search the web for this tool. */
export function isSearch(tool: Tool): boolean {
  return typeOf(tool).startsWith('web_search');
}

/** Whether a tool may be omitted: some agents always list web search among their own tools, and work without it. */
export function isOptional(tool: Tool, { tools, toolChoice }: Conversation): boolean {
  if (toolChoice?.type === 'tool' && toolChoice.name === tool.name) return false;
  return tools.some((other) => other.native === undefined);
}

/** The path of a tool's schema in the client's request. Tools of messages clients do not record it. */
export function schemaPath({ schema }: Tool, path: FieldPath): FieldPath {
  return pathOf(schema, [...path, 'input_schema']);
}

/** Some engines refuse an object schema without `properties`. */
export function objectSchema(schema: JsonObject): JsonObject {
  const typed = schema['type'] === undefined ? { type: 'object', ...schema } : schema;
  if (typed['type'] !== 'object' || isObject(typed['properties'])) return typed;
  return { ...typed, properties: {} };
}

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

/** The text of the instructions for a format that the upstream does not enforce. */
export function jsonInstruction(schema: JsonObject | undefined): string {
  const rule = 'Answer with one JSON object and nothing else.';
  if (schema === undefined) return rule;
  return `${rule} It must match this JSON schema: ${JSON.stringify(schema)}`;
}
