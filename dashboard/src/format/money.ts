/** Amounts as people read them. Unknown is a dash, never a zero. */

export const unknown = '–';

const cents = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
});

const small = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 6,
});

const tiny = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  minimumFractionDigits: 2,
  maximumFractionDigits: 9,
});

const exact = tiny;

/** `$12.34`, `$0.0042`, `$0.000000120`; a call costs parts of a cent, so small amounts keep their digits. */
export function money(dollars: number | null | undefined): string {
  if (dollars === null || dollars === undefined) return unknown;
  const size = Math.abs(dollars);
  if (size === 0 || size >= 10) return cents.format(dollars);
  return size >= 0.000_1 ? small.format(dollars) : tiny.format(dollars);
}

const rough = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  notation: 'compact',
  minimumSignificantDigits: 2,
  maximumSignificantDigits: 2,
});

const tick = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  notation: 'compact',
  maximumSignificantDigits: 2,
});

const wholeDollars = new Intl.NumberFormat('en-US', {
  style: 'currency',
  currency: 'USD',
  maximumFractionDigits: 0,
});

/**
 * Two significant digits; no decimals for whole dollars and from 10 to 10,000: `$0.80`, `$5`, `$26`, `$412`, `$12K`; for
 * sums at a glance.
 */
export function roughMoney(dollars: number | null | undefined): string {
  if (dollars === null || dollars === undefined) return unknown;
  const size = Math.abs(dollars);
  const isWhole = size < 10 ? Number.isInteger(size) : size < 10_000;
  return (isWhole ? wholeDollars : rough).format(dollars);
}

/** `$0.5`, `$1`: for axes, where ticks are round. */
export function tickMoney(dollars: number): string {
  return tick.format(dollars);
}

/** All digits that the gateway stores (nanodollars), for a title. */
export function exactMoney(dollars: number | null | undefined): string {
  return dollars === null || dollars === undefined ? 'the price is unknown' : exact.format(dollars);
}
