/**
 * What a scrape reads: families of samples, plain data that can be sent to another process and summed
 * there (`labels` tells series apart). How they are written is exposition.ts's.
 */
import type { HistogramData } from './histogram.ts';

/** A number by its labels. */
export interface NumberSample {
  /** As `labelText` writes it; '' = none. */
  readonly labels: string;
  readonly value: number;
}

export interface HistogramSample {
  readonly labels: string;
  readonly data: HistogramData;
}

interface FamilyHead {
  /** Ends in the unit where there is one; a counter's without `_total`. */
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** `seconds`, `bytes`, `ratio`, `dollars`; absent = a count. */
  readonly unit?: string;
}

export interface NumberFamily extends FamilyHead {
  readonly type: 'counter' | 'gauge';
  /** What several processes of one gateway make of their gauges; absent = the sum. */
  readonly across?: 'max' | 'min';
  readonly samples: readonly NumberSample[];
}

export interface HistogramFamily extends FamilyHead {
  readonly type: 'histogram';
  readonly samples: readonly HistogramSample[];
}

export type Family = NumberFamily | HistogramFamily;

/** Nothing that a terminal, a log or a page may obey reaches a label (B49, B65). */
const obeyed = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const oneObeyed = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** Whether a label holds this name as it is: two names that are not plain can look the same. */
export function isPlain(name: string): boolean {
  return !oneObeyed.test(name);
}

/** Written with a backslash, in both formats. */
const special = /[\\"]/g;

/** The text of labels in the order given; values may be anything. */
export function labelText(labels: { readonly [name: string]: string }): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',');
}

function escaped(value: string): string {
  return value.replace(obeyed, '\ufffd').replace(special, String.raw`\$&`);
}

/** One sample without labels. */
export function single(value: number): readonly NumberSample[] {
  return [{ labels: '', value }];
}
