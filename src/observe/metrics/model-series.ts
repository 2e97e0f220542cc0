/**
 * What is counted of the calls to one model, under the names and with the buckets of OpenTelemetry's
 * semantic conventions for generative AI, and what they cost.
 */
import { hasCounts } from '../../core/generation.ts';
import { telemetryName } from '../../providers/compatible.ts';
import { type Family, Histogram, type HistogramSample, labelText } from './family.ts';
import type { CallRow, CountedUsage } from '../../store/calls.ts';

/** Of `gen_ai.client.token.usage`. */
const tokenBounds = Array.from({ length: 14 }, (_, power) => 4 ** power);
/** Of `gen_ai.server.request.duration`, s. */
const durationBounds = Array.from({ length: 14 }, (_, power) => 2 ** power / 100);
/** Of `gen_ai.server.time_to_first_token`, s. */
const firstTokenBounds = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
];
/** Of `gen_ai.server.time_per_output_token`, s. */
const outputTokenBounds = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];

const costClasses = ['input', 'cache_read', 'cache_write', 'output', 'reasoning', 'call'] as const;
const tokenClasses = ['input', 'cache_read', 'cache_write', 'output', 'reasoning'] as const;

interface ModelNames {
  /** As the config calls it. */
  readonly provider: string;
  readonly requested: string;
  readonly answered: string;
}

export class ModelSeries {
  readonly #labels: string;
  readonly #shortLabels: string;
  readonly #input = new Histogram(tokenBounds);
  readonly #output = new Histogram(tokenBounds);
  readonly #ok = new Histogram(durationBounds);
  /** By what the call ended with. */
  readonly #failed = new Map<string, Histogram>();
  readonly #firstToken = new Histogram(firstTokenBounds);
  readonly #outputToken = new Histogram(outputTokenBounds);
  readonly #tokens = new Float64Array(tokenClasses.length);
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

  #addTokens(place: number, tokens: number): void {
    this.#tokens[place] = (this.#tokens[place] ?? 0) + tokens;
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
      tokens: tokenClasses.map((name, i) => ({
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
export function modelFamilies(all: readonly ModelSeries[]): readonly Family[] {
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
      help: 'Calls whose cost is unknown, as opposed to zero (F6).',
      samples: all.flatMap(({ unpriced }) => unpriced),
    },
    {
      name: 'model_gateway_suspect_usage_calls',
      type: 'counter',
      help: 'Calls whose upstream reported an impossible usage (F57).',
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
