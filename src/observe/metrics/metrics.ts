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
      help: 'When the process started, since the epoch; of a gateway with workers the first of them.',
      samples: single(startedAt()),
    },
    ...memoryFamilies(),
    {
      name: 'model_gateway_event_loop_active_seconds',
      type: 'counter',
      unit: 'seconds',
      help: 'Time in which the event loop was at work; its rate is its utilization.',
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
      bytes('nodejs_heap_size_used_bytes', 'JavaScript heap in use.', heapUsed),
      bytes('nodejs_heap_size_total_bytes', 'JavaScript heap that is there.', heapTotal),
      bytes(
        'nodejs_external_memory_bytes',
        'Memory outside of the heap, buffers included.',
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
