/** Answers by `Idempotency-Key` in memory: they end with the process. */
import {
  claimGraceMs,
  keptBytes,
  type AnswerClaim,
  type AnswerStore,
  type AnswerToKeep,
  type Claimed,
  type OwnClaim,
} from './answers.ts';

interface Entry {
  readonly keyId: string;
  readonly owner: string;
  readonly mark: string;
  until: number;
  readonly done: boolean;
  readonly bytes: number;
  readonly answer: Uint8Array | undefined;
}

/** The answers of one API key, the oldest first. */
interface Shelf {
  readonly ids: Set<string>;
  bytes: number;
}

export class MemoryAnswers implements AnswerStore {
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #shelves = new Map<string, Shelf>();

  /** @param now ms, of any clock that does not go back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  async claim({ id, keyId, owner, mark, leaseMs }: AnswerClaim): Promise<Claimed> {
    const entry = this.#entries.get(id);
    if (entry !== undefined && entry.until > this.#now() && entry.owner !== owner) {
      if (!entry.done) return { state: 'running', mark: entry.mark };
      return { state: 'done', mark: entry.mark, answer: entry.answer };
    }
    this.#remove(id);
    const until = this.#now() + leaseMs;
    this.#entries.set(id, { keyId, owner, mark, until, done: false, bytes: 0, answer: undefined });
    return { state: 'mine' };
  }

  async renew(claims: readonly OwnClaim[], leaseMs: number): Promise<void> {
    for (const claim of claims) {
      const entry = this.#running(claim);
      if (entry !== undefined) entry.until = this.#now() + leaseMs;
    }
  }

  async keep({ id, owner, answer, keepMs, ...most }: AnswerToKeep): Promise<boolean> {
    const entry = this.#running({ id, owner });
    if (entry === undefined) return this.#entries.get(id)?.owner === owner;
    const bytes = keptBytes(answer);
    const until = this.#now() + keepMs;
    this.#entries.set(id, { ...entry, done: true, until, bytes, answer });
    const shelf = this.#shelves.get(entry.keyId) ?? { ids: new Set<string>(), bytes: 0 };
    this.#shelves.set(entry.keyId, shelf);
    shelf.ids.add(id);
    shelf.bytes += bytes;
    for (const other of shelf.ids) {
      if (shelf.bytes <= most.mostBytes && shelf.ids.size <= most.mostAnswers) break;
      if (other !== id) this.#remove(other);
    }
    return true;
  }

  async release(claim: OwnClaim): Promise<void> {
    if (this.#running(claim) !== undefined) this.#entries.delete(claim.id);
  }

  async releaseAll(): Promise<void> {
    for (const [id, { done }] of this.#entries) if (!done) this.#entries.delete(id);
  }

  async sweep(most: number, bytes: number): Promise<number> {
    let removed = 0;
    for (const [id, { until, done }] of this.#entries) {
      if (removed === most) return removed;
      if (until + (done ? 0 : claimGraceMs) > this.#now()) continue;
      this.#remove(id);
      removed += 1;
    }
    return removed + this.#makeRoom(most - removed, bytes);
  }

  #makeRoom(most: number, bytes: number): number {
    let total = 0;
    let richest: Shelf | undefined;
    for (const shelf of this.#shelves.values()) {
      total += shelf.bytes;
      if (shelf.bytes > (richest?.bytes ?? 0)) richest = shelf;
    }
    if (total <= bytes || richest === undefined) return 0;
    const enough = Math.max(richest.bytes - (total - bytes), richest.bytes / 2);
    let removed = 0;
    for (const id of richest.ids) {
      if (removed === most || richest.bytes <= enough) break;
      this.#remove(id);
      removed += 1;
    }
    return removed;
  }

  #running({ id, owner }: OwnClaim): Entry | undefined {
    const entry = this.#entries.get(id);
    return entry?.owner === owner && !entry.done ? entry : undefined;
  }

  #remove(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    this.#entries.delete(id);
    const shelf = this.#shelves.get(entry.keyId);
    if (!entry.done || shelf === undefined) return;
    shelf.ids.delete(id);
    shelf.bytes -= entry.bytes;
    if (shelf.ids.size === 0) this.#shelves.delete(entry.keyId);
  }
}
