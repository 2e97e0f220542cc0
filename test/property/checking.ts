/** How properties are checked: a time box, and a seed that is always told. */
import * as fc from 'fast-check';
import type { TestContext } from 'node:test';

/** The same cases each time, unless another seed is asked for: PROPERTY_SEED=random or a number. */
function chooseSeed(): number {
  const wanted = process.env['PROPERTY_SEED'];
  if (wanted === undefined) return 20_261_121;
  return wanted === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(wanted);
}

/** All properties together take some ten seconds where people wait, and a minute where nobody does. */
const properties = 80;
const inAll = process.env['CI'] === 'true' ? 60_000 : 10_000;
const limitMs = Number(process.env['PROPERTY_MS'] ?? inAll / properties);
const maxRuns = process.env['CI'] === 'true' ? 4000 : 400;
/** Played whatever they take, so that a slow machine checks something too. */
const minRuns = 40;

/**
 * Whether to play one more case. fast-check's own limit fails when it strikes within the first case, which a
 * busy machine makes happen; a smaller case of a failed one is always played.
 */
function timeBox(least: number): { may(): boolean; failed(): void } {
  let runs = 0;
  let shrinking = false;
  const began = performance.now();
  return {
    may: () => {
      runs += 1;
      return shrinking || runs <= least || performance.now() - began < limitMs;
    },
    failed: () => {
      shrinking = true;
    },
  };
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
  const box = timeBox(least);
  fc.assert(
    fc.property(arbitrary, (value) => {
      if (!box.may()) return;
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
  const box = timeBox(minRuns / 4);
  const property = fc.asyncProperty(arbitrary, async (value) => {
    if (!box.may()) return;
    try {
      await holds(value);
    } catch (error) {
      box.failed();
      throw error;
    }
  });
  await fc.assert(property, { seed, numRuns: maxRuns / 4 });
}
