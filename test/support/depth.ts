/** How many cases of a large matrix run: `npm test` takes a fixed sample, `npm run test:all` all of them. */
const isWhole = process.env['TEST_DEPTH'] === 'whole';

/** The number of cases: `sample` of them in `npm test`. */
export function caseCount(whole: number, sample: number): number {
  return isWhole ? whole : sample;
}

/** Whether a case belongs to the sample of `npm test`: one in `every`, by its position. */
export function isInSample(position: number, every: number): boolean {
  return isWhole || position % every === 0;
}
