/**
 * Bodies that do not come (G10). After five seconds a body must have come at `limits.body_rate` on
 * average, and none may live on its first pieces for longer than that: else it is answered with 408.
 */
import type { Clock } from '../../core/runtime.ts';

export interface SlowBodiesParts {
  readonly clock: Pick<Clock, 'now'>;
  /** Bytes a second. */
  readonly rate: () => number;
}

/** A body that is being read. */
export interface ComingBody {
  /** Bytes that came so far. */
  received: number;
  /** Called at most once. */
  tooSlow(): void;
}

/** How long a body may owe what its rate asks. */
const bodyGraceMs = 5000;
const checkEveryMs = 1000;

interface Entry {
  readonly body: ComingBody;
  /** Where it stands in the list; -1 when it does not. */
  place: number;
  /** Bytes that it may lag behind before it is too slow. */
  credit: number;
  seen: number;
  checkedAt: number;
}

export class SlowBodies {
  readonly #parts: SlowBodiesParts;
  readonly #entries: Entry[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: SlowBodiesParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Watches a body; the result ends it. */
  watch(body: ComingBody): () => void {
    const credit = (this.#parts.rate() * bodyGraceMs) / 1000;
    const checkedAt = this.#parts.clock.now();
    const entry: Entry = { body, place: this.#entries.length, credit, seen: 0, checkedAt };
    this.#entries.push(entry);
    // Not one for each body: it stays until it finds nothing to look at.
    this.#timer ??= setInterval(() => this.check(), checkEveryMs).unref();
    return () => this.#forget(entry);
  }

  /** Compares what came with what was due since the last time. */
  check(): void {
    const now = this.#parts.clock.now();
    const perMs = this.#parts.rate() / 1000;
    const most = perMs * bodyGraceMs;
    for (let i = this.#entries.length - 1; i >= 0; i--) {
      const entry = this.#entries[i];
      if (entry === undefined) continue;
      const came = entry.body.received - entry.seen;
      // A check that comes later is one of a process that could not read either.
      const due = perMs * Math.min(now - entry.checkedAt, 2 * checkEveryMs);
      entry.seen = entry.body.received;
      entry.checkedAt = now;
      entry.credit = Math.min(most, entry.credit + came - due);
      if (entry.credit >= 0) continue;
      this.#forget(entry);
      entry.body.tooSlow();
    }
    if (this.#entries.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** The last one moves to its place. */
  #forget(entry: Entry): void {
    const { place } = entry;
    if (place === -1) return;
    entry.place = -1;
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) {
      this.#entries[place] = last;
      last.place = place;
    }
  }
}
