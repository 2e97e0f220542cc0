/** How properties are checked: a time box, and a seed that is always told. */
import * as fc from 'fast-check';
import type { TestContext } from 'node:test';

/** The same cases each time, unless another seed is asked for: PROPERTY_SEED=random or a number. */
function chooseSeed(): number {
  const wanted = process.env['PROPERTY_SEED'];
  if (wanted === undefined) return 20_261_121;
  return wanted === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(wanted);
}

const limitMs = Number(process.env['PROPERTY_MS'] ?? '4000');

/** Checks a property; a failure names the seed and the smallest case found. */
export function check<T>(
  context: TestContext,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => void,
): void {
  const seed = chooseSeed();
  context.diagnostic(`seed ${seed}`);
  fc.assert(
    fc.property(arbitrary, (value) => {
      holds(value);
    }),
    { seed, numRuns: 400, interruptAfterTimeLimit: limitMs, markInterruptAsFailure: false },
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
  await fc.assert(fc.asyncProperty(arbitrary, holds), {
    seed,
    numRuns: 100,
    interruptAfterTimeLimit: limitMs,
    markInterruptAsFailure: false,
  });
}
