/** The entry of the thread that works on long bodies: one job after the other, in the order in which they come. */
import { getHeapStatistics } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { createSealer } from '../core/secret.ts';
import type { ThreadData, ThreadMessage } from '../gateway/long-bodies/body-thread.ts';
import { JobRunner } from '../gateway/long-bodies/jobs.ts';
import { collectGarbage } from '../http/overload/load.ts';
import { newId } from '../observe/runtime.ts';

// A collection takes as much CPU as the job did. It runs between jobs, so that their garbage does not stay (G5).

/** Bytes of heap, garbage included: above this, the heap is collected at once after a job. */
const maxHeap = getHeapStatistics().heap_size_limit / 4;
/** Bytes of heap, garbage included: above this, the heap is collected when no job follows for `restMs`. */
const maxRestingHeap = 64 * 1024 * 1024;
/** The time from the last job to the delayed collection. A further job starts it anew. */
const restMs = 100;

const { sealKey }: ThreadData = workerData;
let resting: NodeJS.Timeout | undefined;
const runner = new JobRunner({ newId, sealer: createSealer(sealKey), random: Math.random });

parentPort?.on('message', (message: ThreadMessage) => {
  if ('forget' in message) return runner.forget(message.forget);
  const { reply, moved } = runner.answer(message);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort?.postMessage(reply, [...moved]);
  runner.free();
  const heap = getHeapStatistics().total_heap_size;
  clearTimeout(resting);
  if (heap > maxHeap) collectGarbage('compact');
  else if (heap > maxRestingHeap) resting = setTimeout(() => collectGarbage('compact'), restMs);
});
