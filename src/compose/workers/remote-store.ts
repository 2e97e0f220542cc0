/** The store and the counters of the parent, as a worker uses them. */
import type { Clock } from '../../core/runtime.ts';
import type { Counters, Draw, DrawResult } from '../../store/counters/counters.ts';
import { remoteParts } from '../../store/remote.ts';
import type { Store } from '../../store/store.ts';
import type { Link } from './link.ts';
import type { SessionOperations } from './session.ts';

export type StoreLink = Pick<Link<SessionOperations>, 'ask' | 'tell'>;

/** Closing it closes nothing of the parent's. */
export function remoteStore(link: StoreLink): Store {
  return {
    ...remoteParts((...call) => link.ask('store', call)),
    backup: (path) => link.ask('backup', [path]),
    close: async () => {},
  };
}

export interface RemoteCountersParts {
  readonly link: StoreLink;
  readonly clock: Clock;
  /** How the parent's counters are. */
  readonly state: () => { readonly aheadMs: number; readonly countersUp: boolean };
}

/** A call waits no longer for its limits; then it is E18. */
const drawWaitMs = 5000;

/** One round trip a draw; what is drawn in one turn of the event loop goes together. */
export class RemoteCounters implements Counters {
  readonly #parts: RemoteCountersParts;

  constructor(parts: RemoteCountersParts) {
    this.#parts = parts;
  }

  wall(): number {
    const { clock, state } = this.#parts;
    return clock.wall() + state().aheadMs;
  }

  async draw(draw: Draw): Promise<DrawResult> {
    try {
      return await this.#parts.link.ask('draw', [draw], drawWaitMs);
    } catch (error) {
      // It may have been taken all the same.
      this.settle(draw.callId, { tokens: 0, nanodollars: 0 });
      throw error;
    }
  }

  settle(...args: Parameters<Counters['settle']>): void {
    this.#parts.link.tell('settle', args);
  }

  vacate(callId: string): void {
    this.#parts.link.tell('vacate', [callId]);
  }

  balance(...args: Parameters<Counters['balance']>): ReturnType<Counters['balance']> {
    return this.#parts.link.ask('balance', args);
  }

  healthy(): boolean {
    return this.#parts.state().countersUp;
  }

  /** The parent's go on. */
  async close(): Promise<void> {}
}
