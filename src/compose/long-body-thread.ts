/** The entry of the thread that works on long bodies: one job after the other, in the order in which they come. */
import { getHeapStatistics } from 'node:v8';
import { parentPort, workerData } from 'node:worker_threads';
import { createSealer } from '../core/secret.ts';
import type { ThreadData, ThreadMessage } from '../gateway/long-bodies/body-thread.ts';
import { JobRunner } from '../gateway/long-bodies/jobs.ts';
import { collectGarbage } from '../http/overload/load.ts';
import { newId } from '../observe/runtime.ts';

/** The heap, garbage included, that a job may leave. Bytes. */
const maxHeap = 64 * 1024 * 1024;

const { sealKey }: ThreadData = workerData;
const runner = new JobRunner({ newId, sealer: createSealer(sealKey), random: Math.random });

parentPort?.on('message', (message: ThreadMessage) => {
  if ('forget' in message) return runner.forget(message.forget);
  const { reply, moved } = runner.answer(message);
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort?.postMessage(reply, [...moved]);
  runner.free();
  // What a job left behind counts as the process's memory, which other bodies need (G5).
  if (getHeapStatistics().total_heap_size > maxHeap) collectGarbage('compact');
});
