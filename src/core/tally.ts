/**
 * Sums by name that go up and down with every call. An entry of nothing stays for a while: a `Map` that is
 * added to and deleted from for every call leaves dead tables behind (core/id-table.ts).
 */

interface Sum {
  value: number;
}

/** From so many names on, those of nothing are removed when a new one comes. */
const fewNames = 1024;

export class Tally {
  readonly #sums = new Map<string, Sum>();
  #removeAt = fewNames;

  of(name: string): number {
    return this.#sums.get(name)?.value ?? 0;
  }

  add(name: string, difference: number): void {
    const sum = this.#sums.get(name);
    if (sum !== undefined) sum.value += difference;
    else if (difference !== 0) this.#begin(name, difference);
  }

  #begin(name: string, value: number): void {
    if (this.#sums.size >= this.#removeAt) {
      for (const [each, sum] of this.#sums) if (sum.value === 0) this.#sums.delete(each);
      this.#removeAt = Math.max(fewNames, 2 * this.#sums.size);
    }
    this.#sums.set(name, { value });
  }
}
