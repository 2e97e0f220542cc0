/** Buckets of one kind in memory. A full one is as good as none, and is forgotten. */
import { missingAfter, missingSettled, unitsEach } from './bucket.ts';
import { Shelf } from './shelf.ts';

interface Bucket {
  missing: number;
  /** Whole monotonic ms at which so much was missing. */
  at: number;
  perMinute: number;
}

export interface RateChange {
  readonly counter: string;
  readonly perMinute: number;
  /** Requests or tokens that are taken; below 0 = given back. */
  readonly amount: number;
}

export class Rates {
  readonly #buckets: Shelf<Bucket>;

  /** @param now whole monotonic ms */
  constructor(now: () => number) {
    this.#buckets = new Shelf(
      ({ missing, perMinute, at }) => missingAfter(missing, perMinute, now() - at) === 0,
    );
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Missing units. */
  missing(counter: string, now: number): number {
    const bucket = this.#buckets.get(counter);
    return bucket === undefined ? 0 : flow(bucket, now);
  }

  take({ counter, perMinute, amount }: RateChange, now: number): void {
    const bucket = this.#buckets.get(counter);
    if (bucket === undefined) {
      this.#buckets.add(counter, { missing: amount * unitsEach, at: now, perMinute });
      return;
    }
    bucket.missing = flow(bucket, now) + amount * unitsEach;
    bucket.perMinute = perMinute;
  }

  /** Corrects an earlier take: a refund ends at full, debt one bucket below empty. */
  settle({ counter, perMinute, amount }: RateChange, now: number): void {
    if (amount === 0) return;
    let bucket = this.#buckets.get(counter);
    if (bucket === undefined) {
      if (amount < 0) return;
      bucket = { missing: 0, at: now, perMinute };
      this.#buckets.add(counter, bucket);
    }
    bucket.missing = missingSettled(flow(bucket, now), perMinute, amount);
  }
}

/** Lets flow back what has flown back since the last time. */
function flow(bucket: Bucket, now: number): number {
  bucket.missing = missingAfter(bucket.missing, bucket.perMinute, now - bucket.at);
  bucket.at = Math.max(bucket.at, now);
  return bucket.missing;
}
