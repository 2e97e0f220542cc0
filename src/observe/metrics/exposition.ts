/** Families as text: Prometheus' format 0.0.4 and OpenMetrics 1.0.0, whichever the scraper prefers. */
import type {
  Exemplars,
  Family,
  HistogramFamily,
  HistogramSample,
  NumberFamily,
} from './family.ts';

export type Format = 'prometheus' | 'openmetrics';

export const contentTypes: { readonly [F in Format]: string } = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** By the quality values of an `accept` header; OpenMetrics only where it is asked for by name. */
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
  const lines = heading(family, format);
  if (family.type === 'histogram') addHistograms(lines, family, format);
  else addNumbers(lines, family);
  return `${lines.join('\n')}\n`;
}

/** What ends a scrape. */
export function endText(format: Format): string {
  return format === 'openmetrics' ? '# EOF\n' : '';
}

function heading({ name, help, type, unit }: Family, format: Format): string[] {
  const open = format === 'openmetrics';
  const told = !open && type === 'counter' ? `${name}_total` : name;
  return [
    `# HELP ${told} ${help}`,
    `# TYPE ${told} ${type}`,
    ...(open && unit !== undefined ? [`# UNIT ${told} ${unit}`] : []),
  ];
}

function addNumbers(lines: string[], { name, type, samples }: NumberFamily): void {
  const told = type === 'counter' ? `${name}_total` : name;
  for (const { labels, value } of samples) {
    lines.push(labels === '' ? `${told} ${value}` : `${told}{${labels}} ${value}`);
  }
}

function addHistograms(lines: string[], family: HistogramFamily, format: Format): void {
  for (const sample of family.samples) addHistogram(lines, { name: family.name, sample, format });
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
