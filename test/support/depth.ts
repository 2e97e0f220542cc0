import { test, type TestContext } from 'node:test';

/**
 * Which cases of a large matrix run. `npm test` plays a fixed sample, `node scripts/test.mjs --rest` the cases that
 * the sample leaves out, and `npm run test:all` all of them.
 */
const depths = ['sample', 'rest', 'whole'] as const;
const depth = depths.find((each) => each === process.env['TEST_DEPTH']) ?? 'sample';

/** Whether a case runs now. @param inSample whether `npm test` runs it */
export function runsNow(inSample: boolean): boolean {
  return depth === 'whole' || inSample === (depth === 'sample');
}

/** Whether a case runs now; the sample is one in `every`, by position. */
export function isInSample(position: number, every: number): boolean {
  return runsNow(position % every === 0);
}

/** The number of cases of a test that cannot be split: `sample` of them in `npm test`. */
export function caseCount(whole: number, sample: number): number {
  return depth === 'sample' ? sample : whole;
}

/** The first and the last of cases that are numbered from 1 on; the first ones are the sample. */
export function caseRange(whole: number, sample: number): readonly [first: number, last: number] {
  return [depth === 'rest' ? sample + 1 : 1, depth === 'sample' ? sample : whole];
}

type Test = (name: string, body: (t: TestContext) => Promise<void> | void) => unknown;

const leaveOut: Test = () => undefined;

/** What registers tests of one half: those of `npm test`, or those that it leaves to the rest. */
export function testsOf(inSample: boolean): Test {
  return runsNow(inSample) ? test : leaveOut;
}

/**
 * For a matrix in which each cell has the same tests: what registers the next one, or leaves it out. The sample is one
 * test in `every`, in their order. Where a cell's number of tests and `every` have no common divisor, the sample has
 * each of them in some cells.
 */
export function sampledTests(every: number): () => Test {
  let position = -1;
  return () => {
    position += 1;
    return isInSample(position, every) ? test : leaveOut;
  };
}
