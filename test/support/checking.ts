/** How properties are checked: a time box, and a seed that is always printed. */
import * as fc from 'fast-check';
import type { TestContext } from 'node:test';

/** How much of a property is checked. */
export interface Effort {
  /** Which cases, unless others are asked for: PROPERTY_SEED=random or a number. */
  readonly seed: number;
  /** Cases are played until this time is over. */
  readonly ms: number;
  readonly runs: number;
}

export const usualEffort: Effort = { seed: 20_261_121, ms: 125, runs: 400 };

function chooseSeed(usual: number): number {
  const wanted = process.env['PROPERTY_SEED'];
  if (wanted === undefined) return usual;
  return wanted === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(wanted);
}

/** Played whatever they take, so that a slow machine checks something too. */
const minRuns = 40;

/**
 * Cases until the time is over, then the last one again and again, which is not played: to make a conversation takes
 * longer than to play it. fast-check's own limit fails when it strikes within the first case, which a busy machine
 * makes happen; a smaller case of a failed one is always played.
 */
class TimeBox<T> extends fc.Arbitrary<T> {
  readonly #all: fc.Arbitrary<T>;
  readonly #least: number;
  readonly #ms: number;
  readonly #began = performance.now();
  #cases = 0;
  #isShrinking = false;
  #last: fc.Value<T> | undefined;

  constructor(all: fc.Arbitrary<T>, least: number, ms: number) {
    super();
    this.#all = all;
    this.#least = least;
    this.#ms = ms;
  }

  /** Whether the case is to be played. */
  get isOpen(): boolean {
    const hasTime = this.#cases <= this.#least || performance.now() - this.#began < this.#ms;
    return this.#isShrinking || hasTime;
  }

  failed(): void {
    this.#isShrinking = true;
  }

  override generate(random: fc.Random, bias: number | undefined): fc.Value<T> {
    this.#cases += 1;
    if (this.#last === undefined || this.isOpen) this.#last = this.#all.generate(random, bias);
    return this.#last;
  }

  override canShrinkWithoutContext(value: unknown): value is T {
    return this.#all.canShrinkWithoutContext(value);
  }

  override shrink(value: T, context: unknown): fc.Stream<fc.Value<T>> {
    return this.#all.shrink(value, context);
  }
}

/**
 * Checks a property; a failure names the seed and the smallest case found. `least` cases are played on a slow
 * machine too: tests that count what they met ask for as many as that needs.
 */
export function check<T>(
  context: TestContext,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => void,
  { least = minRuns, effort = usualEffort }: { least?: number; effort?: Effort } = {},
): void {
  const seed = chooseSeed(effort.seed);
  context.diagnostic(`seed ${seed}`);
  const box = new TimeBox(arbitrary, least, effort.ms);
  fc.assert(
    fc.property(box, (value) => {
      if (!box.isOpen) return;
      try {
        holds(value);
      } catch (error) {
        box.failed();
        throw error;
      }
    }),
    { seed, numRuns: effort.runs },
  );
}

/** The same for properties that must wait; fewer cases, since each of them costs more. */
export async function checkAsync<T>(
  context: TestContext,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
  effort = usualEffort,
): Promise<void> {
  const seed = chooseSeed(effort.seed);
  context.diagnostic(`seed ${seed}`);
  const box = new TimeBox(arbitrary, minRuns / 4, effort.ms);
  const property = fc.asyncProperty(box, async (value) => {
    if (!box.isOpen) return;
    try {
      await holds(value);
    } catch (error) {
      box.failed();
      throw error;
    }
  });
  await fc.assert(property, { seed, numRuns: effort.runs / 4 });
}
