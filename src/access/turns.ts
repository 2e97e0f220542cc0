/** Changes of one thing, one after the other: two at the same time would each start from the old state. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` when all that was asked for under this name before is over, whatever came of it. */
  take<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name);
    const turn = before === undefined ? work() : before.then(work, work);
    this.#last.set(name, turn);
    const over = (): void => {
      if (this.#last.get(name) === turn) this.#last.delete(name);
    };
    turn.then(over, over);
    return turn;
  }
}
