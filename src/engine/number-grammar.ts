/** Grammar rules for numbers between bounds. */
import type { GrammarRules } from './grammar.ts';

/** Bounds of a number; absent = as far as 15 digits go. */
export interface Bounds {
  readonly low?: number;
  readonly high?: number;
}

const most = 999_999_999_999_999;

/** Integers from `low` to `high`, both included; undefined when there is none. */
export function integerRule(
  rules: GrammarRules,
  { low = -most, high = most }: Bounds,
): string | undefined {
  const first = Math.max(-most, Math.ceil(low));
  const last = Math.min(most, Math.floor(high));
  if (first > last) return undefined;
  const parts: string[] = [];
  if (first < 0) parts.push(`"-" (${naturals(Math.max(1, -last), -first)})`);
  if (last >= 0) parts.push(naturals(Math.max(0, first), last));
  return rules.add(parts.join(' | '));
}

/**
 * Numbers between integer bounds, inclusive unless `exclusive` is set; undefined when a bound is not an integer
 * or the range is empty.
 */
export function numberRule(
  rules: GrammarRules,
  { low = -most, high = most }: Bounds,
  exclusive: { readonly low: boolean; readonly high: boolean },
): string | undefined {
  if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high) || low >= high) return undefined;
  const integers = integerRule(rules, {
    low: exclusive.low ? low + 1 : low,
    high: exclusive.high ? high - 1 : high,
  });
  // The numbers strictly between two neighbouring integers; the last digit excludes the lower one.
  const broken = '"." [0-9]{0,14} [1-9]';
  const parts = integers === undefined ? [] : [integers, `(${integers} ".0")`];
  if (high > 0) parts.push(`(${naturals(Math.max(0, low), high - 1)}) ${broken}`);
  if (low < 0) parts.push(`"-" (${naturals(Math.max(0, -high), -low - 1)}) ${broken}`);
  return rules.add(parts.join(' | '));
}

/** Alternatives for the integers from `low` to `high`, neither below zero. */
function naturals(low: number, high: number): string {
  const parts: string[] = [];
  let start = low;
  while (start <= high) {
    const digits = String(start).length;
    const end = Math.min(high, 10 ** digits - 1);
    parts.push(sameLength(String(start), String(end)));
    start = end + 1;
  }
  return parts.join(' | ');
}

function sameLength(low: string, high: string): string {
  if (low === '') return '""';
  const rest = low.length - 1;
  if (/^0*$/.test(low.slice(1)) && /^9*$/.test(high.slice(1))) {
    return `${digit(Number(low[0]), Number(high[0]))}${anyDigits(rest)}`;
  }
  if (low[0] === high[0]) return `"${low[0]}" (${sameLength(low.slice(1), high.slice(1))})`;
  const parts = [`"${low[0]}" (${sameLength(low.slice(1), '9'.repeat(rest))})`];
  const [from, to] = [Number(low[0]) + 1, Number(high[0]) - 1];
  if (from <= to) parts.push(`${digit(from, to)}${anyDigits(rest)}`);
  parts.push(`"${high[0]}" (${sameLength('0'.repeat(rest), high.slice(1))})`);
  return parts.join(' | ');
}

function digit(from: number, to: number): string {
  return from === to ? `"${from}"` : `[${from}-${to}]`;
}

function anyDigits(count: number): string {
  return count === 0 ? '' : ` [0-9]{${count}}`;
}
