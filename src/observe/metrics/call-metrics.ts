/**
 * What is counted of calls: once a call, from the row that its ledger gets, and never while it runs. A
 * scrape makes text of it; calls only add numbers (docs/decisions, metrics).
 */
import type { AttemptRow, CallOutcome, CallRow } from '../../store/calls.ts';
import {
  Capped,
  type Family,
  Histogram,
  labelText,
  type NumberSample,
  other,
  type Room,
} from './family.ts';
import { modelFamilies, ModelSeries } from './model-series.ts';

export interface CallMetricsParts {
  /** Whether the config names this model: it has series of its own whatever becomes of its calls. */
  isDeclared(model: string): boolean;
}

type ByAnswered = Capped<ModelSeries>;
type ByRequested = Capped<ByAnswered>;

const maxProviders = 60;
/** Names that clients ask for, of all providers. */
const maxRequested = 150;
/** Pairs of asked and answering models. */
const maxPairs = 250;

export class CallMetrics {
  readonly #parts: CallMetricsParts;
  readonly #calls = new CallTable();
  readonly #keys = new KeyTable();
  readonly #targets = new TargetTable();
  readonly #requested: Room = { left: maxRequested };
  readonly #pairs: Room = { left: maxPairs };
  /** By provider, asked model, answering model. */
  readonly #models: Capped<ByRequested>;

  constructor(parts: CallMetricsParts) {
    this.#parts = parts;
    this.#models = new Capped<ByRequested>({ left: maxProviders }, (provider) =>
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

  /** Clients may ask for any model name of a provider: only models that answered get a label. */
  #mayAdd({ outcome, error = '', model }: CallRow): boolean {
    return outcome === 'ok' || !tellsNothing.has(error) || this.#parts.isDeclared(model);
  }
}

/** With these errors a provider may say that the model does not exist. */
const tellsNothing: ReadonlySet<string> = new Set([
  'upstream_rejected',
  'model_not_found',
  'invalid_request',
]);

// How calls ended, one number for each combination that occurred.

interface Series {
  readonly labels: string;
  value: number;
}

/** Names that come from the gateway's own code are few; what would be one more is `_OTHER`. */
const maxNames = 60;
const otherName = '_OTHER';

/** A small number for each name. */
class Names {
  readonly #places = new Map<string, number>([['', 0]]);

  /** Below 64. */
  placeOf(name: string): number {
    const known = this.#places.get(name);
    if (known !== undefined) return known;
    if (this.#places.size >= maxNames) return maxNames;
    this.#places.set(name, this.#places.size);
    return this.#places.size - 1;
  }
}

class CallTable {
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
    else this.#begin(place, row, error_ === maxNames ? otherName : error);
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
        help: 'Authenticated calls with a ledger row, by outcome.',
        samples: [...this.#series.values()],
      },
    ];
  }
}

// What keys and teams use.

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
const maxKeys = 200;
const maxTeams = 100;

class KeyTable {
  readonly #keys: Room = { left: maxKeys };
  readonly #teams: Capped<Capped<KeySeries>>;

  constructor() {
    this.#teams = new Capped<Capped<KeySeries>>(
      { left: maxTeams },
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
        help: 'Calls by key and team; keys and teams beyond the limit are summed as other.',
        samples: all.flatMap((series) => series.calls()),
      },
      {
        name: 'model_gateway_key_tokens',
        type: 'counter',
        help: 'Charged tokens by key and team: all input and all output.',
        samples: all.flatMap((series) => series.tokens()),
      },
      {
        name: 'model_gateway_key_cost_dollars',
        type: 'counter',
        unit: 'dollars',
        help: 'Cost of calls by key and team; calls without a known price are not included.',
        samples: all.map((series) => series.cost()),
      },
    ];
  }
}

// What is counted of the tries at targets.

/** Of `gen_ai.server.request.duration`, s. */
const durationBounds = Array.from({ length: 14 }, (_, power) => 2 ** power / 100);

class TargetSeries {
  readonly provider: string;
  readonly model: string;
  readonly durations = new Histogram(durationBounds);
  readonly #labels: string;
  #ok = 0;
  #maybeBilled = 0;
  /** By outcome and error. */
  readonly #others = new Map<string, { readonly labels: string; value: number }>();

  constructor(provider: string, model: string) {
    this.provider = provider;
    this.model = model;
    this.#labels = labelText({ provider, model });
  }

  tried({ outcome, error = '', ms, maybeBilled }: AttemptRow): void {
    this.durations.observe(ms / 1000);
    if (maybeBilled === true) this.#maybeBilled += 1;
    if (outcome === 'ok') {
      this.#ok += 1;
      return;
    }
    const name = `${outcome} ${error}`;
    const known = this.#others.get(name);
    if (known !== undefined) known.value += 1;
    else this.#others.set(name, { labels: this.#ended(outcome, error), value: 1 });
  }

  #ended(outcome: string, error: string): string {
    return `${this.#labels},${labelText({ outcome, error_type: error })}`;
  }

  attempts(): readonly NumberSample[] {
    return [{ labels: this.#ended('ok', ''), value: this.#ok }, ...this.#others.values()];
  }

  maybeBilled(): NumberSample {
    return { labels: this.#labels, value: this.#maybeBilled };
  }

  duration(): { readonly labels: string; readonly data: Histogram } {
    return { labels: this.#labels, data: this.durations };
  }
}

const maxTargets = 200;
const maxTargetProviders = 60;

class TargetTable {
  readonly #room: Room = { left: maxTargets };
  readonly #providers: Capped<Capped<TargetSeries>>;
  #fallbacks = 0;
  #retries = 0;
  #rescued = 0;

  constructor() {
    this.#providers = new Capped<Capped<TargetSeries>>(
      { left: maxTargetProviders },
      (provider) =>
        new Capped<TargetSeries>(this.#room, (model) => new TargetSeries(provider, model)),
    );
  }

  /** @param mayAdd whether its models may get series of their own. */
  called({ attemptRows, outcome }: CallRow, mayAdd: boolean): void {
    for (const attempt of attemptRows) {
      const { provider, upstreamModel } = attempt;
      this.#providers.of(provider).of(upstreamModel, mayAdd).tried(attempt);
    }
    if (attemptRows.length > 1) this.#countMore(attemptRows, outcome === 'ok');
  }

  #countMore(attempts: readonly AttemptRow[], ok: boolean): void {
    const [first] = attempts;
    if (first === undefined) return;
    attempts.forEach((attempt, i) => {
      if (i === 0) return;
      const before = attempts.slice(0, i);
      if (before.some((each) => isSame(each, attempt))) this.#retries += 1;
      else this.#fallbacks += 1;
    });
    if (ok) this.#rescued += 1;
  }

  families(): readonly Family[] {
    const all = [...this.#providers.values()].flatMap((provider) => [...provider.values()]);
    return [
      {
        name: 'model_gateway_attempts',
        type: 'counter',
        help: 'Requests to targets, by outcome; a call makes up to three.',
        samples: all.flatMap((series) => series.attempts()),
      },
      {
        name: 'model_gateway_attempt_duration_seconds',
        type: 'histogram',
        unit: 'seconds',
        help: 'Duration of a request to a target.',
        samples: all.map((series) => series.duration()),
      },
      {
        name: 'model_gateway_maybe_billed_attempts',
        type: 'counter',
        help: 'Requests that were sent and not answered; the vendor may bill them (R5).',
        samples: all.map((series) => series.maybeBilled()),
      },
      counter('model_gateway_fallbacks', {
        help: 'Retries at another target or credential.',
        value: this.#fallbacks,
      }),
      counter('model_gateway_retries', {
        help: 'Retries at the same target.',
        value: this.#retries,
      }),
      counter('model_gateway_rescued_calls', {
        help: 'Calls that succeeded after a failed first attempt.',
        value: this.#rescued,
      }),
    ];
  }
}

function isSame(a: AttemptRow, b: AttemptRow): boolean {
  return (
    a.provider === b.provider &&
    a.upstreamModel === b.upstreamModel &&
    a.credential === b.credential
  );
}

function counter(name: string, { help, value }: { help: string; value: number }): Family {
  return { name, type: 'counter', help, samples: [{ labels: '', value }] };
}
