/** The real clocks. */
import type { Clock } from '../core/runtime.ts';

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
};
