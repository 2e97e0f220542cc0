/**
 * What is counted of calls: once a call, from the row that its ledger gets, and never while it runs. A
 * scrape makes text of it; calls only add numbers (docs/decisions, metrics).
 */
import { Capped, other, type Room } from '../../observe/metrics/capped.ts';
import type { Family } from '../../observe/metrics/family.ts';
import type { CallRow } from '../../store/calls.ts';
import { CallTable } from './call-table.ts';
import { KeyTable } from './key-series.ts';
import { modelFamilies, ModelSeries } from './model-series.ts';
import { TargetTable } from './target-series.ts';

export interface CallMetricsParts {
  /** Whether the config names this model: it has series of its own whatever becomes of its calls. */
  isDeclared(model: string): boolean;
}

type ByAnswered = Capped<ModelSeries>;
type ByRequested = Capped<ByAnswered>;

const mostProviders = 60;
/** Names that clients ask for, of all providers. */
const mostRequested = 150;
/** Pairs of asked and answering models. */
const mostPairs = 250;

export class CallMetrics {
  readonly #parts: CallMetricsParts;
  readonly #calls = new CallTable();
  readonly #keys = new KeyTable();
  readonly #targets = new TargetTable();
  readonly #requested: Room = { left: mostRequested };
  readonly #pairs: Room = { left: mostPairs };
  /** By provider, asked model, answering model. */
  readonly #models: Capped<ByRequested>;

  constructor(parts: CallMetricsParts) {
    this.#parts = parts;
    this.#models = new Capped<ByRequested>({ left: mostProviders }, (provider) =>
      this.#ofProvider(provider),
    );
  }

  /** A call is over. Never throws. */
  called(row: CallRow): void {
    this.#calls.called(row);
    this.#keys.called(row);
    const { provider, model, upstreamModel = '' } = row;
    if (provider === undefined) return;
    const mayAdd = this.#mayAdd(row);
    // A trace that is not recorded is nowhere to be found; a call is in the ledger.
    const exemplar = row.sampled === true ? (row.traceId ?? row.id) : row.id;
    this.#targets.called(row, mayAdd);
    this.#models.of(provider).of(model, mayAdd).of(upstreamModel, mayAdd).called(row, exemplar);
  }

  families(): readonly Family[] {
    const models = [...this.#models.values()]
      .flatMap((provider) => [...provider.values()])
      .flatMap((requested) => [...requested.values()]);
    return [
      ...modelFamilies(models),
      ...this.#calls.families(),
      ...this.#targets.families(),
      ...this.#keys.families(),
    ];
  }

  #ofProvider(provider: string): ByRequested {
    return new Capped<ByAnswered>(this.#requested, (requested) => {
      const make = (answered: string): ModelSeries =>
        new ModelSeries({ provider, requested, answered });
      return new Capped<ModelSeries>(requested === other ? { left: 0 } : this.#pairs, make);
    });
  }

  /** Anybody may ask for any model of a provider: only what answers gets a name (B49). */
  #mayAdd({ outcome, error = '', model }: CallRow): boolean {
    return outcome === 'ok' || !tellsNothing.has(error) || this.#parts.isDeclared(model);
  }
}

/** With these a provider may say that there is no such model. */
const tellsNothing: ReadonlySet<string> = new Set([
  'upstream_rejected',
  'model_not_found',
  'invalid_request',
]);
