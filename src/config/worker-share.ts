/** What one of several worker processes may use of what is bounded for all of them. */
import type { LimitSettings, Settings } from './settings.ts';

/**
 * @param number 1, 2, …
 * @param memoryBytes what all may use where the settings do not say it
 */
export function workerShare(settings: Settings, number: number, memoryBytes: number): Settings {
  const { workers, limits } = settings;
  const share: LimitSettings = {
    ...limits,
    streams: partOf(limits.streams, { number, workers }),
    memoryBytes: Math.floor((limits.memoryBytes ?? memoryBytes) / workers),
    connections:
      limits.connections === undefined
        ? undefined
        : partOf(limits.connections, { number, workers }),
  };
  return { ...settings, limits: share };
}

/** The parts of all workers make the whole; none is nothing, since the config refuses less than one for each. */
function partOf(
  whole: number,
  { number, workers }: { readonly number: number; readonly workers: number },
): number {
  return Math.floor(whole / workers) + (number <= whole % workers ? 1 : 0);
}
