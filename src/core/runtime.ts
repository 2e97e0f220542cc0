/** Inputs of pure functions from outside: time, ids. They are injected, so that tests can control them. */

export interface Clock {
  /** Monotonic milliseconds; for durations and timeouts. */
  now(): number;
  /** Milliseconds since the epoch; for dates in answers and in the ledger only. */
  wall(): number;
}

/** Calls back after `ms`, never synchronously. The returned function cancels it. */
export type Later = (ms: number, run: () => void) => () => void;

/** Makes an unguessable id: the prefix and 24 base62 characters. */
export type NewId = (prefix: string) => string;

/** Writes one structured log line. Values are data, never secrets. */
export interface Log {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

export interface LogFields {
  readonly [key: string]: string | number | boolean | null | undefined;
}
