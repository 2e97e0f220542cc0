/** What keys and teams use. */
import { Capped, type Room } from '../../observe/metrics/capped.ts';
import { labelText, type Family, type NumberSample } from '../../observe/metrics/family.ts';
import type { CallOutcome, CallRow } from '../../store/calls.ts';

const outcomes = ['ok', 'failed', 'canceled'] as const satisfies readonly CallOutcome[];

class KeySeries {
  readonly #labels: string;
  readonly #calls = new Float64Array(outcomes.length);
  #input = 0;
  #output = 0;
  #nanodollars = 0;

  constructor(key: string, team: string) {
    this.#labels = labelText({ key, team });
  }

  called({ outcome, charged, cost }: CallRow): void {
    const place = outcome === 'ok' ? 0 : outcome === 'failed' ? 1 : 2;
    this.#calls[place] = (this.#calls[place] ?? 0) + 1;
    const { freshInputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = charged;
    this.#input += (freshInputTokens ?? 0) + (cacheReadTokens ?? 0) + (cacheWriteTokens ?? 0);
    this.#output += outputTokens ?? 0;
    this.#nanodollars += cost?.total ?? 0;
  }

  calls(): readonly NumberSample[] {
    return outcomes.map((outcome, i) => ({
      labels: `${this.#labels},outcome="${outcome}"`,
      value: this.#calls[i] ?? 0,
    }));
  }

  tokens(): readonly NumberSample[] {
    return [
      { labels: `${this.#labels},type="input"`, value: this.#input },
      { labels: `${this.#labels},type="output"`, value: this.#output },
    ];
  }

  cost(): NumberSample {
    return { labels: this.#labels, value: this.#nanodollars / 1e9 };
  }
}

/** Keys with series of their own; all others of a team share one. */
const mostKeys = 200;
const mostTeams = 100;

export class KeyTable {
  readonly #keys: Room = { left: mostKeys };
  readonly #teams: Capped<Capped<KeySeries>>;

  constructor() {
    this.#teams = new Capped<Capped<KeySeries>>(
      { left: mostTeams },
      (team) => new Capped<KeySeries>(this.#keys, (key) => new KeySeries(key, team)),
    );
  }

  called(row: CallRow): void {
    this.#teams
      .of(row.team ?? '')
      .of(row.keyId)
      .called(row);
  }

  families(): readonly Family[] {
    const all = [...this.#teams.values()].flatMap((team) => [...team.values()]);
    return [
      {
        name: 'model_gateway_key_calls',
        type: 'counter',
        help: 'Calls by key and team; beyond so many keys or teams under the name other.',
        samples: all.flatMap((series) => series.calls()),
      },
      {
        name: 'model_gateway_key_tokens',
        type: 'counter',
        help: 'Tokens charged by key and team: all input and all output.',
        samples: all.flatMap((series) => series.tokens()),
      },
      {
        name: 'model_gateway_key_cost_dollars',
        type: 'counter',
        unit: 'dollars',
        help: 'What the calls of keys and teams cost; unpriced calls are not in it.',
        samples: all.map((series) => series.cost()),
      },
    ];
  }
}
