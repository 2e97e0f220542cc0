/** How many calls run at each target, from here. Nobody counts before somebody asks. */
import { Tally } from '../../core/tally.ts';

export class Load {
  readonly #running = new Tally();
  #asked = false;

  /** Calls that run there; of what ran before the first question nothing is known. */
  of(target: string): number {
    this.#asked = true;
    return this.#running.of(target);
  }

  /** A call begins. @returns whether its end is to be told. */
  begin(target: string): boolean {
    if (!this.#asked) return false;
    this.#running.add(target, 1);
    return true;
  }

  end(target: string): void {
    this.#running.add(target, -1);
  }
}
