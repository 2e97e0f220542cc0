/**
 * Where parts of a conversation stood in the client's request, so that notes and refusals of another
 * dialect's writer name the path that the client knows. Kept beside the conversation: two that say the
 * same are equal wherever it stood.
 */
import type { FieldPath } from './errors.ts';

const places = new WeakMap<object, FieldPath>();

/** Remembers the place of a part or turn. */
export function placed<T extends object>(value: T, path: FieldPath): T {
  places.set(value, path);
  return value;
}

/** A changed copy stands where the original stood. */
export function inPlaceOf<T extends object>(original: object, copy: T): T {
  const path = places.get(original);
  return path === undefined ? copy : placed(copy, path);
}

/** The place, or what is known without it. */
export function placeOf(value: object, otherwise: FieldPath): FieldPath {
  return places.get(value) ?? otherwise;
}
