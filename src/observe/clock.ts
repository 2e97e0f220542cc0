/** The real clocks. */
import type { Clock, Later } from '../core/runtime.ts';

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
};

export const later: Later = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
};
