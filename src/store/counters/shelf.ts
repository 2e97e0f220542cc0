/** A map that forgets what is idle, a little with each new entry: no timer, no pause, bounded. */
export class Shelf<T> {
  readonly #entries = new Map<string, T>();
  readonly #isIdle: (entry: T) => boolean;
  #cursor: Iterator<[string, T]>;

  constructor(isIdle: (entry: T) => boolean) {
    this.#isIdle = isIdle;
    this.#cursor = this.#entries.entries();
  }

  get size(): number {
    return this.#entries.size;
  }

  get(name: string): T | undefined {
    return this.#entries.get(name);
  }

  /** Two old entries are looked at for each new one, so that idle ones never pile up. */
  add(name: string, entry: T): void {
    this.#look();
    this.#look();
    // Not looked at itself: it is idle until its owner has put something into it.
    this.#entries.set(name, entry);
  }

  delete(name: string): void {
    this.#entries.delete(name);
  }

  #look(): void {
    const next = this.#cursor.next();
    if (next.done === true) {
      this.#cursor = this.#entries.entries();
      return;
    }
    const [name, entry] = next.value;
    if (this.#isIdle(entry)) this.#entries.delete(name);
  }
}
