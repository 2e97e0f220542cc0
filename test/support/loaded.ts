/** Calls of local models, whatever the machine is busy with. */
import type { Reply } from './http.ts';

/** Asks again while the answer is that the model is loading: a call waits 20 s for it, and a busy machine takes longer. */
export async function whenLoaded(ask: () => Promise<Reply>): Promise<Reply> {
  for (;;) {
    const reply = await ask();
    if (!reply.text.includes('is still loading')) return reply;
  }
}
