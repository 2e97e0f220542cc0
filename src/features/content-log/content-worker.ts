/** The thread that reads what calls said, takes secrets out and seals it: milliseconds that hold up no call. */
import { randomBytes } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { Redactor, loggedContent } from './logged-content.ts';
import { type SeenCall, sealContent } from './sealed-content.ts';

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
  readonly made: SealedCall | undefined;
}

export interface SealedCall {
  readonly sealed: Uint8Array;
  /** A key or a credential was taken out. */
  readonly redacted: boolean;
}

function made({ seen, most, key }: ContentJob): SealedCall | undefined {
  try {
    const redactor = new Redactor(seen.secrets);
    const content = loggedContent(seen, most, redactor);
    const sealed = sealContent(content, seen, { key, iv: randomBytes(12) });
    return { sealed, redacted: redactor.found };
  } catch {
    // JSON that is nested too deeply, and whatever else upstreams think of.
    return undefined;
  }
}

parentPort?.on('message', (job: ContentJob) => {
  const reply: ContentReply = { seq: job.seq, made: made(job) };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort?.postMessage(reply);
});
