/**
 * How much of the memory request bodies may take (G5). A body costs four times its length while it is
 * read and parsed: its pieces, the whole, its text and its values; twice and its values as long as its call
 * runs. What has no room is refused before a byte of it is read, and never waits.
 */
import { CounterMap } from '../../core/counter-map.ts';
import type { Clock } from '../../core/runtime.ts';

interface BodyBudgetParts {
  /** What all bodies may cost together. */
  readonly bytes: () => number;
  /** Part of it, 0 to 1, that the bodies of this key may take now. */
  readonly shareOf: (key: string) => number;
  /** Whether the process has room for what a body asks for that is not small. */
  readonly hasLeft: (asked: AskedRoom) => boolean;
}

/** Bytes that are asked for. */
export interface AskedRoom {
  readonly cost: number;
  /** What was taken since the last look at the process: some of it is not to be seen in it yet. */
  readonly added: number;
  readonly size: 'large' | 'medium';
}

const whileRead = 4;
const whileServed = 2;
/** A value of a few bytes of text costs many times as much: bytes for each bracket, comma and colon. */
const perToken = 64;
/** What one costs from where on it needs what the process really has left; large ones leave some to others. */
const large = whileRead * 1024 * 1024;
/** Smaller ones are not worth a look at what is left: what they leave behind is collected on the way. */
const medium = whileRead * 128 * 1024;
/** Beyond the bytes, for keys whose bodies hold less than this part of them: they did not fill it (G8). */
const reserve = 0.1;
/** What a body without a length is taken for at first; then twice as much each time. */
const firstGuess = 64 * 1024;

/** What one body holds of the budget. */
export interface BodyShare {
  /** Takes what a body of so many bytes needs; false when that is not there. */
  grow(length: number): boolean;
  /** It is read and parsed: less is needed, or more for many small values; false when that is not there. */
  parsed(length: number, tokens: number): boolean;
  /** Gives everything back. A second call does nothing. */
  release(): void;
}

export class BodyBudget {
  readonly #parts: BodyBudgetParts;
  readonly #held = new CounterMap();
  #taken = 0;
  /**
   * Since the last look at the process. What was given back since then counts as well: it is garbage by
   * now, and no memory yet.
   */
  #added = 0;

  constructor(parts: BodyBudgetParts) {
    this.#parts = parts;
  }

  /** What bodies cost now. */
  get taken(): number {
    return this.#taken;
  }

  /** The process was looked at just now: what bodies cost by then is in what it uses. */
  looked(): void {
    this.#added = 0;
  }

  /** A longer one never has room. */
  get longest(): number {
    return Math.floor(this.#parts.bytes() / whileRead);
  }

  /**
   * The share of a body that is about to be read; undefined when there is no room for it now.
   * @param key whose body it is: bodies that never come are announced for nothing, so a key that announces
   * much must leave room for the others.
   * @param length as the client tells it; undefined = it does not (chunked): the share grows then.
   */
  take(key: string, length: number | undefined): BodyShare | undefined {
    const share = new Share((cost, whole) => this.#add(key, cost, whole));
    return share.grow(length ?? Math.min(firstGuess, this.longest)) ? share : undefined;
  }

  /** @param whole what the body costs with it. */
  #add(key: string, cost: number, whole: number): boolean {
    if (cost > 0) {
      if (!this.#hasRoom(key, this.#held.of(key) + cost, cost)) return false;
      if (!this.#isLeft(cost, whole)) return false;
      this.#added += cost;
    }
    this.#taken += cost;
    this.#held.add(key, cost);
    return true;
  }

  /** What the bodies before it left behind may not be collected yet. */
  #isLeft(cost: number, whole: number): boolean {
    if (whole <= medium) return true;
    const size = whole > large ? 'large' : 'medium';
    return this.#parts.hasLeft({ cost, added: this.#added, size });
  }

  /** @param held what the key would hold with it. */
  #hasRoom(key: string, held: number, cost: number): boolean {
    const { bytes, shareOf } = this.#parts;
    const all = bytes();
    const spare = reserve * all;
    if (this.#taken + cost > (held <= spare ? all + spare : all)) return false;
    // One body of any size has room, or it would never have any.
    return held <= cost || held <= shareOf(key) * all;
  }
}

class Share implements BodyShare {
  readonly #add: (cost: number, whole: number) => boolean;
  #held = 0;

  constructor(add: (cost: number, whole: number) => boolean) {
    this.#add = add;
  }

  grow(length: number): boolean {
    const needed = whileRead * length;
    if (needed <= this.#held) return true;
    // Twice as much at once, so that not each piece asks; just enough where that is not there.
    return this.#hold(Math.max(needed, 2 * this.#held)) || this.#hold(needed);
  }

  parsed(length: number, tokens: number): boolean {
    return this.#hold(servedCost(length, tokens));
  }

  release(): void {
    this.#hold(0);
  }

  #hold(cost: number): boolean {
    if (!this.#add(cost - this.#held, cost)) return false;
    this.#held = cost;
    return true;
  }
}

function servedCost(length: number, tokens: number): number {
  return whileServed * length + perToken * tokens;
}

// Bodies that do not come (G10). After five seconds a body must have come at `limits.body_rate` on
// average, and none may live on its first pieces for longer than that: else it is answered with 408.

interface SlowBodiesParts {
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
