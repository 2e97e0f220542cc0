/** JSON at the engine's door. The only place of the engine that parses. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** The value of a JSON text; undefined when it is not JSON. */
export function tryParse(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

/** True for a JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** True for a JSON array; `Array.isArray` alone does not narrow a readonly one. */
export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** An object member; a member that is `null` counts as absent. */
export function member(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined;
}
