/** How calls ended, one number for each combination that occurred. */
import { labelText, type Family } from '../../observe/metrics/family.ts';
import type { CallRow } from '../../store/calls.ts';

interface Series {
  readonly labels: string;
  value: number;
}

/** Names that come from the gateway's own code are few; what would be one more is `_OTHER`. */
const mostNames = 60;
const otherName = '_OTHER';

/** A small number for each name. */
class Names {
  readonly #places = new Map<string, number>([['', 0]]);

  /** Below 64. */
  placeOf(name: string): number {
    const known = this.#places.get(name);
    if (known !== undefined) return known;
    if (this.#places.size >= mostNames) return mostNames;
    this.#places.set(name, this.#places.size);
    return this.#places.size - 1;
  }
}

export class CallTable {
  readonly #endpoints = new Names();
  readonly #errors = new Names();
  /** By one number made of all that tells series apart. */
  readonly #series = new Map<number, Series>();

  called(row: CallRow): void {
    const { endpoint, error = '', outcome, status = 0, mode, stream } = row;
    const error_ = this.#errors.placeOf(error);
    let place = this.#endpoints.placeOf(endpoint) * 64 + error_;
    place = place * 1024 + status;
    place = place * 3 + (outcome === 'ok' ? 0 : outcome === 'failed' ? 1 : 2);
    place = place * 3 + (mode === undefined ? 0 : mode === 'relay' ? 1 : 2);
    place = place * 2 + (stream ? 1 : 0);
    const series = this.#series.get(place);
    if (series !== undefined) series.value += 1;
    else this.#begin(place, row, error_ === mostNames ? otherName : error);
  }

  #begin(place: number, row: CallRow, error: string): void {
    const { endpoint, outcome, status, mode = '', stream } = row;
    const labels = labelText({
      endpoint,
      outcome,
      status: status === undefined ? '' : String(status),
      error_type: error,
      mode,
      stream: String(stream),
    });
    this.#series.set(place, { labels, value: 1 });
  }

  families(): readonly Family[] {
    return [
      {
        name: 'model_gateway_calls',
        type: 'counter',
        help: 'Calls that were authenticated and have a ledger row, by how they ended.',
        samples: [...this.#series.values()],
      },
    ];
  }
}
