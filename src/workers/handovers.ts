/**
 * Connections on their way to a worker. `node:cluster` waits for the worker to say that it has one, and forgets
 * three of them, whose clients would wait for ever: of a worker that died before it said so, of one that had no
 * descriptor left for it (and would never be given another one), and one that the last worker refuses because it
 * has stopped to listen. The first two go to another worker, the third is closed.
 */
import type { ChildProcess } from 'node:child_process';
import { isObject } from '../core/json.ts';

/** What `node:cluster` calls its own messages. */
const ofCluster = { cmd: 'NODE_CLUSTER' };
/** What a worker answers that had no descriptor left for what it was sent (F92). */
const lostOnItsWay = 'NODE_HANDLE_NACK';
/** Others have one, or it has one again by then. */
const lostMs = 100;
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
    const giveBack = (): void => {
      // What is given back may be sent to the same worker again at once.
      const acks = [...pending.keys()];
      for (const ack of acks) {
        worker.emit('internalMessage', { ...ofCluster, ack, accepted: false });
      }
    };
    // Before cluster, which may send it to another one at once.
    worker.prependListener('internalMessage', (message: unknown) => {
      if (!isObject(message)) return;
      if (message['cmd'] === lostOnItsWay) setTimeout(giveBack, lostMs);
      const handle = pending.get(message['ack']);
      if (handle === undefined) return;
      pending.delete(message['ack']);
      this.#answered(handle, message['accepted'] === true);
    });
    return giveBack;
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
