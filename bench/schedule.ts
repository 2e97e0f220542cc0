/** A fixed schedule, which no answer can hold up. */

/**
 * Calls `act` at its times. Timers of Node are late by up to a millisecond, more than what is to be
 * measured: the last stretch is polled, unless `rests` leaves the core to others meanwhile.
 */
export function schedule(
  total: number,
  dueAt: (index: number) => number,
  act: (dueAt: number) => void,
  { rests = false } = {},
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let next = 0;
  const step = (): void => {
    while (next < total && dueAt(next) <= performance.now()) {
      act(dueAt(next));
      next += 1;
    }
    if (next === total) return resolve();
    const left = dueAt(next) - performance.now();
    if (rests || left > 2) setTimeout(step, Math.floor(left - 1));
    else setImmediate(step);
  };
  step();
  return promise;
}
