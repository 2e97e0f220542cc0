/**
 * The arithmetic of rates, shared by all counters. A bucket holds `perMinute` and refills evenly; what
 * is missing from it is kept in units of a 60,000th, of which `perMinute` flow back each millisecond, so
 * that everything is an integer below 2^53 for rates up to 75 thousand million a minute. For requests
 * (amount 1) this is GCRA, with a burst of `perMinute`.
 */

export const unitsEach = 60_000;

/** What is missing after this many ms. A clock that goes back gives nothing. */
export function missingAfter(missing: number, perMinute: number, elapsedMs: number): number {
  return elapsedMs <= 0 ? missing : Math.max(0, missing - elapsedMs * perMinute);
}

/** Ms until the amount fits; 0 = it fits now, undefined = it never does. */
export function waitFor(missing: number, perMinute: number, amount: number): number | undefined {
  if (amount > perMinute) return undefined;
  const over = missing + (amount - perMinute) * unitsEach;
  return over <= 0 ? 0 : Math.ceil(over / perMinute);
}

/** Whole requests or tokens that could be drawn now. */
export function remaining(missing: number, perMinute: number): number {
  return Math.max(0, Math.floor(perMinute - missing / unitsEach));
}

/** Ms until the bucket is full. */
export function untilFull(missing: number, perMinute: number): number {
  return Math.ceil(missing / perMinute);
}

/**
 * What is missing once the used amount takes the place of the reserved one: no fuller than full, no
 * emptier than one bucket below empty.
 */
export function missingSettled(missing: number, perMinute: number, change: number): number {
  const most = 2 * perMinute * unitsEach;
  return Math.min(Math.max(0, missing + change * unitsEach), Math.max(missing, most));
}
