/**
 * Reads single fields of a request body. Errors for wrong values have the wording of this dialect. The path is put
 * at the start of the message when the error is written.
 */
import { isObject, type Json, type JsonObject, isArray } from '../../json/value.ts';
import { type FieldPath, type GatewayError, invalidRequest } from '../../core/errors.ts';

/** A field of an object, and where that object is in the body. */
export interface Field {
  readonly of: JsonObject;
  readonly key: string;
  /** Path of the object; absent = the body itself. */
  readonly at?: FieldPath;
}

/** Top-level fields that the canonical conversation has, or that the head has read. */
export const knownFields: ReadonlySet<string> = new Set([
  'model',
  'max_tokens',
  'messages',
  'system',
  'stop_sequences',
  'stream',
  'temperature',
  'top_p',
  'top_k',
  'thinking',
  'output_config',
  'output_format',
  'tools',
  'tool_choice',
  'metadata',
]);

/** Top-level fields of this API, those of betas included. */
export const messagesFields: ReadonlySet<string> = new Set([
  ...knownFields,
  'service_tier',
  'cache_control',
  'container',
  'context_management',
  'compaction',
  'mcp_servers',
  'inference_geo',
  'speed',
  'fallbacks',
  'fallback_credit_token',
  'diagnostics',
  'thread',
  'betas',
  'billing_policy',
  'user_profile_id',
  'workspace_id',
]);

/** `null` counts as absent wherever the field is optional. */
export function isPresent(value: Json | undefined): value is Exclude<Json, null> {
  return value !== undefined && value !== null;
}

export function required(path: FieldPath): GatewayError {
  return invalidRequest('Field required', path);
}

/** @param expected with its article: `a valid string`. */
export function wrongType(path: FieldPath, expected: string): GatewayError {
  return invalidRequest(`Input should be ${expected}`, path);
}

/** @param rule the end of the sentence: `must not be empty`. */
export function badValue(path: FieldPath, rule: string): GatewayError {
  return invalidRequest(`The value ${rule}`, path);
}

export function pathOf({ key, at = [] }: Field): FieldPath {
  return [...at, key];
}

export function readString(field: Field): string | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (typeof value !== 'string') throw wrongType(pathOf(field), 'a valid string');
  return value;
}

export function requireString(field: Field): string {
  const value = field.of[field.key];
  if (value === undefined) throw required(pathOf(field));
  if (typeof value !== 'string') throw wrongType(pathOf(field), 'a valid string');
  return value;
}

export function readBoolean(field: Field): boolean | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (typeof value !== 'boolean') throw wrongType(pathOf(field), 'a valid boolean');
  return value;
}

interface Range {
  readonly min: number;
  readonly max?: number;
}

export function readNumber(field: Field, range: Range): number | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (typeof value !== 'number') throw wrongType(pathOf(field), 'a valid number');
  return inRange(value, range, pathOf(field));
}

export function readInteger(field: Field, range: Range): number | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw wrongType(pathOf(field), 'a valid integer');
  }
  return inRange(value, range, pathOf(field));
}

export function readObject(field: Field): JsonObject | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (!isObject(value)) throw wrongType(pathOf(field), 'a valid dictionary');
  return value;
}

export function readArray(field: Field): readonly Json[] | undefined {
  const value = field.of[field.key];
  if (!isPresent(value)) return undefined;
  if (!isArray(value)) throw wrongType(pathOf(field), 'a valid list');
  return value;
}

function inRange(value: number, { min, max }: Range, path: FieldPath): number {
  if (value < min) throw wrongType(path, `greater than or equal to ${min}`);
  if (max !== undefined && value > max) throw wrongType(path, `less than or equal to ${max}`);
  return value;
}
