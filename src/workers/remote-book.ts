/** The store and the counters of the parent, as a worker uses them. */
import type { Clock } from '../core/runtime.ts';
import type { Counters, Draw, DrawResult } from '../store/counters.ts';
import type { Store } from '../store/store.ts';
import type { Link } from './link.ts';
import type { BookOperations } from './protocol.ts';
import { answersOf, storeOf } from './store-calls.ts';

export type BookLink = Pick<Link<BookOperations>, 'ask' | 'tell'>;

/** Whoever closes it closes nothing of the parent's. */
export function remoteStore(link: BookLink): Store {
  const answers = answersOf(
    (op) =>
      (...args) =>
        link.ask(op, args),
  );
  const contents: Store['contents'] = {
    keep: (...args) => link.ask('keepContents', args),
    find: (...args) => link.ask('findContent', args),
    bytes: () => link.ask('contentBytes', []),
    remove: (...args) => link.ask('removeContents', args),
    forget: (...args) => link.ask('forgetContents', args),
  };
  const rest = { answers, contents, close: async () => {} };
  return storeOf(
    (op) =>
      (...args) =>
        link.ask(op, args),
    rest,
  );
}

export interface RemoteCountersParts {
  readonly link: BookLink;
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

  settledIn(...args: Parameters<Counters['settledIn']>): ReturnType<Counters['settledIn']> {
    return this.#parts.link.ask('settledIn', args);
  }

  repair(...args: Parameters<Counters['repair']>): ReturnType<Counters['repair']> {
    return this.#parts.link.ask('repair', args);
  }

  healthy(): boolean {
    return this.#parts.state().countersUp;
  }

  /** The parent's go on. */
  async close(): Promise<void> {}
}
