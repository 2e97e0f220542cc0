/**
 * How hard the process is pressed, in steps (G7): from the second on memory alone decides, since loop
 * delay is what `call-slots.ts` answers. A step is left a little below where it was entered, so that
 * it does not flap.
 */
import type { LoadSample } from './load.ts';

/** 0 = nothing; 1 = no keep-alive, no large bodies; 2 = no new calls; 3 = slow readers are cut. */
export type Step = 0 | 1 | 2 | 3;

export interface Situation extends LoadSample {
  /** What the process may use. */
  readonly memoryBytes: number;
  /** Whether no call runs: then there is nothing that refusing calls could free. */
  readonly idle: boolean;
  /** Monotonic ms. */
  readonly now: number;
}

/** Shares of the memory from which on each step holds. */
const shares = [0.85, 0.92, 0.97] as const;
/** How far below its share a step is left. */
const slack = 0.03;
/** The usual turn of the loop takes longer than this… */
const lateMs = 200;
/** …for so long: the first step. */
const lateForMs = 1000;

export class Ladder {
  #step: Step = 0;
  #share = 0;
  #lateSince: number | undefined;

  get step(): Step {
    return this.#step;
  }

  /** Used part of the memory, by the worse of resident memory and heap. */
  get share(): number {
    return this.#share;
  }

  /** Looks at a sample; true when the step is another one now. */
  update(situation: Situation): boolean {
    const { rssBytes, heapShare, memoryBytes, idle } = situation;
    this.#share = Math.max(rssBytes / memoryBytes, heapShare);
    const wanted = Math.max(this.#stepOfMemory(), this.#isLate(situation) ? 1 : 0);
    // Resident memory may never come down by itself: who serves nobody always takes a call.
    const step = asStep(idle ? Math.min(wanted, 1) : wanted);
    const changed = step !== this.#step;
    this.#step = step;
    return changed;
  }

  #stepOfMemory(): number {
    return shares.filter((share, i) => this.#share >= share - (this.#step > i ? slack : 0)).length;
  }

  #isLate({ delayMs, now }: Situation): boolean {
    if (delayMs <= lateMs) this.#lateSince = undefined;
    else this.#lateSince ??= now;
    return this.#lateSince !== undefined && now - this.#lateSince >= lateForMs;
  }
}

function asStep(value: number): Step {
  return value === 1 || value === 2 || value === 3 ? value : 0;
}
