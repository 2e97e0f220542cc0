/** Counts as people read them: exact with separators in tables, short on axes. */
import { unknown } from './money.ts';

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });
const share = new Intl.NumberFormat('en-US', {
  style: 'percent',
  maximumFractionDigits: 2,
  maximumSignificantDigits: 3,
  roundingPriority: 'lessPrecision',
});

/** `1,234,567`: every token counts. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? unknown : whole.format(value);
}

/** `1.2M`: for axes and other places without room. */
export function shortCount(value: number): string {
  return short.format(value);
}

const two = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 2 });

/** Tokens a second: two digits below 100, else whole. */
export function speed(tokens: number | null | undefined): string {
  if (tokens === null || tokens === undefined) return unknown;
  return tokens < 100 ? two.format(tokens) : whole.format(tokens);
}

/** `0.25%`, `12.5%` of a part in a whole; a dash of nothing. */
export function percent(part: number, of: number): string {
  return of === 0 ? unknown : share.format(part / of);
}
