/**
 * Paths in the client's request of the parts of a conversation: notes and refusals of another dialect's writer name the
 * path that the client knows. A path is kept outside of its value, so that equal values stay equal wherever they stood.
 */
import type { FieldPath } from './errors.ts';

const paths = new WeakMap<object, FieldPath>();

/** Remembers the path of a part or turn. */
export function withPath<const T extends object>(value: T, path: FieldPath): T {
  paths.set(value, path);
  return value;
}

/** Gives a changed copy the path of the original. */
export function withPathOf<T extends object>(original: object, copy: T): T {
  const path = paths.get(original);
  return path === undefined ? copy : withPath(copy, path);
}

/** The path of a value, or `otherwise` where none is known. */
export function pathOf(value: object, otherwise: FieldPath): FieldPath {
  return paths.get(value) ?? otherwise;
}
