/**
 * What a call said as a store holds it: packed, and sealed with a key that is in no store, so that a
 * stolen database or backup shows no word of it.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ContentKey } from '../../access/keys/seal-key.ts';
import type { Clock } from '../../core/runtime.ts';
import { tryParseObject } from '../../json/parse.ts';
import type { Json, JsonObject } from '../../json/value.ts';
import type { StoreParts } from '../../store/store.ts';
import { openBytes, sealBytes, sealKey } from '../sealed-bytes.ts';

/** Nothing that is stored comes near it. */
const maxOpenedBytes = 64 * 1024 * 1024;

/** What a sealed content is bound to: moved to another call or key it does not open. */
interface ContentPosition {
  readonly id: string;
  readonly keyId: string;
}

type OpenedContent = JsonObject | 'other key' | 'unreadable';

/** @param key 32 bytes. @param iv 12 random bytes, other ones each time. */
export function sealContent(
  content: LoggedContent,
  position: ContentPosition,
  { key, iv }: { readonly key: Uint8Array; readonly iv: Uint8Array },
): Buffer {
  const packed = deflateRawSync(JSON.stringify(content));
  return sealBytes(packed, boundTo(position), { key: sealKey(key), iv });
}

/** @param key undefined where there is none: then nothing opens. */
export function openContent(
  sealed: Uint8Array,
  position: ContentPosition,
  key: Uint8Array | undefined,
): OpenedContent {
  const packed = openBytes(sealed, boundTo(position), key && sealKey(key));
  if (typeof packed === 'string') return packed;
  try {
    const text = inflateRawSync(packed, { maxOutputLength: maxOpenedBytes }).toString('utf8');
    return tryParseObject(text) ?? 'unreadable';
  } catch {
    // It is not a packed text.
    return 'unreadable';
  }
}

function boundTo({ id, keyId }: ContentPosition): string {
  return `content ${keyId} ${id}`;
}

// The stored content of calls, for authenticated admin callers.

/** `absent`: never stored, removed since, or lost. `locked`: sealed with a key that is not here. */
export type FoundContent =
  | { readonly state: 'kept'; readonly content: JsonObject }
  | { readonly state: 'absent' | 'locked' | 'unreadable' };

interface LoggedContentsDeps {
  readonly store: Pick<StoreParts, 'contents' | 'responses'>;
  readonly key: Pick<ContentKey, 'find'>;
  readonly clock: Pick<Clock, 'wall'>;
}

const batchRows = 500;

export class LoggedContents {
  readonly #deps: LoggedContentsDeps;

  constructor(deps: LoggedContentsDeps) {
    this.#deps = deps;
  }

  /** @param id of the call. @throws StoreError */
  async find(id: string): Promise<FoundContent> {
    const { store, key } = this.#deps;
    const found = await store.contents.find(id);
    if (found === undefined) return { state: 'absent' };
    const opened = openContent(found.sealed, found, key.find());
    if (opened === 'other key') return { state: 'locked' };
    return opened === 'unreadable' ? { state: opened } : { state: 'kept', content: opened };
  }

  /**
   * Removes what was stored of a key's calls, responses included; of those that run nothing will be.
   * @returns how many contents and responses
   * @throws StoreError
   */
  async removeOf(keyId: string): Promise<number> {
    const { store, clock } = this.#deps;
    await store.contents.forget(keyId, clock.wall() + 1);
    const contents = async (): Promise<number> =>
      (await store.contents.remove({ keyId }, batchRows)).rows;
    const responses = (): Promise<number> => store.responses.removeOf(keyId, batchRows);
    return (await removeAll(contents)) + (await removeAll(responses));
  }
}

async function removeAll(some: () => Promise<number>): Promise<number> {
  let removed = 0;
  for (;;) {
    const rows = await some();
    if (rows === 0) return removed;
    removed += rows;
  }
}

// What a call said, on its way from the one who saw it to the thread that makes it fit to be stored.

/** Bytes as they came; what is missing at the end was never held. */
export interface SeenBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** How long it really was. */
  readonly length: number;
}

interface SeenAttempt {
  /** `provider/model`. */
  readonly target: string;
  readonly status: number | undefined;
  /** What it answered instead of an answer. */
  readonly error: string;
}

export interface SeenCall {
  readonly id: string;
  readonly keyId: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    /** Flat: name, value, … */
    readonly headers: readonly string[];
    /** Undefined when it was not read. */
    readonly body: SeenBody | undefined;
  };
  /** Undefined when the client got none. */
  readonly answer:
    | {
        readonly status: number;
        readonly headers: readonly string[];
        readonly body: SeenBody;
        /** Whether it came to its end. */
        readonly whole: boolean;
      }
    | undefined;
  readonly attempts: readonly SeenAttempt[];
  /** Flat headers whose values may be nowhere. */
  readonly secrets: readonly string[];
}

/** JSON as it was, events of a stream (those that belong together put together), or text. */
export type BodyForm = 'json' | 'events' | 'text';

export interface LoggedBody {
  /** Size of the body before anything was omitted. */
  readonly bytes: number;
  /** The text was truncated. */
  readonly cut: boolean;
  readonly form: BodyForm;
  readonly content: Json;
}

export interface LoggedHeader {
  readonly name: string;
  /** Null: not stored. */
  readonly value: string | null;
}

/** What a call said, as it is stored: without secrets and media, under a limit. */
export interface LoggedContent {
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: readonly LoggedHeader[];
    readonly body: LoggedBody | null;
  };
  readonly answer: {
    readonly status: number;
    readonly headers: readonly LoggedHeader[];
    readonly body: LoggedBody;
    readonly whole: boolean;
  } | null;
  readonly attempts: readonly {
    readonly target: string;
    readonly status: number | null;
    readonly body: LoggedBody;
  }[];
}
