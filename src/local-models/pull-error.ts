/** Why a model could not be fetched; the message says what was tried and what to do, and may be shown. */
export class PullError extends Error {
  /** Set where the same may well work a moment later. */
  readonly again: { readonly afterMs?: number } | undefined;

  constructor(message: string, options: { cause?: unknown; again?: { afterMs?: number } } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PullError';
    this.again = options.again;
  }
}

/** The system's code of an error, e.g. `ENOSPC`; '' when it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
