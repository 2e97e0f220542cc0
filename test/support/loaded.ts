/** Calls of local models on a busy machine. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Reply } from './http.ts';

const maxMs = 300_000;

/**
 * Repeats a call until the local model has loaded: a call waits 20 s for it, and a busy machine takes longer.
 * @throws Error with the last reply when the model has not loaded after five minutes; and the errors of the call
 */
export async function whenLoaded<R extends Pick<Reply, 'status' | 'text'>>(
  call: () => Promise<R>,
): Promise<R> {
  const deadline = performance.now() + maxMs;
  for (;;) {
    const reply = await call();
    if (!reply.text.includes('is still loading')) return reply;
    if (performance.now() > deadline) {
      throw new Error(`The model has not loaded after ${maxMs} ms: ${reply.status} ${reply.text}`);
    }
    await sleep(100);
  }
}
