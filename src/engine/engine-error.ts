/** The engine's failures, in the form that chat-completions servers use. */

export interface EngineErrorOptions {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  /** The field that is at fault, e.g. `messages[2].content`. */
  readonly param?: string;
  /** Seconds after which another try makes sense. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/** A failure with its HTTP status; `message` is safe to show to a caller. */
export class EngineError extends Error {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, options: EngineErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'EngineError';
    this.status = options.status;
    this.type = options.type;
    this.code = options.code;
    this.param = options.param ?? null;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }

  /** The response body: all four keys are required. */
  body(): JsonObject {
    const { message, type, param, code } = this;
    return { error: { message, type, param, code } };
  }
}

/** A 400 that names the field. */
export function invalid(message: string, param: string, code = 'invalid_value'): EngineError {
  return new EngineError(message, { status: 400, type: 'invalid_request_error', code, param });
}

/** A 400 for what this engine cannot do. */
export function unsupported(message: string, param: string): EngineError {
  return invalid(message, param, 'unsupported_parameter');
}

/** A 503 that invites another try. */
export function unavailable(message: string, code: string, retryAfterSeconds: number): EngineError {
  return new EngineError(message, {
    status: 503,
    type: 'service_unavailable_error',
    code,
    retryAfterSeconds,
  });
}

/** Any thrown value as an EngineError; any other becomes a 500 without its text. */
export function asEngineError(thrown: unknown): EngineError {
  if (thrown instanceof EngineError) return thrown;
  return new EngineError('The engine failed to answer this request.', {
    status: 500,
    type: 'server_error',
    code: 'engine_failure',
    cause: thrown,
  });
}

// JSON at the engine's door. The only place of the engine that parses.

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

// Reads members of a request body; each failure is a 400 that names the member.

interface Range {
  readonly min?: number;
  readonly max?: number;
}

export function number(body: JsonObject, field: string, range: Range): number | undefined {
  const value = member(body, field);
  if (value === undefined) return undefined;
  if (typeof value !== 'number') throw wrongType(field, 'a number');
  const { min = -Infinity, max = Infinity } = range;
  if (value >= min && value <= max) return value;
  throw invalid(`Invalid "${field}": expected a value ${describeRange(range)}.`, field);
}

function describeRange({ min, max }: Range): string {
  if (max === undefined) return `of at least ${min}`;
  return `between ${min} and ${max}`;
}

export function integer(body: JsonObject, field: string, range: Range): number | undefined {
  const value = number(body, field, range);
  if (value !== undefined && !Number.isInteger(value)) throw wrongType(field, 'an integer');
  return value;
}

/** Absent is false. */
export function flag(body: JsonObject, field: string): boolean {
  const value = member(body, field);
  if (value === undefined) return false;
  if (typeof value !== 'boolean') throw wrongType(field, 'a boolean');
  return value;
}

export function wrongType(param: string, expected: string): Error {
  return invalid(`Invalid type for "${param}": expected ${expected}.`, param, 'invalid_type');
}
