/** JSON values as TypeScript types. */

/** Any JSON value. `undefined` members are allowed in objects and are omitted when written. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

export interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** A JSON object under construction. */
export type JsonMembers = { [key: string]: Json | undefined };

declare global {
  // ECMAScript 2026 "JSON.parse source text access"; in Node since 22, not in the compiler's library.
  interface JSON {
    rawJSON(text: string): JsonObject;
    isRawJSON(value: unknown): boolean;
    parse(
      text: string,
      reviver: (key: string, value: Json, context: { readonly source?: string }) => Json,
    ): Json;
  }
}

/** True for a JSON object: not null, not an array, not raw JSON (a number whose digits are kept). */
export function isObject(value: unknown): value is JsonObject {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
  );
}

/** The double next to raw JSON, which is an integer with more digits than a double holds; anything else as it is. */
export function nextDouble(value: Json | undefined): Json | undefined {
  return typeof value === 'object' && JSON.isRawJSON(value) ? Number(JSON.stringify(value)) : value;
}

/** The text; `''` for anything else. */
export function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** Sets a member as `JSON.parse` does: `__proto__` is a name like any other. */
export function setMember(members: { [key: string]: Json }, key: string, value: Json): void {
  if (key !== '__proto__') members[key] = value;
  else {
    Object.defineProperty(members, key, {
      value,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
}

export function isArray(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}
