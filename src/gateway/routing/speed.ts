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
    if (mean === undefined) {
      const [oldest] = this.#means.keys();
      if (this.#means.size >= maxTargets && oldest !== undefined) this.#means.delete(oldest);
      this.#means.set(name, { ms, at: now });
      return;
    }
    const share = Math.max(leastShare, 1 - Math.exp((mean.at - now) / memoryMs));
    mean.ms += (ms - mean.ms) * share;
    mean.at = now;
  }
}

function nameOf(target: string, streamed: boolean): string {
  return streamed ? target : `${target} document`;
}
