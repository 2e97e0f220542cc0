/** Entry of the store's worker thread: one database, requests in the order of their arrival. */
import { parentPort, workerData } from 'node:worker_threads';
import { SqliteEngine } from './engine.ts';
import { openForReading, openForWriting } from './database.ts';
import {
  type ReplyMessage,
  type RequestMessage,
  type WorkerOptions,
  asStoreError,
} from './thread.ts';

const options: WorkerOptions = workerData;
/** `performance.now()` begins anew in each thread. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6;

function open(): SqliteEngine | undefined {
  try {
    const db = options.readOnly ? openForReading(options.path) : openForWriting(options);
    const engine = new SqliteEngine({ db, path: options.path, now, wall: Date.now });
    reply({ seq: 0 });
    return engine;
  } catch (error) {
    reply(failed(0, error));
    return undefined;
  }
}

function failed(seq: number, thrown: unknown): ReplyMessage {
  const { kind, message } = asStoreError(thrown, options.path);
  return { seq, failure: { kind, message } };
}

function reply(message: ReplyMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort?.postMessage(message);
}

const engine = open();
if (engine === undefined) parentPort?.close();
else {
  parentPort?.on('message', ({ seq, part, method, args }: RequestMessage) => {
    try {
      reply({ seq, value: engine.call(part, method, args) });
    } catch (error) {
      reply(failed(seq, error));
    }
    if (part === 'engine' && method === 'close') parentPort?.close();
  });
}
