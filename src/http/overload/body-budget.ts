/**
 * How much memory request bodies may take (G5). A body costs four times its length while it is read and parsed
 * (its pieces, the whole, its text and its values), and twice its length plus its values while its call runs.
 * Bodies that do not fit are refused before a byte is read; they never wait.
 */
import { CounterMap } from '../../core/counter-map.ts';
import type { Clock } from '../../core/runtime.ts';

interface BodyBudgetDeps {
  /** Memory for all bodies together. */
  readonly bytes: () => number;
  /** Share of it, 0 to 1, that the bodies of this key may take now. */
  readonly shareOf: (key: string) => number;
  /** Whether the process has room for a body that is not small. */
  readonly hasLeft: (asked: RoomRequest) => boolean;
}

/** The requested memory. */
export interface RoomRequest {
  readonly cost: number;
  /** Bytes taken since the last sample of the process, which are partly missing in it. */
  readonly added: number;
  readonly size: 'large' | 'medium';
}

const whileRead = 4;
const whileServed = 2;
/** A value of a few bytes of text costs many times as much: bytes for each bracket, comma and colon. */
const perToken = 64;
/** Bodies from this cost on need free memory of the process; large ones leave some for others. */
const large = whileRead * 1024 * 1024;
/** Smaller bodies are not checked against free memory: their garbage is collected as they go. */
const medium = whileRead * 128 * 1024;
/** Extra memory for keys whose bodies hold less than this share: they did not fill it (G8). */
const reserve = 0.1;
/** Initial reservation for a body without a length; doubled each time. */
const firstGuess = 64 * 1024;

/** The reservation of one body. */
export interface BodyShare {
  /** Reserves the memory for a body of this length; false when there is not enough. */
  grow(length: number): boolean;
  /** The body is parsed: it needs less, or more for many small values; false when that is not available. */
  parsed(length: number, tokens: number): boolean;
  /** Releases everything. A second call does nothing. */
  release(): void;
}

export class BodyBudget {
  readonly #deps: BodyBudgetDeps;
  readonly #held = new CounterMap();
  #taken = 0;
  /**
   * Bytes reserved since the last sample of the process. Releases since then do not reduce it: they are garbage
   * that is not collected yet.
   */
  #added = 0;

  constructor(deps: BodyBudgetDeps) {
    this.#deps = deps;
  }

  /** Current cost of all bodies. */
  get taken(): number {
    return this.#taken;
  }

  /** The process was sampled just now: the sample includes the cost of bodies. */
  looked(): void {
    this.#added = 0;
  }

  /** A longer body never fits. */
  get longest(): number {
    return Math.floor(this.#deps.bytes() / whileRead);
  }

  /**
   * Reserves memory for a body that is about to be read; undefined when there is none now.
   * @param key owner of the body: a key that announces many bodies must leave room for others, since announcing
   * costs nothing.
   * @param length the announced length; undefined = unknown (chunked): the reservation grows then.
   */
  take(key: string, length: number | undefined): BodyShare | undefined {
    const share = new Share(this.#addTo, key);
    return share.grow(length ?? Math.min(firstGuess, this.longest)) ? share : undefined;
  }

  /** One for all shares. @param whole total cost of the body including this part. */
  readonly #addTo: AddCost = (key, cost, whole) => {
    if (cost > 0) {
      if (!this.#hasRoom(key, this.#held.of(key) + cost, cost)) return false;
      if (!this.#isLeft(cost, whole)) return false;
      this.#added += cost;
    }
    this.#taken += cost;
    this.#held.add(key, cost);
    return true;
  };

  /** Garbage of earlier bodies may not be collected yet. */
  #isLeft(cost: number, whole: number): boolean {
    if (whole <= medium) return true;
    const size = whole > large ? 'large' : 'medium';
    return this.#deps.hasLeft({ cost, added: this.#added, size });
  }

  /** @param held what the key would hold in total. */
  #hasRoom(key: string, held: number, cost: number): boolean {
    const { bytes, shareOf } = this.#deps;
    const all = bytes();
    const spare = reserve * all;
    if (this.#taken + cost > (held <= spare ? all + spare : all)) return false;
    // A single body of any size always fits, or it never could.
    return held <= cost || held <= shareOf(key) * all;
  }
}

type AddCost = (key: string, cost: number, whole: number) => boolean;

class Share implements BodyShare {
  readonly #add: AddCost;
  readonly #key: string;
  #held = 0;

  constructor(add: AddCost, key: string) {
    this.#add = add;
    this.#key = key;
  }

  grow(length: number): boolean {
    const needed = whileRead * length;
    if (needed <= this.#held) return true;
    // Doubled, so that not every piece reserves; just enough if that is not available.
    return this.#hold(Math.max(needed, 2 * this.#held)) || this.#hold(needed);
  }

  parsed(length: number, tokens: number): boolean {
    return this.#hold(whileServed * length + perToken * tokens);
  }

  release(): void {
    this.#hold(0);
  }

  #hold(cost: number): boolean {
    if (!this.#add(this.#key, cost - this.#held, cost)) return false;
    this.#held = cost;
    return true;
  }
}

// Slow bodies (G10). After five seconds, a body must have arrived at `limits.body_rate` on average, and no body
// may be silent for longer than that: otherwise the answer is 408.

interface SlowBodiesDeps {
  readonly clock: Pick<Clock, 'now'>;
  /** Bytes per second. */
  readonly rate: () => number;
}

/** A body that is being read. */
export interface ComingBody {
  /** Bytes received so far. */
  received: number;
  /** Called at most once. */
  tooSlow(): void;
}

/** How long a body may be behind its rate. */
const bodyGraceMs = 5000;
const checkEveryMs = 1000;

interface Entry {
  readonly body: ComingBody;
  /** Index in the list; -1 if absent. */
  index: number;
  /** Bytes that it may be behind before it is too slow. */
  credit: number;
  seen: number;
  checkedAt: number;
}

export class SlowBodies {
  readonly #deps: SlowBodiesDeps;
  readonly #entries: Entry[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: SlowBodiesDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Watches a body; the returned function ends it. */
  watch(body: ComingBody): () => void {
    const credit = (this.#deps.rate() * bodyGraceMs) / 1000;
    const checkedAt = this.#deps.clock.now();
    const entry: Entry = { body, index: this.#entries.length, credit, seen: 0, checkedAt };
    this.#entries.push(entry);
    // One timer for all bodies; it stops when it finds none.
    this.#timer ??= setInterval(() => this.check(), checkEveryMs).unref();
    return () => this.#forget(entry);
  }

  /** Compares received bytes with bytes due since the last check. */
  check(): void {
    const now = this.#deps.clock.now();
    const perMs = this.#deps.rate() / 1000;
    const most = perMs * bodyGraceMs;
    for (let i = this.#entries.length - 1; i >= 0; i--) {
      const entry = this.#entries[i];
      if (entry === undefined) continue;
      const came = entry.body.received - entry.seen;
      // A late check means that the process could not read either.
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

  /** Swap-removes the entry. */
  #forget(entry: Entry): void {
    const { index } = entry;
    if (index === -1) return;
    entry.index = -1;
    const last = this.#entries.pop();
    if (last !== undefined && last !== entry) {
      this.#entries[index] = last;
      last.index = index;
    }
  }
}
