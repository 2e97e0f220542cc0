/** Which sequences are computed together in the next batch. */
import type { CustomBatchingPrioritizationStrategy } from 'node-llama-cpp';
import { aloneInBatch } from './sequence-slot.ts';

type Items = Parameters<CustomBatchingPrioritizationStrategy>[0];
type Batch = ReturnType<CustomBatchingPrioritizationStrategy>;

/** After this many turns, everything that can arrive without waiting for something else has arrived. */
const patience = 16;

/**
 * Batches of all generating sequences, as `nextBatch` makes them. The library asks for the next batch as soon
 * as the last token of the current one is chosen, before the consumer of that token has asked for its next
 * token. Without this class one of four sequences was always missing, and two were computed one by one. It
 * therefore answers with an empty batch, after which the library asks again, until all sequences are present or
 * do not come at once.
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
