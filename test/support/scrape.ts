/** What a scraper reads of a gateway, by a parser that is not the gateway's. */
import assert from 'node:assert/strict';
import parse from 'parse-prometheus-text-format';
import { adminToken } from './keys.ts';

export type Labels = { readonly [name: string]: string };

export interface Sample {
  /** With `_total`, `_sum`, `_count` or `_bucket` where it has one. */
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

export class Scrape {
  readonly text: string;
  readonly samples: readonly Sample[];
  readonly names: ReadonlySet<string>;

  constructor(text: string) {
    this.text = text;
    // It forgets the labels of histograms: what it accepts is read again line by line.
    const families = parse(text);
    this.samples = text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map(readSample);
    const counted = families.flatMap(({ metrics }) => metrics.filter(({ value }) => value));
    assert.equal(counted.length, this.samples.filter(({ name }) => !isOfHistogram(name)).length);
    this.names = new Set(this.samples.map(({ name }) => name));
  }

  /** The sum of all samples of this name that have these labels; 0 where there is none. */
  sum(name: string, labels: Labels = {}): number {
    return this.#find(name, labels).reduce((sum, { value }) => sum + value, 0);
  }

  /** The only sample of this name with these labels. */
  one(name: string, labels: Labels = {}): number {
    const found = this.#find(name, labels);
    const [sample] = found;
    if (sample === undefined || found.length > 1) {
      throw new Error(`${found.length} samples of ${name} ${JSON.stringify(labels)}\n${this.text}`);
    }
    return sample.value;
  }

  #find(name: string, labels: Labels): readonly Sample[] {
    const wanted = Object.entries(labels);
    return this.samples.filter(
      (sample) =>
        sample.name === name && wanted.every(([label, value]) => sample.labels[label] === value),
    );
  }
}

const histogramNames = /^(gen_ai_.+|.+_duration_seconds)_(bucket|sum|count)$/;

function isOfHistogram(name: string): boolean {
  return histogramNames.test(name);
}

/** A line as the gateway writes it: no time, labels in quotes. */
function readSample(line: string): Sample {
  const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
  if (value === undefined) throw new Error(`no sample: ${line}`);
  const named = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
    ([, label = '', text = '']) => [label, text.replace(/\\(["\\])/g, '$1')],
  );
  return { name, labels: Object.fromEntries(named), value: Number(value) };
}

/** Scrapes like Prometheus, by default with the admin token. */
export async function scrape(adminUrl: string, token = adminToken): Promise<Scrape> {
  const response = await fetch(`${adminUrl}/metrics`, {
    headers: { authorization: `Bearer ${token}`, accept: 'text/plain;version=0.0.4' },
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status} ${text}`);
  return new Scrape(text);
}

/** Scrapes until it is so; calls are counted behind their answers. */
export async function scrapeUntil(
  adminUrl: string,
  isSo: (scraped: Scrape) => boolean,
): Promise<Scrape> {
  const deadline = performance.now() + 60_000;
  for (;;) {
    const scraped = await scrape(adminUrl);
    if (isSo(scraped)) return scraped;
    if (performance.now() > deadline) throw new Error(`never came:\n${scraped.text}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
