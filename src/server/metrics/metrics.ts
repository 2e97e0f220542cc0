/** All metrics of one process: what is counted, and what is asked at a scrape. */
import { setImmediate as turn } from 'node:timers/promises';
import { LabelledCounter } from '../../observe/metrics/counter.ts';
import { endText, familyText, type Format } from '../../observe/metrics/exposition.ts';
import type { Family } from '../../observe/metrics/family.ts';
import { CallMetrics, type CallMetricsParts } from './call-metrics.ts';
import type { GatewayFacts } from './gateway-facts.ts';
import { gatewayFamilies } from './gateway-families.ts';
import { processFamilies } from './process-metrics.ts';

export interface MetricsParts extends CallMetricsParts {
  facts(): GatewayFacts | Promise<GatewayFacts>;
}

const limitKinds = ['concurrent', 'requests', 'tokens', 'budget'];
const holders = ['key', 'team', 'tag'];

export class Metrics {
  readonly calls: CallMetrics;
  /** Requests that were no calls: refused at the door, by the gateway's own error code. */
  readonly refusedRequests = new LabelledCounter({
    name: 'model_gateway_refused_requests',
    help: 'Requests that were refused before they were calls: no path, no key, not HTTP.',
    labels: ['error_type'],
    known: [['unauthenticated']],
  });
  readonly limitRefusals = new LabelledCounter({
    name: 'model_gateway_limit_refusals',
    help: 'Calls that a limit or a budget refused, by its kind and by whose it is.',
    labels: ['kind', 'holder'],
    known: limitKinds.flatMap((kind) => holders.map((holder) => [kind, holder])),
  });
  readonly budgetEvents = new LabelledCounter({
    name: 'model_gateway_budget_events',
    help: 'Budgets that passed a threshold, in percent; each is told once a window.',
    labels: ['threshold', 'holder'],
    known: ['50', '80', '100'].flatMap((part) => holders.map((holder) => [part, holder])),
  });
  readonly reloads = new LabelledCounter({
    name: 'model_gateway_config_reloads',
    help: 'Times the config was read again.',
    labels: ['outcome'],
    known: [['applied'], ['refused']],
  });
  readonly #parts: MetricsParts;

  constructor(parts: MetricsParts) {
    this.#parts = parts;
    this.calls = new CallMetrics(parts);
  }

  /** Of this process alone; families of several can be summed by name and labels. */
  async families(): Promise<readonly Family[]> {
    const facts = await this.#parts.facts();
    return [
      ...this.calls.families(),
      ...gatewayFamilies(facts),
      this.limitRefusals.family(),
      this.budgetEvents.family(),
      this.refusedRequests.family(),
      this.reloads.family(),
      ...processFamilies(),
    ];
  }
}

/** The text of a scrape, made a family at a turn: thousands of series hold up no call. */
export async function scrapeText(families: readonly Family[], format: Format): Promise<string> {
  let text = '';
  for (const family of families) {
    text += familyText(family, format);
    await turn();
  }
  return text + endText(format);
}
