/** How properties are checked: a time box, and a seed that is always printed. */
import * as fc from 'fast-check';
import type { TestContext } from 'node:test';

/** The same cases each time, unless another seed is asked for: PROPERTY_SEED=random or a number. */
function chooseSeed(): number {
  const wanted = process.env['PROPERTY_SEED'];
  if (wanted === undefined) return 20_261_121;
  return wanted === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(wanted);
}

/** All properties together take some ten seconds in interactive runs, and a minute in CI. */
const properties = 80;
const inAll = process.env['CI'] === 'true' ? 60_000 : 10_000;
const limitMs = Number(process.env['PROPERTY_MS'] ?? inAll / properties);
const maxRuns = process.env['CI'] === 'true' ? 4000 : 400;
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
  readonly #began = performance.now();
  #cases = 0;
  #isShrinking = false;
  #last: fc.Value<T> | undefined;

  constructor(all: fc.Arbitrary<T>, least: number) {
    super();
    this.#all = all;
    this.#least = least;
  }

  /** Whether the case is to be played. */
  get isOpen(): boolean {
    const hasTime = this.#cases <= this.#least || performance.now() - this.#began < limitMs;
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
  least = minRuns,
): void {
  const seed = chooseSeed();
  context.diagnostic(`seed ${seed}`);
  const box = new TimeBox(arbitrary, least);
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
    { seed, numRuns: maxRuns },
  );
}

/** The same for properties that must wait; fewer cases, since each of them costs more. */
export async function checkAsync<T>(
  context: TestContext,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
): Promise<void> {
  const seed = chooseSeed();
  context.diagnostic(`seed ${seed}`);
  const box = new TimeBox(arbitrary, minRuns / 4);
  const property = fc.asyncProperty(box, async (value) => {
    if (!box.isOpen) return;
    try {
      await holds(value);
    } catch (error) {
      box.failed();
      throw error;
    }
  });
  await fc.assert(property, { seed, numRuns: maxRuns / 4 });
}
