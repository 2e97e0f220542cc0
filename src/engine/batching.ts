/** Which sequences are computed together in the next batch. */
import type { CustomBatchingPrioritizationStrategy } from 'node-llama-cpp';
import { aloneInBatch } from './sequence-slot.ts';

type Items = Parameters<CustomBatchingPrioritizationStrategy>[0];
type Batch = ReturnType<CustomBatchingPrioritizationStrategy>;

/** So many looks are enough for all that can come without waiting for anything else. */
const patience = 16;

/**
 * Batches as `nextBatch` makes them, of all who are generating. The library looks for the next batch as
 * soon as the last token of this one is chosen, which is before whoever gets that token has asked for
 * the next: one of four was always missing, and of two each was computed alone. So an empty batch is
 * answered, after which the library looks again, until all are there or do not come at once.
 */
export class FullBatches {
  readonly #generating: () => number;
  #looks = 0;

  /** @param generating how many sequences will ask for a next token. */
  constructor(generating: () => number) {
    this.#generating = generating;
  }

  next({ items, size }: Items): Batch {
    const alone = items[0]?.evaluationPriority === aloneInBatch;
    if (!alone && items.length < this.#generating() && this.#looks < patience) {
      this.#looks += 1;
      return [];
    }
    this.#looks = 0;
    return nextBatch({ items, size });
  }
}

/**
 * In the order of asking: the sequences of requests that promise the same answer again each in a batch
 * of their own, since batches of other sizes round differently; all others together. Who generates
 * needs one token and gets it; prompts that are being read share the rest.
 */
export function nextBatch({ items, size }: Items): Batch {
  const [first] = items;
  if (first === undefined) return [];
  if (first.evaluationPriority === aloneInBatch) {
    return [{ item: first, processAmount: Math.min(size, first.tokens.length) }];
  }
  const together = items.filter((item) => item.evaluationPriority !== aloneInBatch);
  const shortestFirst = together.toSorted((a, b) => a.tokens.length - b.tokens.length);
  const batch: Batch = [];
  let room = size;
  for (const [index, item] of shortestFirst.entries()) {
    const share = Math.floor(room / (shortestFirst.length - index));
    const processAmount = Math.min(item.tokens.length, share);
    if (processAmount === 0) continue;
    room -= processAmount;
    batch.push({ item, processAmount });
  }
  return batch;
}
