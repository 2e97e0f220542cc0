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

/** `1.6 GB`: as shops and file managers count, three digits at most. */
export function bytesText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[unit] ?? ''}`;
}
