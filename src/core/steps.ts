/**
 * Work of which there may be much, in steps: who does it gives way now and then, and whoever has it done says
 * whether all others have their turn there (G11). Either way the result is the same.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** What is longer, or has more values, is worked on in steps. */
const longBytes = 1024 * 1024;
const longTokens = 20_000;

/** Whether a body is so long that others would wait for it. */
export function isLong(body: {
  readonly pieces: { readonly length: number };
  readonly tokens: number;
}): boolean {
  return body.pieces.length > longBytes || body.tokens > longTokens;
}

/** So many messages, blocks or schemas are a step: a millisecond or two. */
export const perStep = 128;

/** Counts what was done. */
export class Pace {
  #done = 0;

  /** To be asked once for each piece that was done: whether to give way now. */
  get due(): boolean {
    return this.dueWith(1);
  }

  /** The same of a piece that counts as several: a message with so many parts. */
  dueWith(pieces: number): boolean {
    this.#done += pieces;
    if (this.#done < perStep) return false;
    this.#done = 0;
    return true;
  }
}

/** How many pieces a text is that is parsed or written: a step is of some 64,000 characters then. */
export function textWeight(length: number): number {
  return 1 + Math.floor(length / 512);
}

/** All steps in one go. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Others have their turn between the steps. Rejects with what they throw. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    await nextTurn();
    step = steps.next();
  }
  return step.value;
}

/** Gives all others a turn. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
