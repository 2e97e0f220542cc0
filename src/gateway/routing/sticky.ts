/**
 * Where conversations went last, for orders that choose by what changes from call to call. Bounded: the
 * one that was silent for longest is forgotten first, and everyone after an hour, when no provider's
 * cache is warm any more.
 */

const maxConversations = 20_000;
const warmMs = 3_600_000;

interface Place {
  readonly target: string;
  /** Monotonic ms. */
  readonly at: number;
}

export class Sticky {
  readonly #places = new Map<string, Place>();

  find(conversation: string, now: number): string | undefined {
    const place = this.#places.get(conversation);
    return place === undefined || now - place.at > warmMs ? undefined : place.target;
  }

  /** The conversation was answered there. */
  keep(conversation: string, place: Place): void {
    this.#places.delete(conversation);
    this.#places.set(conversation, place);
    if (this.#places.size <= maxConversations) return;
    const [oldest] = this.#places.keys();
    if (oldest !== undefined) this.#places.delete(oldest);
  }

  get size(): number {
    return this.#places.size;
  }
}
