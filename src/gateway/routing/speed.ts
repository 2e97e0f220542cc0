/**
 * How soon targets begin to answer: a mean of the times to the first event that were seen lately.
 * Streams and documents are kept apart, since a document's first event is its last.
 */

/** After so long the mean is nearly all of what was seen since. */
const memoryMs = 30_000;
/** One sample counts for so much at least. */
const leastShare = 0.2;
/** So much of the way back to "nobody knows" in that time, where nothing is seen. */
const forgottenMs = 300_000;
const maxTargets = 1000;
const neverAnswered = Number.POSITIVE_INFINITY;

interface Mean {
  ms: number;
  /** Monotonic ms. */
  at: number;
}

export class Speed {
  readonly #means = new Map<string, Mean>();
  #asked = false;

  /** Ms until an answer begins there, by what is known; undefined = nobody has tried lately. */
  of(target: string, { streamed, now }: { readonly streamed: boolean; readonly now: number }) {
    this.#asked = true;
    const mean = this.#means.get(nameOf(target, streamed));
    return mean === undefined || now - mean.at > forgottenMs ? undefined : mean.ms;
  }

  /** An answer began after so long, or was given up. Nothing is kept before somebody asks. */
  saw(target: string, sample: { streamed: boolean; now: number; ms: number }): void {
    if (!this.#asked) return;
    const { streamed, now, ms } = sample;
    const name = nameOf(target, streamed);
    const mean = this.#means.get(name);
    if (mean === undefined || mean.ms === neverAnswered) {
      this.#keep(name, { ms, at: now });
      return;
    }
    const share = Math.max(leastShare, 1 - Math.exp((mean.at - now) / memoryMs));
    mean.ms += (ms - mean.ms) * share;
    mean.at = now;
  }

  /** It failed without an answer: one that never answered is not first because nobody knows it. */
  failed(target: string, { streamed, now }: { readonly streamed: boolean; readonly now: number }) {
    const name = nameOf(target, streamed);
    const mean = this.#means.get(name);
    const known = mean !== undefined && now - mean.at <= forgottenMs && mean.ms !== neverAnswered;
    if (this.#asked && !known) this.#keep(name, { ms: neverAnswered, at: now });
  }

  #keep(name: string, mean: Mean): void {
    this.#means.delete(name);
    const [oldest] = this.#means.keys();
    if (this.#means.size >= maxTargets && oldest !== undefined) this.#means.delete(oldest);
    this.#means.set(name, mean);
  }
}

function nameOf(target: string, streamed: boolean): string {
  return streamed ? target : `${target} document`;
}
