/** How many requests are answered at once, and how long they may be, within the machine's memory. */

export interface CapacityWishes {
  /** Tokens of prompt and answer together that the operator asked for; never made less. */
  readonly contextSize?: number;
  /** Requests at once, at most. */
  readonly parallel: number;
  readonly trainContextSize: number;
  /** Bytes that the state of all sequences together may take. */
  readonly memoryBytes: number;
  /** Bytes that it takes. */
  readonly estimate: (capacity: Capacity) => Promise<number>;
}

export interface Capacity {
  /** Of each sequence. */
  readonly contextSize: number;
  readonly parallel: number;
}

/** Used where the operator says nothing. */
const customaryContext = 8192;
const leastContext = 2048;

/** Gives up requests at once before it gives up their length. */
export async function planCapacity(wishes: CapacityWishes): Promise<Capacity> {
  const usual = Math.min(wishes.trainContextSize, customaryContext);
  let capacity = { contextSize: wishes.contextSize ?? usual, parallel: wishes.parallel };
  while ((await wishes.estimate(capacity)) > wishes.memoryBytes) {
    const { contextSize, parallel } = capacity;
    if (parallel > 1) capacity = { contextSize, parallel: Math.floor(parallel / 2) };
    else if (wishes.contextSize === undefined && contextSize > leastContext) {
      capacity = { contextSize: Math.max(leastContext, Math.floor(contextSize / 2)), parallel };
    } else break;
  }
  return capacity;
}
