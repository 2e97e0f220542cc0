/**
 * What is known of running calls, by their ids. A `Map` that is added to and deleted from for every call
 * is rehashed all the time, and each dead table keeps the next one, with the calls of its time, alive
 * until the next full collection. Here an entry is one object that is linked and unlinked.
 * `node bench/call-tables.ts`: a `Map` costs a call 1.1–1.6 µs of CPU, and 7–12 full collections in 1.4 million calls;
 * this table 0.8–1.2 µs, and one at most.
 */

interface Entry<T> {
  readonly id: string;
  value: T;
  next: Entry<T> | undefined;
}

/** A power of two. */
const firstBuckets = 256;
/** Entries of a bucket, on average, beyond which there are twice as many buckets. */
const maxOfBucket = 4;
/** The ends of ids differ. */
const hashedCharacters = 5;

export class IdTable<T> {
  #buckets = emptyBuckets<T>(firstBuckets);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(id: string): T | undefined {
    return this.#find(id)?.value;
  }

  has(id: string): boolean {
    return this.#find(id) !== undefined;
  }

  /** Adds or replaces. */
  set(id: string, value: T): void {
    const found = this.#find(id);
    if (found !== undefined) {
      found.value = value;
      return;
    }
    if (this.#size >= maxOfBucket * this.#buckets.length) this.#grow();
    const bucket = bucketOf(id, this.#buckets.length);
    this.#buckets[bucket] = { id, value, next: this.#buckets[bucket] };
    this.#size += 1;
  }

  /** @returns what was there. */
  delete(id: string): T | undefined {
    const bucket = bucketOf(id, this.#buckets.length);
    let before: Entry<T> | undefined;
    for (let entry = this.#buckets[bucket]; entry !== undefined; entry = entry.next) {
      if (entry.id === id) {
        if (before === undefined) this.#buckets[bucket] = entry.next;
        else before.next = entry.next;
        this.#size -= 1;
        return entry.value;
      }
      before = entry;
    }
    return undefined;
  }

  /** In no order; as they are now. */
  entries(): readonly (readonly [id: string, value: T])[] {
    const all: [string, T][] = [];
    if (this.#size === 0) return all;
    for (const first of this.#buckets) {
      for (let entry = first; entry !== undefined; entry = entry.next) {
        all.push([entry.id, entry.value]);
      }
    }
    return all;
  }

  #find(id: string): Entry<T> | undefined {
    let entry = this.#buckets[bucketOf(id, this.#buckets.length)];
    while (entry !== undefined && entry.id !== id) entry = entry.next;
    return entry;
  }

  #grow(): void {
    const all = this.entries();
    const buckets = this.#buckets.length * 2;
    this.#buckets = emptyBuckets<T>(buckets);
    for (const [id, value] of all) {
      const bucket = bucketOf(id, buckets);
      this.#buckets[bucket] = { id, value, next: this.#buckets[bucket] };
    }
  }
}

function emptyBuckets<T>(length: number): (Entry<T> | undefined)[] {
  return Array.from({ length }, () => undefined);
}

function bucketOf(id: string, buckets: number): number {
  let hash = 0;
  for (let at = Math.max(0, id.length - hashedCharacters); at < id.length; at++) {
    hash = (hash * 31 + id.charCodeAt(at)) | 0;
  }
  return hash & (buckets - 1);
}
