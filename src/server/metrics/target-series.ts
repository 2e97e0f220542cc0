/** What is counted of the tries at targets. */
import { Capped, type Room } from '../../observe/metrics/capped.ts';
import { labelText, type Family, type NumberSample } from '../../observe/metrics/family.ts';
import { Histogram } from '../../observe/metrics/histogram.ts';
import type { AttemptRow, CallRow } from '../../store/calls.ts';

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

const mostTargets = 200;
const mostProviders = 60;

export class TargetTable {
  readonly #room: Room = { left: mostTargets };
  readonly #providers: Capped<Capped<TargetSeries>>;
  #fallbacks = 0;
  #retries = 0;
  #rescued = 0;

  constructor() {
    this.#providers = new Capped<Capped<TargetSeries>>(
      { left: mostProviders },
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
        help: 'Requests to targets by how they ended; a call makes up to three.',
        samples: all.flatMap((series) => series.attempts()),
      },
      {
        name: 'model_gateway_attempt_duration_seconds',
        type: 'histogram',
        unit: 'seconds',
        help: 'Time from the beginning of a request to a target to its end.',
        samples: all.map((series) => series.duration()),
      },
      {
        name: 'model_gateway_maybe_billed_attempts',
        type: 'counter',
        help: 'Requests that were sent and not answered: the vendor may bill them (R5).',
        samples: all.map((series) => series.maybeBilled()),
      },
      counter('model_gateway_fallbacks', {
        help: 'Further tries of calls at another target or credential.',
        value: this.#fallbacks,
      }),
      counter('model_gateway_retries', {
        help: 'Further tries of calls at a target that was asked before.',
        value: this.#retries,
      }),
      counter('model_gateway_rescued_calls', {
        help: 'Calls that ended well after a first try that did not count.',
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
