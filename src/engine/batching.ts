/** Which sequences are computed together in the next batch. */
import type { CustomBatchingPrioritizationStrategy } from 'node-llama-cpp';
import { aloneInBatch } from './sequence-slot.ts';

type Items = Parameters<CustomBatchingPrioritizationStrategy>[0];
type Batch = ReturnType<CustomBatchingPrioritizationStrategy>;

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
