/** Runs the changes of one thing one after the other: two at the same time would each start from the old state. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` once all work that was given under this name before has settled. */
  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const current = before === undefined ? work() : before.then(work, work);
    this.#last.set(name, current);
    const over = (): void => {
      if (this.#last.get(name) === current) this.#last.delete(name);
    };
    current.then(over, over);
    return current;
  }
}
