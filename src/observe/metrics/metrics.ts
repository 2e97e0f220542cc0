/** All metrics of one process: counters, and values that are read at a scrape. */
import { performance } from 'node:perf_hooks';
import { setImmediate as turn } from 'node:timers/promises';
import { CallMetrics, type CallMetricsDeps } from './call-metrics.ts';
import {
  type Exemplars,
  type Family,
  type HistogramSample,
  LabelledCounter,
  type NumberFamily,
  single,
} from './family.ts';
import { type GatewayFacts, gatewayFamilies } from './gateway-families.ts';

interface MetricsDeps extends CallMetricsDeps {
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
  readonly #deps: MetricsDeps;

  constructor(deps: MetricsDeps) {
    this.#deps = deps;
    this.calls = new CallMetrics(deps);
  }

  /** The metrics of this process. Those of several processes can be summed by name and labels. */
  async families(): Promise<readonly Family[]> {
    const facts = await this.#deps.facts();
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
  // The end of a scrape.
  return text + (format === 'openmetrics' ? '# EOF\n' : '');
}

// Resources of this process. Names without a prefix are common to all exporters.

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
      // A worker that was replaced takes nothing of the counts with it: they continue from the gateway's start.
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

/**
 * None where no file can be opened to read it from, since no descriptor is left (F92): the other metrics are still
 * written.
 */
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

// Families as text: Prometheus' format 0.0.4 and OpenMetrics 1.0.0, whichever the scraper prefers.

export type Format = 'prometheus' | 'openmetrics';

export const contentTypes: { readonly [F in Format]: string } = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** By the quality values of an `accept` header; OpenMetrics only where it is requested by name. */
export function formatFor(accept: string | undefined): Format {
  let open = 0;
  let plain = 0;
  for (const range of (accept ?? '').slice(0, 1000).split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    const quality = qualityOf(parameters);
    if (type === 'application/openmetrics-text') open = Math.max(open, quality);
    else if (type === 'text/plain') plain = Math.max(plain, quality);
  }
  return open > 0 && open >= plain ? 'openmetrics' : 'prometheus';
}

function qualityOf(parameters: readonly string[]): number {
  const given = parameters.find((each) => each.startsWith('q='));
  const quality = given === undefined ? 1 : Number(given.slice(2));
  return quality >= 0 && quality <= 1 ? quality : 0;
}

/** The text of one family, its lines ended; '' for one without samples. */
export function familyText(family: Family, format: Format): string {
  if (family.samples.length === 0) return '';
  const { name, help, type, unit } = family;
  const open = format === 'openmetrics';
  const shown = !open && type === 'counter' ? `${name}_total` : name;
  const lines = [
    `# HELP ${shown} ${help}`,
    `# TYPE ${shown} ${type}`,
    ...(open && unit !== undefined ? [`# UNIT ${shown} ${unit}`] : []),
  ];
  if (family.type === 'histogram') {
    for (const sample of family.samples) addHistogram(lines, { name: family.name, sample, format });
  } else addNumbers(lines, family);
  return `${lines.join('\n')}\n`;
}

function addNumbers(lines: string[], { name, type, samples }: NumberFamily): void {
  const shown = type === 'counter' ? `${name}_total` : name;
  for (const { labels, value } of samples) {
    lines.push(labels === '' ? `${shown} ${value}` : `${shown}{${labels}} ${value}`);
  }
}

function addHistogram(
  lines: string[],
  {
    name,
    sample: { labels, data },
    format,
  }: { readonly name: string; readonly sample: HistogramSample; readonly format: Format },
): void {
  const { bounds, counts, sum, exemplars } = data;
  const before = labels === '' ? '' : `${labels},`;
  let sofar = 0;
  for (let i = 0; i < counts.length; i++) {
    sofar += counts[i] ?? 0;
    const line = `${name}_bucket{${before}le="${boundText(bounds[i], format)}"} ${sofar}`;
    lines.push(format === 'openmetrics' ? line + exemplarText(exemplars, i) : line);
  }
  const braces = labels === '' ? '' : `{${labels}}`;
  lines.push(`${name}_sum${braces} ${sum}`, `${name}_count${braces} ${sofar}`);
}

/** OpenMetrics wants floats to look like floats. */
function boundText(bound: number | undefined, format: Format): string {
  if (bound === undefined) return '+Inf';
  return format === 'openmetrics' && Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

function exemplarText(exemplars: Exemplars | undefined, bucket: number): string {
  const id = exemplars?.ids[bucket] ?? '';
  if (exemplars === undefined || id === '') return '';
  const label = id.includes('_') ? 'call_id' : 'trace_id';
  const at = (exemplars.times[bucket] ?? 0).toFixed(3);
  return ` # {${label}="${id}"} ${exemplars.values[bucket] ?? 0} ${at}`;
}
