/** Looks at every value of a parsed body once. */
import type { Json, JsonObject } from './conversation.ts';
import { invalidRequest } from './errors.ts';
import { maxKeyLength } from './json-bytes.ts';

/**
 * Counts all keys, and refuses what would not survive: infinite numbers, giant keys.
 * @throws GatewayError `invalid_request` with the path from this value on.
 */
export function countKeys(value: Json): number {
  return count(value, []);
}

/** @param path where the value stands; grows and shrinks on the way, so that no list is made for each value. */
function count(value: Json, path: (string | number)[]): number {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw invalidRequest('The number is out of range.', [...path]);
    return 0;
  }
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return 0;
  return isArray(value) ? countItems(value, path) : countMembers(value, path);
}

function countItems(items: readonly Json[], path: (string | number)[]): number {
  let keys = 0;
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (!isCounted(item)) continue;
    path.push(i);
    keys += count(item, path);
    path.pop();
  }
  return keys;
}

function countMembers(members: JsonObject, path: (string | number)[]): number {
  let keys = 0;
  for (const key of Object.keys(members)) {
    keys += 1;
    if (key.length > maxKeyLength) {
      throw invalidRequest(`A key is longer than ${maxKeyLength} characters.`, [...path]);
    }
    const item = members[key];
    if (!isCounted(item)) continue;
    path.push(key);
    keys += count(item, path);
    path.pop();
  }
  return keys;
}

function isCounted(value: Json | undefined): value is Json {
  return typeof value === 'object' || typeof value === 'number';
}

function isArray(value: JsonObject | readonly Json[]): value is readonly Json[] {
  return Array.isArray(value);
}
