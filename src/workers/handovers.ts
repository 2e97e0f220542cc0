/**
 * Connections on their way to a worker. `node:cluster` waits for the worker to say that it has one; of a worker
 * that died before that nothing comes, and the client would wait for ever: here it is said for it, and the
 * connection goes to another worker.
 */
import type { ChildProcess } from 'node:child_process';
import { isObject } from '../core/json.ts';

/** What `node:cluster` calls its own messages. */
const ofCluster = { cmd: 'NODE_CLUSTER' };

/** @returns gives back what is on its way; for a worker that is gone. */
export function watchHandovers(worker: ChildProcess): () => void {
  const pending = new Set<unknown>();
  const { send } = worker;
  Object.defineProperty(worker, 'send', {
    value: (...args: readonly unknown[]): unknown => {
      const [message] = args;
      if (isObject(message) && message['act'] === 'newconn') pending.add(message['seq']);
      return Reflect.apply(send, worker, args);
    },
  });
  worker.on('internalMessage', (message: unknown) => {
    if (isObject(message)) pending.delete(message['ack']);
  });
  return () => {
    for (const ack of pending) {
      worker.emit('internalMessage', { ...ofCluster, ack, accepted: false });
    }
  };
}
