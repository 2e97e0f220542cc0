/**
 * Connections on their way to a worker. `node:cluster` waits for the worker to say that it has one, and forgets
 * two of them, whose clients would wait for ever: of a worker that died before it said so, and one that the
 * last worker refuses because it has stopped to listen. The first goes to another worker, the second is closed.
 */
import type { ChildProcess } from 'node:child_process';
import { isObject } from '../core/json.ts';

/** What `node:cluster` calls its own messages. */
const ofCluster = { cmd: 'NODE_CLUSTER' };
/** Another worker may still take it. */
const refusedMs = 100;

interface Closable {
  close(): void;
}

export class Handovers {
  readonly #stopping: () => boolean;
  /** Of all workers. */
  readonly #underWay = new Set<Closable>();

  /** @param stopping whether workers stop to listen */
  constructor(stopping: () => boolean) {
    this.#stopping = stopping;
  }

  /** @returns gives back what is on its way; for a worker that is gone. */
  watch(worker: ChildProcess): () => void {
    const pending = new Map<unknown, Closable>();
    const { send } = worker;
    Object.defineProperty(worker, 'send', {
      value: (...args: readonly unknown[]): unknown => {
        const [message, handle] = args;
        if (isObject(message) && message['act'] === 'newconn' && isClosable(handle)) {
          pending.set(message['seq'], handle);
          this.#underWay.add(handle);
        }
        return Reflect.apply(send, worker, args);
      },
    });
    // Before cluster, which may send it to another one at once.
    worker.prependListener('internalMessage', (message: unknown) => {
      if (!isObject(message)) return;
      const handle = pending.get(message['ack']);
      if (handle === undefined) return;
      pending.delete(message['ack']);
      this.#answered(handle, message['accepted'] === true);
    });
    return () => {
      for (const ack of pending.keys()) {
        worker.emit('internalMessage', { ...ofCluster, ack, accepted: false });
      }
    };
  }

  #answered(handle: Closable, accepted: boolean): void {
    this.#underWay.delete(handle);
    if (accepted || !this.#stopping()) return;
    setTimeout(() => {
      if (!this.#underWay.has(handle)) handle.close();
    }, refusedMs);
  }
}

function isClosable(value: unknown): value is Closable {
  return typeof value === 'object' && value !== null && 'close' in value;
}
