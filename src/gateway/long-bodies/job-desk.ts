/** The thread's side of a job: finds its body, does it, and makes an answer that can be sent. */
import type { JobMessage, JobReply } from './body-thread.ts';
import { doJob, JobBody, type JobTools } from './jobs.ts';
import { bufferOver, packed, sentError, unpacked } from './transfer.ts';

interface AnsweredJob {
  readonly reply: JobReply<unknown>;
  /** Memory that goes with the reply. */
  readonly moved: readonly ArrayBuffer[];
}

export class JobDesk {
  readonly #tools: JobTools;
  /** The body of the last job that said that it is needed again. */
  #kept: { readonly id: number; readonly body: JobBody } | undefined;
  /** Bytes that nothing refers to once the reply is sent. */
  #used: Uint8Array | undefined;

  constructor(tools: JobTools) {
    this.#tools = tools;
  }

  /** Never throws. */
  answer({ name, input, id, bytes, keep }: JobMessage): AnsweredJob {
    const kept = this.#kept?.id === id ? this.#kept.body : undefined;
    if (kept === undefined && this.#kept !== undefined) this.forget(this.#kept.id);
    this.#kept = undefined;
    const body = bytes === undefined ? kept : new JobBody(bufferOver(bytes));
    this.#used = keep ? undefined : body?.bytes;
    try {
      if (body === undefined) throw new Error(`The body of the job "${name}" is not here.`);
      const output = packed(doJob(name, { input: unpacked(input), body, tools: this.#tools }));
      if (keep) this.#kept = { id, body };
      return { reply: { output }, moved: memoryOf(output) };
    } catch (error) {
      this.#used = body?.bytes;
      return { reply: { error: sentError(error) }, moved: [] };
    }
  }

  forget(id: number): void {
    if (this.#kept?.id !== id) return;
    this.#used = this.#kept.body.bytes;
    this.#kept = undefined;
    this.free();
  }

  /** Lets go of the last job's bytes at once: waiting for the collector would hold many bodies of megabytes (G5). */
  free(): void {
    const memory = this.#used?.buffer;
    this.#used = undefined;
    if (memory instanceof ArrayBuffer && !memory.detached) memory.transfer(0);
  }
}

/** The memory of all bytes that stand in an output, or in a list or a map of it. */
function memoryOf(output: unknown): readonly ArrayBuffer[] {
  if (typeof output !== 'object' || output === null) return [];
  const found = new Set<ArrayBuffer>();
  for (const value of Object.values(output)) {
    for (const each of Array.isArray(value) || value instanceof Map ? value.values() : [value]) {
      if (!(each instanceof Uint8Array) || !(each.buffer instanceof ArrayBuffer)) continue;
      // What shares its memory with others is copied.
      if (each.byteLength === each.buffer.byteLength) found.add(each.buffer);
    }
  }
  return [...found];
}
