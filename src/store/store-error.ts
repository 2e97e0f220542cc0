/** What can be wrong with a store; closed, so that a caller can decide by kind and not by text. */
export type StoreFailure =
  | 'corrupt' // not a database, or damaged: never re-created (F86)
  | 'newer_schema' // written by a later version
  | 'older_schema' // written by a version before the first release
  | 'busy' // another process holds the database (F84), or others its connections: nothing was done
  | 'full' // no space, read-only, input/output error (F85)
  | 'gone' // the file was removed or replaced while in use (F87)
  | 'in_use' // another gateway runs on the data directory (F87)
  | 'unavailable' // a server that cannot be reached, or not be written to now: it is tried again (F88)
  | 'refused' // for what stands in it: the same will be refused again
  | 'closed'
  | 'failed';

/** A failed store operation. `message` is for the operator and names the file where one is at fault. */
export class StoreError extends Error {
  readonly kind: StoreFailure;

  constructor(kind: StoreFailure, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'StoreError';
    this.kind = kind;
  }
}

/** Whether a shared store is only away, or only locked: it is waited for (F84). */
export function mayPass(error: unknown): error is StoreError {
  return error instanceof StoreError && (error.kind === 'unavailable' || error.kind === 'busy');
}

/** Why rows wait on a store that neither takes nor refuses them. */
export function noAnswerFor(waitMs: number): string {
  return `no answer for ${Math.floor(waitMs / 1000)} s`;
}
