/** How many calls run at each target, from here. Nobody counts before somebody asks. */

export class Load {
  readonly #running = new Map<string, number>();
  #asked = false;

  /** Calls that run there; of what ran before the first question nothing is known. */
  of(target: string): number {
    this.#asked = true;
    return this.#running.get(target) ?? 0;
  }

  /** A call begins. @returns whether its end is to be told. */
  begin(target: string): boolean {
    if (!this.#asked) return false;
    this.#running.set(target, (this.#running.get(target) ?? 0) + 1);
    return true;
  }

  end(target: string): void {
    const left = (this.#running.get(target) ?? 0) - 1;
    if (left > 0) this.#running.set(target, left);
    else this.#running.delete(target);
  }
}
