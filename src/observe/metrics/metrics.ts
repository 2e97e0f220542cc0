/** All metrics of one process: what is counted, and what is asked at a scrape. */
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { CallMetrics, type CallMetricsParts } from './call-metrics.ts';
import { endText, familyText, type Format } from './exposition.ts';
import { type Family, LabelledCounter, single } from './family.ts';
import { type GatewayFacts, gatewayFamilies } from './gateway-families.ts';

interface MetricsParts extends CallMetricsParts {
  facts(): GatewayFacts | Promise<GatewayFacts>;
}

const limitKinds = ['concurrent', 'requests', 'tokens', 'budget'];
const holders = ['key', 'team', 'tag'];

export class Metrics {
  readonly calls: CallMetrics;
  /** Requests that were not calls: refused at the door, by the gateway's own error code. */
  readonly refusedRequests = new LabelledCounter({
    name: 'model_gateway_refused_requests',
    help: 'Requests refused before they became calls: unknown path, invalid key, malformed HTTP.',
    labels: ['error_type'],
    known: [['unauthenticated']],
  });
  readonly limitRefusals = new LabelledCounter({
    name: 'model_gateway_limit_refusals',
    help: 'Calls refused by a limit or budget, by its kind and its holder.',
    labels: ['kind', 'holder'],
    known: limitKinds.flatMap((kind) => holders.map((holder) => [kind, holder])),
  });
  readonly budgetEvents = new LabelledCounter({
    name: 'model_gateway_budget_events',
    help: 'Budgets that passed a threshold, in percent; each threshold counts once per window.',
    labels: ['threshold', 'holder'],
    known: ['50', '80', '100'].flatMap((part) => holders.map((holder) => [part, holder])),
  });
  readonly reloads = new LabelledCounter({
    name: 'model_gateway_config_reloads',
    help: 'Reloads of the configuration, by outcome.',
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

// What this process uses. Names without a prefix are those that every exporter has.

const startedAt = (): number => performance.timeOrigin / 1000;

export function processFamilies(): readonly Family[] {
  const { user, system } = process.cpuUsage();
  return [
    {
      name: 'process_cpu_seconds',
      type: 'counter',
      unit: 'seconds',
      help: 'CPU time of the process, user and system.',
      samples: single((user + system) / 1e6),
    },
    {
      name: 'process_start_time_seconds',
      type: 'gauge',
      unit: 'seconds',
      // A worker that was replaced takes nothing of the counts with it: they go on from the gateway's start.
      across: 'min',
      help: 'Start time of the process in seconds since the epoch; with workers, of the oldest one.',
      samples: single(startedAt()),
    },
    ...memoryFamilies(),
    {
      name: 'model_gateway_event_loop_active_seconds',
      type: 'counter',
      unit: 'seconds',
      help: 'Time that the event loop was active; its rate is the utilization.',
      samples: single(performance.eventLoopUtilization().active / 1000),
    },
  ];
}

/** None where no file can be opened to read it from, since no descriptor is left (F92): the others are told all the same. */
function memoryFamilies(): readonly Family[] {
  try {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    return [
      bytes('process_resident_memory_bytes', 'Resident memory of the process.', rss),
      bytes('nodejs_heap_size_used_bytes', 'Used part of the JavaScript heap.', heapUsed),
      bytes('nodejs_heap_size_total_bytes', 'Size of the JavaScript heap.', heapTotal),
      bytes(
        'nodejs_external_memory_bytes',
        'Memory outside the heap, including buffers.',
        external,
      ),
    ];
  } catch {
    return [];
  }
}

function bytes(name: string, help: string, value: number): Family {
  return { name, type: 'gauge', unit: 'bytes', help, samples: single(value) };
}
