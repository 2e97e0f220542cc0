/**
 * Answers by `Idempotency-Key` (reliability.md §6, E17): a request that is sent again with its key gets
 * the answer that its first sending had, and costs nothing. They are kept in memory, by the gateway that
 * gave them: it is a shelter from clients that ask twice, not a promise that survives a restart.
 */
import { hash } from 'node:crypto';
import { GatewayError } from '../core/errors.ts';
import type { Clock } from '../core/runtime.ts';

export interface KeptAnswer {
  readonly status: number;
  /** Flat: name, value, …; without the ids of its request. */
  readonly headers: readonly string[];
  /** Undefined when it was too long to be kept. */
  readonly body: Buffer | undefined;
}

export interface IdempotentRequest {
  /** Whose request it is: two clients may choose the same key. */
  readonly keyId: string;
  readonly idempotencyKey: string;
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
}

/** Either what was answered before, or the right to answer now. */
export type Claim =
  | { readonly kept: KeptAnswer & { readonly body: Buffer } }
  | ({ readonly kept: undefined; finish(answer: KeptAnswer | undefined): void } & RecordingRoom);

/** Answers that are still being given lie in memory as well. */
export interface RecordingRoom {
  /** Takes so many bytes more for a recording; false when they are not there. `finish` gives them back. */
  hold(bytes: number): boolean;
}

interface Entry {
  readonly fingerprint: string;
  /** Undefined while the first sending is being answered. */
  readonly answer: KeptAnswer | undefined;
  /** Monotonic ms. */
  readonly doneAt: number;
}

export interface KeepLimits {
  readonly ageMs: number;
  /** Of all answers together, also those that are being given, and of those of one client. */
  readonly bytes: number;
  readonly bytesOfOne: number;
  readonly answersOfOne: number;
}

const customary: KeepLimits = {
  ageMs: 24 * 60 * 60 * 1000,
  bytes: 64 * 1024 * 1024,
  bytesOfOne: 16 * 1024 * 1024,
  answersOfOne: 10_000,
};

/** The entries of one client, the oldest answer first. */
interface Shelf {
  readonly entries: Map<string, Entry>;
  bytes: number;
}

export class IdempotentAnswers {
  readonly #clock: Clock;
  readonly #limits: KeepLimits;
  readonly #shelves = new Map<string, Shelf>();
  #bytes = 0;

  constructor(clock: Clock, limits = customary) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /**
   * @throws GatewayError `idempotency_busy` while the first sending is answered, `idempotency_conflict`
   * for another request under the same key, `idempotency_expired` when the answer was too long to keep.
   */
  claim(request: IdempotentRequest): Claim {
    const fingerprint = fingerprintOf(request);
    const shelf = this.#shelves.get(request.keyId) ?? {
      entries: new Map<string, Entry>(),
      bytes: 0,
    };
    this.#removeOld(request.keyId, shelf);
    const known = shelf.entries.get(request.idempotencyKey);
    if (known !== undefined) return { kept: replayable(known, fingerprint) };
    const entry: Entry = { fingerprint, answer: undefined, doneAt: Infinity };
    shelf.entries.set(request.idempotencyKey, entry);
    this.#shelves.set(request.keyId, shelf);
    let held = 0;
    return {
      kept: undefined,
      hold: (bytes) => {
        if (!this.#makeRoomForAll(bytes)) return false;
        held += bytes;
        this.#bytes += bytes;
        return true;
      },
      finish: (answer) => {
        this.#bytes -= held;
        held = 0;
        this.#finish(request, entry, answer);
      },
    };
  }

  /** What all answers take, and the recordings of those that are being given. */
  get bytes(): number {
    return this.#bytes;
  }

  #finish(
    { keyId, idempotencyKey }: IdempotentRequest,
    entry: Entry,
    answer: KeptAnswer | undefined,
  ): void {
    const shelf = this.#shelves.get(keyId);
    if (shelf === undefined) return;
    shelf.entries.delete(idempotencyKey);
    if (answer !== undefined) this.#put(shelf, idempotencyKey, { ...entry, answer });
    // Making room may have taken the empty shelf away.
    if (shelf.entries.size > 0) this.#shelves.set(keyId, shelf);
    else this.#shelves.delete(keyId);
  }

  #put(shelf: Shelf, key: string, entry: Entry & { readonly answer: KeptAnswer }): void {
    const size = sizeOf(entry.answer);
    this.#makeRoom(shelf, size);
    if (!this.#makeRoomForAll(size)) return;
    // To the end of the line: the line is in the order of age.
    shelf.entries.set(key, { ...entry, doneAt: this.#clock.now() });
    shelf.bytes += size;
    this.#bytes += size;
  }

  /** The oldest answers of a client go first. */
  #makeRoom(shelf: Shelf, size: number): void {
    const { bytesOfOne, answersOfOne } = this.#limits;
    for (const [key, entry] of shelf.entries) {
      if (shelf.bytes + size <= bytesOfOne && shelf.entries.size < answersOfOne) break;
      if (entry.answer !== undefined) this.#remove(shelf, key, entry.answer);
    }
  }

  /** Too old ones go, then the oldest of whoever has most: nobody can take the shelter from the others. */
  #makeRoomForAll(size: number): boolean {
    const { bytes } = this.#limits;
    if (this.#bytes + size <= bytes) return true;
    for (const [keyId, each] of this.#shelves) this.#removeOld(keyId, each);
    // Somewhat more at once, so that not each answer looks through all shelves.
    while (this.#bytes + size > bytes - bytes / 16) {
      const largest = this.#largestShelf();
      if (largest === undefined) break;
      const half = largest.bytes / 2;
      for (const [key, { answer }] of largest.entries) {
        if (largest.bytes <= half) break;
        if (answer !== undefined) this.#remove(largest, key, answer);
      }
    }
    return this.#bytes + size <= bytes;
  }

  #largestShelf(): Shelf | undefined {
    let largest: Shelf | undefined;
    for (const shelf of this.#shelves.values()) {
      if (shelf.bytes > (largest?.bytes ?? 0)) largest = shelf;
    }
    return largest;
  }

  #removeOld(keyId: string, shelf: Shelf): void {
    const oldest = this.#clock.now() - this.#limits.ageMs;
    for (const [key, { answer, doneAt }] of shelf.entries) {
      if (answer === undefined) continue;
      if (doneAt > oldest) break;
      this.#remove(shelf, key, answer);
    }
    if (shelf.entries.size === 0) this.#shelves.delete(keyId);
  }

  #remove(shelf: Shelf, key: string, answer: KeptAnswer): void {
    shelf.entries.delete(key);
    shelf.bytes -= sizeOf(answer);
    this.#bytes -= sizeOf(answer);
  }
}

function replayable(entry: Entry, fingerprint: string): KeptAnswer & { readonly body: Buffer } {
  if (entry.fingerprint !== fingerprint) {
    throw new GatewayError(
      'idempotency_conflict',
      'Another request was sent with this Idempotency-Key. Use a new key for each request.',
    );
  }
  const { answer } = entry;
  if (answer === undefined) {
    throw new GatewayError(
      'idempotency_busy',
      'A request with this Idempotency-Key is being answered; ask again in a moment.',
      { retryAfterMs: 1000 },
    );
  }
  const { body } = answer;
  if (body === undefined) {
    throw new GatewayError(
      'idempotency_expired',
      'The request with this Idempotency-Key was answered, but there was no room to keep the answer.',
    );
  }
  return { ...answer, body };
}

function fingerprintOf({ method, path, body }: IdempotentRequest): string {
  return `${method} ${path} ${hash('sha256', body)}`;
}

/** With what an entry costs besides. */
function sizeOf({ body, headers }: KeptAnswer): number {
  return (body?.length ?? 0) + headers.length * 64 + 512;
}
