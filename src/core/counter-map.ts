/** Sums by name. A name whose sum is 0 takes no room. */
export class CounterMap {
  readonly #sums = new Map<string, number>();

  /** The sum of a name; 0 where nothing was added. */
  of(name: string): number {
    return this.#sums.get(name) ?? 0;
  }

  add(name: string, difference: number): void {
    const sum = this.of(name) + difference;
    if (sum === 0) this.#sums.delete(name);
    else this.#sums.set(name, sum);
  }
}
