/** What the parts of the request reader share. */
import type { CacheMark, JsonObject, PartBase } from '../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { Sealer } from '../../core/sealer.ts';

/** The reading of one request. */
export interface Reading {
  readonly notes: Notes;
  /** Opens what the gateway sealed; without it, nothing opens. */
  readonly sealer: Sealer | undefined;
  /**
   * For what no other dialect can carry (wire/translation.md: REJECT).
   * @throws GatewayError `invalid_request`, except in a token count, where the field is left out.
   */
  refuse(path: FieldPath, why: string): void;
}

export function requestReading(notes: Notes, sealer?: Sealer): Reading {
  return {
    notes,
    sealer,
    refuse: (path, why) => {
      throw unsupported(path, why);
    },
  };
}

/** In a count of tokens, what would be refused does not count (wire/translation.md §11). */
export function countReading(notes: Notes, sealer?: Sealer): Reading {
  return { notes, sealer, refuse: (path, why) => notes.lost(path, why) };
}

/** The cache mark of a block or tool. */
export function readMark(value: JsonObject): { readonly cacheUntilHere?: CacheMark } {
  const control = value['cache_control'];
  if (!isObject(control)) return {};
  const { ttl } = control;
  return { cacheUntilHere: typeof ttl === 'string' ? { ttl } : {} };
}

/** Members that only this dialect knows, under its name; nothing when there are none. */
export function nativeExtras(members: JsonObject): Pick<PartBase, 'extras'> {
  return Object.keys(members).length === 0 ? {} : { extras: { 'anthropic-messages': members } };
}

/** The object without some of its members, and without those that are null. */
export function without(value: JsonObject, keys: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(
    Object.entries(value).filter(([key, member]) => !keys.has(key) && member !== null),
  );
}
