/**
 * Metrics of calls: counted once a call, from its ledger row, and never while it runs. A
 * scrape makes text of it; calls only add numbers (docs/decisions/0026).
 */
import type { CountedUsage } from '../../core/token-classes.ts';
import type { AttemptRow, CallOutcome, CallRow } from '../../store/calls.ts';
import {
  Capped,
  type Family,
  Histogram,
  labelText,
  type NumberSample,
  other,
  type Room,
  type HistogramSample,
} from './family.ts';
import { hasCounts } from '../../core/generation.ts';
import { telemetryName } from '../../providers/compatible.ts';

export interface CallMetricsDeps {
  /** Whether the config names this model: it has series of its own whatever becomes of its calls. */
  isDeclared(model: string): boolean;
}

type ByAnswered = Capped<ModelSeries>;
type ByRequested = Capped<ByAnswered>;

const maxProviders = 60;
/** Names that clients request, of all providers. */
const maxRequested = 150;
/** Pairs of requested and answering models. */
const maxPairs = 250;

export class CallMetrics {
  readonly #deps: CallMetricsDeps;
  readonly #calls = new CallTable();
  readonly #keys = new KeyTable();
  readonly #targets = new TargetTable();
  readonly #requested: Room = { left: maxRequested };
  readonly #pairs: Room = { left: maxPairs };
  /** By provider, requested model, answering model. */
  readonly #models: Capped<ByRequested>;

  constructor(deps: CallMetricsDeps) {
    this.#deps = deps;
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

  /** Clients may request any model name of a provider: only models that answered get a label. */
  #mayAdd({ outcome, error = '', model }: CallRow): boolean {
    return outcome === 'ok' || !uninformative.has(error) || this.#deps.isDeclared(model);
  }
}

/** With these errors a provider may say that the model does not exist. */
const uninformative: ReadonlySet<string> = new Set([
  'upstream_rejected',
  'model_not_found',
  'invalid_request',
]);

// How calls ended, a series for each combination that occurred.

interface Series {
  readonly labels: string;
  value: number;
}

/** Names that come from the gateway's own code are few; what would be one more is `_OTHER`. */
const maxNames = 60;
const otherName = '_OTHER';

class Names {
  readonly #known = new Set<string>(['']);

  /** The name, or `_OTHER` for one that is too many. */
  capped(name: string): string {
    if (this.#known.has(name)) return name;
    if (this.#known.size >= maxNames) return otherName;
    this.#known.add(name);
    return name;
  }
}

class CallTable {
  readonly #endpoints = new Names();
  readonly #errors = new Names();
  readonly #series = new Map<string, Series>();

  called(row: CallRow): void {
    const { outcome, status = '', mode = '', stream } = row;
    const endpoint = this.#endpoints.capped(row.endpoint);
    const error_type = this.#errors.capped(row.error ?? '');
    const name = `${endpoint} ${outcome} ${status} ${error_type} ${mode} ${stream}`;
    const series = this.#series.get(name);
    if (series !== undefined) {
      series.value += 1;
      return;
    }
    const own = { endpoint, outcome, status: String(status), error_type, mode };
    const labels = labelText({ ...own, stream: String(stream) });
    this.#series.set(name, { labels, value: 1 });
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

// Usage of keys and teams.

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
    const index = outcome === 'ok' ? 0 : outcome === 'failed' ? 1 : 2;
    this.#calls[index] = (this.#calls[index] ?? 0) + 1;
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

// Metrics of attempts at targets.

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
        help: 'Requests that were sent and not answered; the vendor may bill them.',
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

// Metrics of calls to one model, with the names and buckets of OpenTelemetry's
// semantic conventions for generative AI, and what they cost.

/** Of `gen_ai.client.token.usage`. */
const tokenBounds = Array.from({ length: 14 }, (_, power) => 4 ** power);
/** Of `gen_ai.server.time_to_first_token`, s. */
const firstTokenBounds = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
/** Of `gen_ai.server.time_per_output_token`, s. */
const outputTokenBounds = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];

const costClasses = ['input', 'cache_read', 'cache_write', 'output', 'reasoning', 'call'] as const;
const tokenKinds = ['input', 'cache_read', 'cache_write', 'output', 'reasoning'] as const;

interface ModelNames {
  /** As the config calls it. */
  readonly provider: string;
  readonly requested: string;
  readonly answered: string;
}

class ModelSeries {
  readonly #labels: string;
  readonly #shortLabels: string;
  readonly #input = new Histogram(tokenBounds);
  readonly #output = new Histogram(tokenBounds);
  readonly #ok = new Histogram(durationBounds);
  /** By the outcome of the call. */
  readonly #failed = new Map<string, Histogram>();
  readonly #firstToken = new Histogram(firstTokenBounds);
  readonly #outputToken = new Histogram(outputTokenBounds);
  readonly #tokens = new Float64Array(tokenKinds.length);
  readonly #nanodollars = new Float64Array(costClasses.length);
  #unpriced = 0;
  #suspect = 0;
  #estimated = 0;

  constructor({ provider, requested, answered }: ModelNames) {
    this.#labels = labelText({
      gen_ai_operation_name: 'chat',
      gen_ai_provider_name: telemetryName(provider),
      gen_ai_request_model: requested,
      gen_ai_response_model: answered,
    });
    this.#shortLabels = labelText({ provider, model: requested, upstream_model: answered });
  }

  /** @param exemplar id of the call's trace, or of the call. */
  called(row: CallRow, exemplar: string): void {
    const { outcome, error = '_OTHER', totalMs } = row;
    const at = (row.startedAt + totalMs) / 1000;
    const durations = outcome === 'ok' ? this.#ok : this.#failedWith(error);
    durations.observeAs(exemplar, totalMs / 1000, at);
    this.#countUsage(row.charged);
    this.#countCost(row);
    if (outcome === 'ok' && row.stream) this.#countPace(row, exemplar, at);
  }

  #failedWith(error: string): Histogram {
    let durations = this.#failed.get(error);
    if (durations === undefined) {
      durations = new Histogram(durationBounds);
      this.#failed.set(error, durations);
    }
    return durations;
  }

  #countUsage(charged: CountedUsage): void {
    const { freshInputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = charged;
    // Absent is not zero: a call without a known count has no observation.
    if ((freshInputTokens ?? cacheReadTokens ?? cacheWriteTokens) !== undefined) {
      const fresh = freshInputTokens ?? 0;
      const read = cacheReadTokens ?? 0;
      const written = cacheWriteTokens ?? 0;
      this.#input.observe(fresh + read + written);
      this.#addTokens(0, fresh);
      this.#addTokens(1, read);
      this.#addTokens(2, written);
    }
    if (outputTokens === undefined) return;
    const reasoning = Math.min(charged.reasoningTokens ?? 0, outputTokens);
    this.#output.observe(outputTokens);
    this.#addTokens(3, outputTokens - reasoning);
    this.#addTokens(4, reasoning);
  }

  #addTokens(index: number, tokens: number): void {
    this.#tokens[index] = (this.#tokens[index] ?? 0) + tokens;
  }

  #countCost({ cost, charged, suspect, usageSource }: CallRow): void {
    if (suspect === true) this.#suspect += 1;
    if (usageSource !== 'reported' && hasCounts(charged)) this.#estimated += 1;
    if (cost === undefined) {
      this.#unpriced += 1;
      return;
    }
    if (cost.total === 0) return;
    const sums = this.#nanodollars;
    sums[0] = (sums[0] ?? 0) + cost.input;
    sums[1] = (sums[1] ?? 0) + cost.cacheRead;
    sums[2] = (sums[2] ?? 0) + cost.cacheWrite;
    sums[3] = (sums[3] ?? 0) + cost.output;
    sums[4] = (sums[4] ?? 0) + cost.reasoning;
    sums[5] = (sums[5] ?? 0) + cost.call;
  }

  #countPace({ firstEventMs, totalMs, charged }: CallRow, exemplar: string, at: number): void {
    if (firstEventMs === undefined) return;
    this.#firstToken.observeAs(exemplar, firstEventMs / 1000, at);
    const { outputTokens = 0 } = charged;
    if (outputTokens < 2) return;
    this.#outputToken.observe((totalMs - firstEventMs) / 1000 / (outputTokens - 1));
  }

  /** Series of one histogram family with what has been observed. */
  histograms(): { readonly [F in HistogramName]: readonly HistogramSample[] } {
    const labels = this.#labels;
    const ofError = [...this.#failed].map(([error, data]) => ({
      labels: `${labels},${labelText({ error_type: error })}`,
      data,
    }));
    return {
      usage: [
        ...observed(`${labels},gen_ai_token_type="input"`, this.#input),
        ...observed(`${labels},gen_ai_token_type="output"`, this.#output),
      ],
      // There from the first call on, so that a first success after failures is a rise.
      duration: [{ labels, data: this.#ok }, ...ofError],
      firstToken: observed(labels, this.#firstToken),
      outputToken: observed(labels, this.#outputToken),
    };
  }

  /** Numbers by class; classes that never occurred are there with 0. */
  numbers(): {
    readonly [F in NumberName]: readonly { readonly labels: string; readonly value: number }[];
  } {
    const labels = this.#shortLabels;
    return {
      tokens: tokenKinds.map((name, i) => ({
        labels: `${labels},type="${name}"`,
        value: this.#tokens[i] ?? 0,
      })),
      cost: costClasses.map((name, i) => ({
        labels: `${labels},class="${name}"`,
        value: (this.#nanodollars[i] ?? 0) / 1e9,
      })),
      unpriced: [{ labels, value: this.#unpriced }],
      suspect: [{ labels, value: this.#suspect }],
      estimated: [{ labels, value: this.#estimated }],
    };
  }
}

function observed(labels: string, data: Histogram): readonly HistogramSample[] {
  return data.counts.some((count) => count > 0) ? [{ labels, data }] : [];
}

type HistogramName = 'usage' | 'duration' | 'firstToken' | 'outputToken';
type NumberName = 'tokens' | 'cost' | 'unpriced' | 'suspect' | 'estimated';

/** The families of all models. */
function modelFamilies(all: readonly ModelSeries[]): readonly Family[] {
  const histograms = all.map((series) => series.histograms());
  const numbers = all.map((series) => series.numbers());
  return [
    {
      name: 'gen_ai_client_token_usage',
      type: 'histogram',
      help: 'Tokens of calls that reached an upstream, as billed: all input and all output.',
      samples: histograms.flatMap(({ usage }) => usage),
    },
    {
      name: 'gen_ai_server_request_duration_seconds',
      type: 'histogram',
      unit: 'seconds',
      help: 'Time from the request to the last byte of the answer, for calls that reached a target.',
      samples: histograms.flatMap(({ duration }) => duration),
    },
    {
      name: 'gen_ai_server_time_to_first_token_seconds',
      type: 'histogram',
      unit: 'seconds',
      help: 'Time from the request to the first event, for streams that succeeded.',
      samples: histograms.flatMap(({ firstToken }) => firstToken),
    },
    {
      name: 'gen_ai_server_time_per_output_token_seconds',
      type: 'histogram',
      unit: 'seconds',
      help: 'Time per output token after the first one, for streams that succeeded.',
      samples: histograms.flatMap(({ outputToken }) => outputToken),
    },
    ...numberFamilies(numbers),
  ];
}

function numberFamilies(all: readonly ReturnType<ModelSeries['numbers']>[]): readonly Family[] {
  return [
    {
      name: 'model_gateway_tokens',
      type: 'counter',
      help: 'Charged tokens, by class; input excludes cache reads and writes, output excludes reasoning.',
      samples: all.flatMap(({ tokens }) => tokens),
    },
    {
      name: 'model_gateway_cost_dollars',
      type: 'counter',
      unit: 'dollars',
      help: "Cost of calls, by class, at the gateway's prices; calls without a known price are not included.",
      samples: all.flatMap(({ cost }) => cost),
    },
    {
      name: 'model_gateway_unpriced_calls',
      type: 'counter',
      help: 'Calls whose cost is unknown, as opposed to zero.',
      samples: all.flatMap(({ unpriced }) => unpriced),
    },
    {
      name: 'model_gateway_suspect_usage_calls',
      type: 'counter',
      help: 'Calls whose upstream reported an impossible usage.',
      samples: all.flatMap(({ suspect }) => suspect),
    },
    {
      name: 'model_gateway_estimated_usage_calls',
      type: 'counter',
      help: 'Calls with at least one count that the gateway estimated.',
      samples: all.flatMap(({ estimated }) => estimated),
    },
  ];
}
