/**
 * Imported into a gateway that is measured (`--import`): writes once a second into the file that its
 * address names how late the event loop was since five seconds after the start.
 */
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const resolutionMs = 10;
const startMs = 5000;

function watch(file: string): void {
  const turns = monitorEventLoopDelay({ resolution: resolutionMs });
  turns.enable();
  const ms = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolutionMs);
  setInterval(() => {
    const told = { p99Ms: ms(turns.percentile(99)), maxMs: ms(turns.max) };
    writeFileSync(file, JSON.stringify(told));
  }, 1000).unref();
}

const file = new URL(import.meta.url).searchParams.get('to');
if (isMainThread && file !== null) setTimeout(() => watch(file), startMs).unref();
