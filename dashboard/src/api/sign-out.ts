/**
 * The way out. The server ends a session as soon as it hears of it, and what it hears behind that is refused; so from
 * the click on: questions wait, changes that are on their way are heard first, new ones are not begun, and calls of the
 * playground end.
 */
import { ApiError } from './api-error.ts';

interface Leaving {
  readonly over: Promise<void>;
  readonly end: () => void;
}

let leaving: Leaving | undefined;
let staying = new AbortController();
const changes = new Set<Promise<unknown>>();

/** Whether the person signs out: a session that ends otherwise expired, or was ended elsewhere. */
export function isLeaving(): boolean {
  return leaving !== undefined;
}

/** From now on questions wait, changes are refused, and `stayingSignal` is aborted. */
export function beginLeaving(): void {
  if (leaving !== undefined) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  leaving = { over: promise, end: resolve };
  staying.abort();
}

/** The session lives on, or another one may begin: questions that waited are asked. */
export function endLeaving(): void {
  if (leaving === undefined) return;
  leaving.end();
  leaving = undefined;
  staying = new AbortController();
}

/** Resolves at once, or when the sign-out is over. */
export function questionsAllowed(): Promise<void> {
  return leaving?.over ?? Promise.resolve();
}

/** Aborted at a sign-out. */
export function stayingSignal(): AbortSignal {
  return staying.signal;
}

/** Makes a change that is heard before the session ends. @throws ApiError during a sign-out */
export async function changing<T>(where: string, change: () => Promise<T>): Promise<T> {
  if (leaving !== undefined) {
    throw new ApiError({
      kind: 'refused',
      what: 'You are signing out.',
      where,
      next: 'Sign in again to make changes.',
    });
  }
  const made = change();
  changes.add(made);
  try {
    return await made;
  } finally {
    changes.delete(made);
  }
}

/** Resolves when all changes were heard or failed; each has its time. */
export async function changesHeard(): Promise<void> {
  await Promise.allSettled(changes);
}
