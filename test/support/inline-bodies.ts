/** Jobs on long bodies without a thread: in a later turn of the same event loop. */
import type { BodyOfJob, LongBodies } from '../../src/gateway/long-bodies/body-thread.ts';
import { doJob, JobBody, type JobName, type Jobs } from '../../src/gateway/long-bodies/jobs.ts';
import { newId } from '../../src/observe/runtime.ts';
import { testSealer } from './sealing.ts';

const tools = { newId, sealer: testSealer, random: () => 0.5 };

export class InlineBodies implements LongBodies {
  #lastId = 0;

  nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  async run<N extends JobName>(
    name: N,
    input: Jobs[N]['input'],
    { pieces }: BodyOfJob,
  ): Promise<Jobs[N]['output']> {
    await new Promise(setImmediate);
    return doJob(name, { input, body: new JobBody(pieces.whole()), tools });
  }

  forget(): void {
    // Nothing is kept.
  }

  async close(): Promise<void> {
    // Nothing runs.
  }
}
