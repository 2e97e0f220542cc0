/** Members of values that a test reads; what is not of the type is taken for empty. */
import { isObject, type JsonObject } from '../../src/json/value.ts';

export function objectAt(value: JsonObject, key: string): JsonObject {
  const found = value[key];
  return isObject(found) ? found : {};
}

export function listAt(value: JsonObject, key: string): readonly JsonObject[] {
  const found = value[key];
  return Array.isArray(found) ? found.filter(isObject) : [];
}

export function textAt(value: JsonObject, key: string): string {
  const found = value[key];
  return typeof found === 'string' ? found : '';
}

export function numberAt(value: JsonObject, key: string): number {
  const found = value[key];
  return typeof found === 'number' ? found : 0;
}
