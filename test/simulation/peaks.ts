/** What a figure was at most lately: an instance remembers for a moment that the others have no money (refusals). */

/** As long as a refusal is remembered, and a reservation that was on its way then. */
const rememberedMs = 150;

interface Sample {
  readonly at: number;
  readonly value: number;
}

export class Peaks {
  readonly #samples = new Map<string, Sample[]>();

  note(name: string, at: number, value: number): void {
    const samples = this.#samples.get(name) ?? [];
    this.#samples.set(name, samples);
    if (samples.at(-1)?.value === value) return;
    samples.push({ at, value });
    // The first one that is kept held until the second one came.
    while ((samples[1]?.at ?? at) < at - rememberedMs) samples.shift();
  }

  lately(name: string, now: number): number {
    const samples = this.#samples.get(name) ?? [];
    const from = samples.findLastIndex(({ at }) => at <= now - rememberedMs);
    return Math.max(0, ...samples.slice(Math.max(0, from)).map(({ value }) => value));
  }
}
