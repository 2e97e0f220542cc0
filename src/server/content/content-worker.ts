/** The thread that reads what calls said, takes secrets out and seals it: milliseconds that hold up no call. */
import { randomBytes } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { keptContent } from './kept-content.ts';
import { sealContent } from './sealed-content.ts';
import type { SeenCall } from './seen-call.ts';

export interface ContentJob {
  readonly seq: number;
  readonly seen: SeenCall;
  /** Characters of each body. */
  readonly most: number;
  readonly key: Uint8Array;
}

export interface ContentReply {
  readonly seq: number;
  /** Undefined: it could not be read. */
  readonly sealed: Uint8Array | undefined;
}

function sealed({ seen, most, key }: ContentJob): Uint8Array | undefined {
  try {
    return sealContent(keptContent(seen, most), seen, { key, iv: randomBytes(12) });
  } catch {
    // JSON that is nested too deeply, and whatever else upstreams think of.
    return undefined;
  }
}

parentPort?.on('message', (job: ContentJob) => {
  const reply: ContentReply = { seq: job.seq, sealed: sealed(job) };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort?.postMessage(reply);
});
