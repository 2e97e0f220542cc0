/** A counter with labels, for what happens seldom. */
import { Capped } from './capped.ts';
import { labelText, type NumberFamily } from './family.ts';

export interface CounterOptions {
  /** Without `_total`. */
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** Names of the labels, in the order of the values. */
  readonly labels: readonly string[];
  /** Values of series that are there with 0 from the start. */
  readonly known?: readonly (readonly string[])[];
}

/** Series that one counter may have. */
const mostSeries = 200;
/** No label value of the gateway's own code has one. */
const between = '|';

export class LabelledCounter {
  readonly #options: CounterOptions;
  readonly #series: Capped<{ readonly labels: string; value: number }>;

  constructor(options: CounterOptions) {
    this.#options = options;
    const { labels } = options;
    this.#series = new Capped({ left: mostSeries }, (joined) => {
      const values = joined.split(between);
      const named = labels.map((label, i) => [label, values[i] ?? joined]);
      return { labels: labelText(Object.fromEntries(named)), value: 0 };
    });
    for (const values of options.known ?? []) this.#series.of(values.join(between));
  }

  add(values: readonly string[]): void {
    this.#series.of(values.join(between)).value += 1;
  }

  family(): NumberFamily {
    const { name, help } = this.#options;
    return { name, type: 'counter', help, samples: [...this.#series.values()] };
  }
}
