/** Errors on their way to another process: the kinds that callers decide by arrive as what they were. */
import { GatewayError, type ErrorCode } from '../core/errors.ts';
import { StoreError, type StoreFailure } from '../store/store-error.ts';

export type Failure =
  | { readonly of: 'store'; readonly kind: StoreFailure; readonly message: string }
  | {
      readonly of: 'gateway';
      readonly code: ErrorCode;
      readonly message: string;
      readonly retryAfterMs?: number;
      readonly retryable: boolean;
    }
  | { readonly of: 'process'; readonly message: string };

export function failureOf(error: unknown): Failure {
  if (error instanceof StoreError) {
    return { of: 'store', kind: error.kind, message: error.message };
  }
  if (error instanceof GatewayError) {
    const { code, message, retryAfterMs, retryable } = error;
    const wait = retryAfterMs === undefined ? {} : { retryAfterMs };
    return { of: 'gateway', code, message, retryable, ...wait };
  }
  return { of: 'process', message: error instanceof Error ? error.message : String(error) };
}

export function errorOf(failure: Failure): Error {
  if (failure.of === 'store') return new StoreError(failure.kind, failure.message);
  if (failure.of === 'process') return new Error(failure.message);
  const { code, message, retryable, retryAfterMs } = failure;
  return new GatewayError(code, message, {
    retryable,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}
