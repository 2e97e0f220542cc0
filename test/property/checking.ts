/** The properties of this folder: half of the usual effort in `npm test`, and other cases in the rest, fifteen times as many. */
import type * as fc from 'fast-check';
import type { TestContext } from 'node:test';
import { checkAsync as checkAsyncBy, check as checkBy, usualEffort } from '../support/checking.ts';
import { caseCount } from '../support/depth.ts';

const effort = {
  seed: usualEffort.seed + caseCount(1, 0),
  ms: caseCount(940, 60),
  runs: caseCount(4000, 200),
};

/** `least` cases are played whatever they take. */
export function check<T>(
  context: TestContext,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => void,
  least?: number,
): void {
  checkBy(context, arbitrary, holds, { effort, ...(least === undefined ? {} : { least }) });
}

export function checkAsync<T>(
  context: TestContext,
  arbitrary: fc.Arbitrary<T>,
  holds: (value: T) => Promise<void>,
): Promise<void> {
  return checkAsyncBy(context, arbitrary, holds, effort);
}
