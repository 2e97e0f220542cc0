/**
 * Parts of a store that are elsewhere: in the thread of SQLite, or in the parent of a worker process. A call is the
 * part's name, the method's name and the arguments; no method is written out here.
 */
import type { StoreParts } from './store.ts';

export type PartName = keyof StoreParts;

/** Calls a method of a part that is elsewhere. @throws what the method throws */
export type Send = (part: PartName, method: string, args: readonly unknown[]) => Promise<unknown>;

/** The parts, each of whose methods is sent. */
export function remoteParts(send: Send): StoreParts {
  const part =
    (name: PartName) =>
    (method: string, args: readonly unknown[]): Promise<unknown> =>
      send(name, method, args);
  return {
    keys: remotePart(part('keys')),
    policies: remotePart(part('policies')),
    audit: remotePart(part('audit')),
    calls: remotePart(part('calls')),
    answers: remotePart(part('answers')),
    contents: remotePart(part('contents')),
    responses: remotePart(part('responses')),
    people: remotePart(part('people')),
    settings: remotePart(part('settings')),
  };
}

/**
 * An object whose methods are sent.
 * @param own methods that are done here
 */
export function remotePart<T extends object>(
  send: (method: string, args: readonly unknown[]) => Promise<unknown>,
  own: Partial<T> = {},
): T {
  const methods: T = Object.assign(Object.create(null), own);
  return new Proxy(methods, {
    get(target, name): unknown {
      const known: unknown = Reflect.get(target, name);
      // A promise that resolves with the part reads its `then`.
      if (known !== undefined || typeof name !== 'string' || name === 'then') return known;
      const method = (...args: readonly unknown[]): Promise<unknown> => send(name, args);
      Reflect.set(target, name, method);
      return method;
    },
  });
}

/** The part, with some of its methods replaced. */
export function overridden<T extends object>(part: T, own: Partial<T>): T {
  return remotePart(async (method, args) => callMethod(part, method, args), own);
}

/** The other end: calls the method of this name. @throws TypeError when there is none, and what it throws */
export function callMethod(part: object, method: string, args: readonly unknown[]): unknown {
  const found: unknown = Reflect.get(part, method);
  if (typeof found !== 'function') throw new TypeError(`There is no method ${method}.`);
  return Reflect.apply(found, part, args);
}

/** A part with synchronous methods, as in its thread. */
export type Synchronous<T> = {
  readonly [K in keyof T]: T[K] extends (...args: infer A) => Promise<infer R>
    ? (...args: A) => R
    : never;
};

/** The same part, from another thread. */
export type Asynchronous<T> = {
  readonly [K in keyof T]: T[K] extends (...args: infer A) => infer R
    ? (...args: A) => Promise<R>
    : never;
};
