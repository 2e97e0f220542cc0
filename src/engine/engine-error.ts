/** The engine's failures, in the form that chat-completions servers use. */
import type { JsonObject } from './json.ts';

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

/** Any thrown value as an EngineError; what is not one becomes a 500 that does not tell its text. */
export function asEngineError(thrown: unknown): EngineError {
  if (thrown instanceof EngineError) return thrown;
  return new EngineError('The engine failed to answer this request.', {
    status: 500,
    type: 'server_error',
    code: 'engine_failure',
    cause: thrown,
  });
}
