/** Measurements of targets that routing orders by. Nothing is measured before the first question. */
import { CounterMap } from '../../core/counter-map.ts';

/** Running calls of each target, of this process. */
export class Load {
  readonly #running = new CounterMap();
  #asked = false;

  /** Running calls; calls that began before the first question are not counted. */
  of(target: string): number {
    this.#asked = true;
    return this.#running.of(target);
  }

  /** A call begins. @returns whether `end` must be called. */
  begin(target: string): boolean {
    if (!this.#asked) return false;
    this.#running.add(target, 1);
    return true;
  }

  end(target: string): void {
    this.#running.add(target, -1);
  }
}

/** Time constant of the mean. */
const memoryMs = 30_000;
/** Lowest weight of a sample. */
const leastShare = 0.2;
/** A mean without a sample for this long is unknown. */
const forgottenMs = 300_000;
const maxTargets = 1000;
const neverAnswered = Number.POSITIVE_INFINITY;

interface Mean {
  ms: number;
  /** Monotonic ms. */
  at: number;
}

/**
 * Time to the first event of each target: an exponentially weighted mean. Streams and documents have means
 * of their own, since a document's first event is its last.
 */
export class Speed {
  readonly #means = new Map<string, Mean>();
  #asked = false;

  /** The mean, ms; undefined = no recent sample; Infinity = it failed without any answer. */
  of(target: string, { streamed, now }: { readonly streamed: boolean; readonly now: number }) {
    this.#asked = true;
    const mean = this.#means.get(nameOf(target, streamed));
    return mean === undefined || now - mean.at > forgottenMs ? undefined : mean.ms;
  }

  /** A sample: an answer began after `ms`, or was given up then. */
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

  /** It failed without an answer: an unknown target must not rank first because it is unknown. */
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
