/**
 * How much of a turn of the event loop goes to what upstreams send (G6). A loop that has more to do than it can would
 * otherwise do all of it before it looks at who comes: refusing him took as long as the work for those who are in. What
 * is put off is done in its order, a part of it in each turn; how long it waits is how late the gateway is.
 */

/** What is put off. */
export interface PutOff {
  goOn(): void;
}

export interface TurnShareParts {
  /** Monotonic ms. */
  readonly now?: () => number;
  /** Calls back behind this turn's look at the sockets. */
  readonly behind?: (callback: () => void) => void;
}

/** Of one turn: a refusal takes a turn or two, and has 50 ms. */
const budgetMs = 4;
/** Each of them takes some 50 µs: the time is asked for now and then. */
const perLook = 8;
/** Places of those who are through are given up together. */
const mostThrough = 1024;

/** What those need who have work that may wait. */
export type PutsOff = Pick<TurnShare, 'spent' | 'putOff'>;

interface Waiting {
  readonly work: PutOff;
  readonly since: number;
}

export class TurnShare {
  readonly #now: () => number;
  readonly #behind: (callback: () => void) => void;
  #waiting: Waiting[] = [];
  /** Of them, those that are through. */
  #through = 0;
  /** Pieces of work since the time was asked for. */
  #pieces = 0;
  /** When this turn's work was first looked at; undefined where it was not yet. */
  #begun: number | undefined;
  #spent = false;
  /** Whether a turn is awaited in which the waiting go on. */
  #going = false;

  constructor({ now = () => performance.now(), behind = setImmediate }: TurnShareParts = {}) {
    this.#now = now;
    this.#behind = behind;
  }

  /** To be asked before a piece of work: whether it is to be put off. */
  get spent(): boolean {
    if (this.#spent || this.#waiting.length > 0) return true;
    this.#pieces += 1;
    if (this.#pieces < perLook) return false;
    this.#pieces = 0;
    const now = this.#now();
    if (this.#begun === undefined) {
      this.#begun = now;
      this.#behind(() => this.#turnIsOver());
    }
    this.#spent = now - this.#begun >= budgetMs;
    return this.#spent;
  }

  /** Has it done in one of the next turns, behind those that were put off before. */
  putOff(work: PutOff): void {
    this.#waiting.push({ work, since: this.#now() });
    this.#goOnLater();
  }

  /** For how many ms the next one of those who were put off has waited by now; 0 where there is none. */
  get waitedMs(): number {
    const next = this.#waiting[this.#through];
    return next === undefined ? 0 : this.#now() - next.since;
  }

  #turnIsOver(): void {
    this.#begun = undefined;
    this.#spent = false;
  }

  #goOnLater(): void {
    if (this.#going) return;
    this.#going = true;
    this.#behind(() => this.#goOn());
  }

  /** Also where a piece throws: the others are not its (F94). */
  #goOn(): void {
    this.#going = false;
    try {
      this.#work();
    } finally {
      this.#letGo();
      if (this.#waiting.length > 0) this.#goOnLater();
    }
  }

  #work(): void {
    const until = this.#now() + budgetMs;
    do {
      const next = this.#waiting[this.#through];
      if (next === undefined) return;
      this.#through += 1;
      next.work.goOn();
    } while (this.#now() < until);
  }

  /** Of those who are through. */
  #letGo(): void {
    if (this.#through < Math.min(this.#waiting.length, mostThrough)) return;
    this.#waiting.splice(0, this.#through);
    this.#through = 0;
  }
}
