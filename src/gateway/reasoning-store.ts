/**
 * Turns that an upstream wants back as it wrote them, for clients that drop what they do not know.
 * Bounded in bytes, number and time; what is gone is not made
 * up. In memory only: it is of no use after the conversation, and it is other people's text.
 */
import { createHash } from 'node:crypto';
import type { Origin } from '../core/conversation.ts';
import { tryParseInnerObject } from '../json/parse.ts';
import type { KeptTurn, KnownCall } from '../core/kept-turn.ts';
import type { Clock } from '../core/runtime.ts';

export interface ReasoningStoreOptions {
  readonly clock: Clock;
  readonly ttlMs?: number;
  readonly maxBytes?: number;
  readonly maxTurns?: number;
  /** Told of each turn that is kept here, so that others can keep it, too. */
  readonly kept?: (kept: SharedTurn) => void;
}

/** A turn under all names by which it is found. */
export interface SharedTurn {
  readonly turn: KeptTurn;
  readonly keys: readonly string[];
  readonly bytes: number;
}

export interface StoredTurn extends KeptTurn {
  readonly known: readonly KnownCall[];
  /** All of its reasoning as one text: who made it is known again by that. */
  readonly said?: string;
}

/** What the users said up to a turn, as a digest (`PromptTrail`). */
export interface Asked {
  digest(): string;
}

interface Entry {
  readonly turn: KeptTurn;
  readonly keys: readonly string[];
  readonly bytes: number;
  readonly storedAt: number;
}

const hourMs = 3_600_000;
const defaultMaxBytes = 64 * 1024 * 1024;
const defaultMaxTurns = 50_000;
/** What an entry takes besides its texts, roughly. */
const overheadBytes = 512;

export class ReasoningStore {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #maxBytes: number;
  readonly #maxTurns: number;
  readonly #kept: ReasoningStoreOptions['kept'];
  /** In the order of storing, so that the oldest is first. */
  readonly #entries = new Set<Entry>();
  readonly #byKey = new Map<string, Entry>();
  #bytes = 0;

  constructor({ clock, ttlMs, maxBytes, maxTurns, kept }: ReasoningStoreOptions) {
    this.#clock = clock;
    this.#ttlMs = ttlMs ?? hourMs;
    this.#maxBytes = maxBytes ?? defaultMaxBytes;
    this.#maxTurns = maxTurns ?? defaultMaxTurns;
    this.#kept = kept;
  }

  /** Held bytes, by estimate. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** @param keyId of the API key that owns the turn; it is returned to no other key. */
  keep(keyId: string, turn: StoredTurn, asked: Asked): void {
    const bytes = sizeOf(turn);
    if (bytes > this.#maxBytes) return;
    const keys = turn.known.map((call) => recallKey(keyId, call, asked));
    const { origin, reasoning, calls, said = '' } = turn;
    if (keys.length > 0) this.#keepAs({ turn: { origin, reasoning, calls }, keys, bytes });
    if (said === '') return;
    // An entry of its own: another turn with the same words is to be found by its calls all the same.
    const author = { origin, reasoning: [], calls: new Map<string, never>() };
    this.#keepAs({ turn: author, keys: [originKey(keyId, said)], bytes: overheadBytes });
  }

  #keepAs(kept: SharedTurn): void {
    this.adopt(kept);
    this.#kept?.(kept);
  }

  /** Keeps a turn that another process has kept. */
  adopt({ turn, keys, bytes }: SharedTurn): void {
    const entry: Entry = { turn, keys, bytes, storedAt: this.#clock.now() };
    for (const key of keys) {
      const earlier = this.#byKey.get(key);
      if (earlier !== undefined) this.#drop(earlier);
    }
    for (const key of keys) this.#byKey.set(key, entry);
    this.#entries.add(entry);
    this.#bytes += bytes;
    this.#shrink();
  }

  recall(keyId: string, call: KnownCall, asked: Asked): KeptTurn | undefined {
    return this.#entries.size === 0 ? undefined : this.#find(recallKey(keyId, call, asked));
  }

  /** Who answered with reasoning of this text. */
  origin(keyId: string, said: string): Origin | undefined {
    return this.#entries.size === 0 ? undefined : this.#find(originKey(keyId, said))?.origin;
  }

  /** Those of the keys that are known. */
  turnsOf(keys: readonly string[]): ReadonlyMap<string, KeptTurn> {
    const found = new Map<string, KeptTurn>();
    for (const key of keys) {
      const turn = this.#find(key);
      if (turn !== undefined) found.set(key, turn);
    }
    return found;
  }

  #find(key: string): KeptTurn | undefined {
    const entry = this.#byKey.get(key);
    if (entry === undefined) return undefined;
    if (!this.#isOld(entry)) return entry.turn;
    this.#drop(entry);
    return undefined;
  }

  #isOld(entry: Entry): boolean {
    return this.#clock.now() - entry.storedAt > this.#ttlMs;
  }

  /** The oldest go first: those beyond their time, and as many more as the limits ask. */
  #shrink(): void {
    for (const entry of this.#entries) {
      const over = this.#bytes > this.#maxBytes || this.#entries.size > this.#maxTurns;
      if (!over && !this.#isOld(entry)) return;
      this.#drop(entry);
    }
  }

  #drop(entry: Entry): void {
    if (!this.#entries.delete(entry)) return;
    this.#bytes -= entry.bytes;
    for (const key of entry.keys) if (this.#byKey.get(key) === entry) this.#byKey.delete(key);
  }
}

/**
 * Random ids are their own proof. Others come again in every conversation (`call_0`, `get_time:1`):
 * there the call and all that the user said before it must be the same.
 */
export function recallKey(keyId: string, call: KnownCall, asked: Asked): string {
  const { id, name, argumentsJson } = call;
  if (isRandom(id, name)) return `${keyId}\n${id}`;
  const context = createHash('sha256')
    .update(`${name}\n${canonicalJson(argumentsJson)}\n${asked.digest()}`)
    .digest('base64url');
  return `${keyId}\n${id}\n${context}`;
}

/** Of reasoning with this text. */
export function originKey(keyId: string, said: string): string {
  return `${keyId}\nsaid ${createHash('sha256').update(said).digest('base64url')}`;
}

/** Clients send arguments back parsed and written again. */
function canonicalJson(text: string): string {
  const value = tryParseInnerObject(text.trim() === '' ? '{}' : text);
  return value === undefined ? text : JSON.stringify(value);
}

function isRandom(id: string, name: string): boolean {
  const runs = id.replaceAll(name, ' ').match(/[A-Za-z0-9]{9,}/g) ?? [];
  return runs.some((run) => /[0-9]/.test(run) && /[A-Za-z]/.test(run));
}

function sizeOf({ reasoning, calls, known }: StoredTurn): number {
  let length = 0;
  for (const { part } of reasoning) {
    length += part.text.length + (part.signature?.length ?? 0) + (part.encrypted?.length ?? 0);
    if (part.extras !== undefined) length += JSON.stringify(part.extras).length;
  }
  for (const members of calls.values()) length += JSON.stringify(members).length;
  for (const { id } of known) length += id.length;
  return overheadBytes + 2 * length;
}
