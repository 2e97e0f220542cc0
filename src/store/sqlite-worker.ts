/** Entry of the store's worker thread: one database, requests in the order of their arrival. */
import { parentPort, workerData } from 'node:worker_threads';
import { SqliteBook } from './sqlite-book.ts';
import { asStoreError } from './sqlite-failure.ts';
import { openForReading, openForWriting } from './sqlite-file.ts';
import type { StoreError } from './store-error.ts';
import type {
  BookAnswer,
  BookOperation,
  BookRequest,
  Dispatch,
  ReplyMessage,
  RequestMessage,
  WorkerOptions,
} from './sqlite-protocol.ts';

const options: WorkerOptions = workerData;

function open(): SqliteBook | undefined {
  try {
    const db = options.readOnly ? openForReading(options.path) : openForWriting(options);
    const book = new SqliteBook({ db, path: options.path, now: () => performance.now() });
    reply({ seq: 0 });
    return book;
  } catch (error) {
    reply(failed(0, asStoreError(error, options.path)));
    return undefined;
  }
}

function answer<K extends BookOperation>(book: Dispatch, request: BookRequest<K>): BookAnswer<K> {
  return book[request.op](...request.args);
}

function failed(seq: number, error: StoreError): ReplyMessage {
  return { seq, failure: { kind: error.kind, message: error.message } };
}

function reply(message: ReplyMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  parentPort?.postMessage(message);
}

const book = open();
if (book === undefined) parentPort?.close();
else {
  parentPort?.on('message', ({ seq, request }: RequestMessage) => {
    try {
      reply({ seq, value: answer(book, request) });
    } catch (error) {
      reply(failed(seq, book.failure(error)));
    }
    if (request.op === 'close') parentPort?.close();
  });
}
