/** Redis that does not answer, or refuses what it is told. */
import { StoreError } from '../store-error.ts';

/** What the client throws, as a failure of the store. */
export function unavailable(error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  return new StoreError('unavailable', `Redis does not count: ${String(error)}`, error);
}

/** Whether the server refuses what it was told, and not because of how it stands. */
export function isRefusal(error: unknown): boolean {
  return error instanceof Error && /^(?:ERR|WRONGTYPE) /.test(error.message);
}

/** @throws StoreError `unavailable` when it takes longer */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const end = (): void => {
    reject(new StoreError('unavailable', `Redis did not answer within ${ms} ms.`));
  };
  // Timers come before what sockets have brought: an answer that waited for this process is read first.
  const timer = setTimeout(() => setImmediate(end), ms);
  work.then(resolve, reject);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
