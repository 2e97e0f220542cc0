/**
 * Reads members of a Responses request, with an error for wrong values. The wording is that of chat completions, as at
 * the service. `null` counts as absent everywhere.
 */
import type { FieldPath } from '../../core/errors.ts';
import { isArray, isObject, type Json, type JsonObject, nextDouble } from '../../json/value.ts';
import { badValue, missing, wrongType } from '../openai-chat/fields.ts';
import type { ShapeWords } from '../shared/request/demanded-call.ts';

export { badValue, lengthOf, missing, spellPath, wrongType } from '../openai-chat/fields.ts';

/** The path of the member that limits a demanded call to one. */
export const shapeWords: ShapeWords = { single: ['parallel_tool_calls'] };

/** A member of an object; `at` is the path of that object. */
export interface Field {
  readonly of: JsonObject;
  readonly key: string;
  readonly at?: FieldPath;
}

export function pathOfField({ key, at = [] }: Field): FieldPath {
  return [...at, key];
}

export function isPresent(value: Json | undefined): value is Exclude<Json, null> {
  return value !== undefined && value !== null;
}

export function readString(field: Field, maxLength?: number): string | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (typeof value !== 'string') throw wrongType(pathOfField(field), 'a string', value);
  if (maxLength !== undefined && value.length > maxLength) {
    throw badValue(pathOfField(field), `must have at most ${maxLength} characters`);
  }
  return value;
}

export function requireString(field: Field): string {
  const value = readString(field);
  if (value === undefined) throw missing(pathOfField(field));
  return value;
}

export function readBoolean(field: Field): boolean | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (typeof value !== 'boolean') throw wrongType(pathOfField(field), 'a boolean', value);
  return value;
}

interface Range {
  readonly min: number;
  readonly max: number;
}

export function readNumber(field: Field, { min, max }: Range): number | undefined {
  const value = nextDouble(field.of[field.key]);
  if (!isPresent(value)) return undefined;
  if (typeof value !== 'number') throw wrongType(pathOfField(field), 'a number', value);
  if (value >= min && value <= max) return value;
  const rule =
    max >= Number.MAX_SAFE_INTEGER
      ? value < min
        ? `must be at least ${min}`
        : 'is too large'
      : `must be between ${min} and ${max}`;
  throw badValue(pathOfField(field), rule);
}

export function readInteger(field: Field, range: Range): number | undefined {
  const value = readNumber(field, range);
  if (value === undefined || Number.isInteger(value)) return value;
  throw wrongType(pathOfField(field), 'an integer', value);
}

export function readObject(field: Field): JsonObject | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (!isObject(value)) throw wrongType(pathOfField(field), 'an object', value);
  return value;
}

export function readArray(field: Field): readonly Json[] | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (!isArray(value)) throw wrongType(pathOfField(field), 'an array', value);
  return value;
}
