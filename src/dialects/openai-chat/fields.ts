/**
 * Reads single fields of a request body and says, in the words of this dialect, what is wrong with
 * them. `null` counts as absent everywhere.
 */
import { isArray, isObject, type Json, type JsonObject, nextDouble } from '../../json/value.ts';
import { type FieldPath, type GatewayError, invalidRequest } from '../../core/errors.ts';

/** Top-level fields of this API. */
export const chatFields: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'audio',
  'frequency_penalty',
  'function_call',
  'functions',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_tokens',
  'metadata',
  'modalities',
  'moderation',
  'n',
  'parallel_tool_calls',
  'prediction',
  'presence_penalty',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'reasoning_effort',
  'response_format',
  'safety_identifier',
  'seed',
  'service_tier',
  'stop',
  'store',
  'stream',
  'stream_options',
  'temperature',
  'tool_choice',
  'tools',
  'top_logprobs',
  'top_p',
  'user',
  'verbosity',
  'web_search_options',
]);

/** A path as this dialect spells it in `param`: `messages[3].content[0].text`. */
export function spellPath(path: FieldPath): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}

export function missing(path: FieldPath): GatewayError {
  return invalidRequest(
    `Missing required parameter: '${spellPath(path)}'.`,
    path,
    'missing_required_parameter',
  );
}

/** @param expected with its article: `an integer`. */
export function wrongType(
  path: FieldPath,
  expected: string,
  value: Json | undefined,
): GatewayError {
  return invalidRequest(
    `Invalid type for '${spellPath(path)}': expected ${expected}, but got ${nameType(value)} instead.`,
    path,
    'invalid_type',
  );
}

/** @param rule what is allowed, as the end of a sentence: `must be between 0 and 2`. */
export function badValue(path: FieldPath, rule: string): GatewayError {
  return invalidRequest(
    `Invalid value for '${spellPath(path)}': it ${rule}.`,
    path,
    'invalid_value',
  );
}

export function readString(container: JsonObject, key: string): string | undefined {
  const value = container[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw wrongType([key], 'a string', value);
  return value;
}

export function readBoolean(container: JsonObject, key: string): boolean | undefined {
  const value = container[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'boolean') throw wrongType([key], 'a boolean', value);
  return value;
}

interface Range {
  readonly min: number;
  readonly max: number;
}

export function readNumber(container: JsonObject, key: string, range: Range): number | undefined {
  const value = nextDouble(container[key]);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number') throw wrongType([key], 'a number', value);
  return inRange(value, key, range);
}

export function readInteger(container: JsonObject, key: string, range: Range): number | undefined {
  const value = nextDouble(container[key]);
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw wrongType([key], 'an integer', value);
  }
  return inRange(value, key, range);
}

export function readObject(container: JsonObject, key: string): JsonObject | undefined {
  const value = container[key];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw wrongType([key], 'an object', value);
  return value;
}

export function readArray(container: JsonObject, key: string): readonly Json[] | undefined {
  const value = container[key];
  if (value === undefined || value === null) return undefined;
  if (!isArray(value)) throw wrongType([key], 'an array', value);
  return value;
}

function inRange(value: number, key: string, { min, max }: Range): number {
  if (value < min || value > max) {
    const rule =
      max >= Number.MAX_SAFE_INTEGER
        ? value < min
          ? `must be at least ${min}`
          : 'is too large'
        : `must be between ${min} and ${max}`;
    throw badValue([key], rule);
  }
  return value;
}

function nameType(found: Json | undefined): string {
  const value = nextDouble(found);
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (isArray(value)) return 'an array';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal number';
  return `a ${typeof value}`;
}

/** How many items there are, where it is a list. */
export function lengthOf(list: Json | undefined): number {
  return isArray(list) ? list.length : 0;
}
