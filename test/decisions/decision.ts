/**
 * The form of a decision, and the types that make the tables complete: a field that an SDK's types
 * know and a table does not is a type error in `npm run check`.
 *
 * A table has one entry for each field of an object. An entry is a verdict, or several of them by
 * case, and, for whatever is carried on and has fields itself, the table of what is inside. What is
 * dropped or refused takes its inside with it.
 */

/** The five words of docs/user/translation.md. */
export type Decision = 'EXACT' | 'APPROX' | 'WARN' | 'IGNORE' | 'REJECT';

/** The field is carried on. */
export interface Kept {
  readonly decision: 'EXACT' | 'APPROX';
  /** Where it goes; `''` when the gateway itself does what it asks for. */
  readonly to: string;
  readonly how?: string;
  /** An approximation that cannot surprise is not noted. */
  readonly silent?: true;
}

/** The field is not carried on. */
export interface Dropped {
  readonly decision: 'WARN' | 'IGNORE' | 'REJECT';
  readonly how?: string;
}

export type Verdict = Kept | Dropped;

/** Verdicts by the value, or by what the model behind can do. */
export interface ByCase<V extends Verdict = Verdict> {
  readonly cases: { readonly [when: string]: V };
}

type Gone = Dropped | ByCase<Dropped>;

/** Everything inside shares the verdict, or has its own table elsewhere. */
export interface Whole {
  readonly whole: true;
}

/** The entry of a field that holds a `T`. */
export type Entry<T> = Gone | ((Kept | ByCase) & (Whole | Inside<T>));

type Inside<T> = [ObjectsIn<T>] extends [never]
  ? object
  : IsUnion<TagsOf<ObjectsIn<T>>> extends true
    ? { readonly one: Variants<ObjectsIn<T>> }
    : { readonly in: Fields<ObjectsIn<T>> };

/** The objects with known fields that a value is or holds in lists. */
type ObjectsIn<T> = T extends string
  ? never
  : T extends readonly (infer Each)[]
    ? ObjectsIn<Each>
    : T extends object
      ? string extends keyof T
        ? never
        : T
      : never;

type KeysOf<T> = T extends unknown ? keyof T : never;
type ValueOf<T, K extends PropertyKey> = T extends { readonly [key in K]?: infer V } ? V : never;

type TagKey = 'type' | 'role';
/** A type other than `message` tells more than the role. */
type TagsOf<T> = T extends { readonly role: infer Role extends string }
  ? T extends { readonly type: infer Type extends string }
    ? Type extends 'message'
      ? Role
      : Type
    : Role
  : Extract<ValueOf<T, 'type'>, string>;
type IsUnion<T, All = T> = [T] extends [never]
  ? false
  : (T extends unknown ? ([All] extends [T] ? false : true) : never) extends true
    ? true
    : false;
type WithTag<T, Tag> = T extends unknown ? (Tag extends TagsOf<T> ? T : never) : never;

/** An entry for each kind of object, by its `type` or `role`. */
export type Variants<T> = {
  readonly [Tag in TagsOf<T>]:
    Gone | ((Kept | ByCase) & (Whole | { readonly in: Omit<Fields<WithTag<T, Tag>>, TagKey> }));
};

/** An entry for each field of an object, or of any object of a union. */
export type Fields<T> = { readonly [K in KeysOf<T>]-?: Entry<ValueOf<T, K>> };

/** An entry as tests and documents read it. */
export type AnyEntry = (Verdict | ByCase) & {
  readonly in?: AnyFields;
  readonly one?: AnyFields;
  readonly whole?: true;
};
export interface AnyFields {
  readonly [key: string]: AnyEntry;
}

/**
 * What becomes of the rows of a table towards one more dialect. A key is the id of a row (its path and its case), the path
 * of all cases of a row, or the beginning of paths and `*`; the longest that fits a row decides it.
 */
export interface Column {
  readonly [rows: string]: Verdict;
}

export function exact<To extends string>(to: To, how?: string): Kept {
  return { decision: 'EXACT', to, ...(how === undefined ? {} : { how }) };
}

export function approx(to: string, how: string): Kept {
  return { decision: 'APPROX', to, how };
}

/** An approximation that cannot surprise. */
export function near(to: string, how: string): Kept {
  return { decision: 'APPROX', to, how, silent: true };
}

export function warn(how?: string): Dropped {
  return { decision: 'WARN', ...(how === undefined ? {} : { how }) };
}

export function ignore(how?: string): Dropped {
  return { decision: 'IGNORE', ...(how === undefined ? {} : { how }) };
}

export function reject(how?: string): Dropped {
  return { decision: 'REJECT', ...(how === undefined ? {} : { how }) };
}

export function byCase<V extends Verdict>(cases: ByCase<V>['cases']): ByCase<V> {
  return { cases };
}

/** Kept, with one verdict for everything inside. */
export function whole(verdict: Kept): Kept & Whole {
  return { ...verdict, whole: true };
}

/** An optional object that says nothing itself; what is inside is decided. */
export const holder: ByCase<Kept> = { cases: {} };
