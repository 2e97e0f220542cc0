/**
 * Amounts of money as people write them, and as they are counted: integers, no float on the way.
 * Rates are picodollars (10^-12 $), amounts nanodollars (10^-9 $).
 */

/** A decimal number times a power of ten. */
export interface Scaled {
  /** Rounded half up. */
  readonly units: number;
  /** Whether nothing had to be rounded. */
  readonly exact: boolean;
}

const decimal = /^(\d+)(?:\.(\d+))?(?:e([+-]?\d{1,3}))?$/;

/**
 * The decimal number of a text (`0.25`, `12`, `1e-7`) times 10^places. Undefined when it is none, is
 * negative, or the result is beyond 2^53 - 1.
 */
export function scaledDecimal(text: string, places: number): Scaled | undefined {
  const match = decimal.exec(text);
  if (match === null) return undefined;
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const shift = places + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  if (shift >= 0) return safe(digits * 10n ** BigInt(shift), true);
  const divisor = 10n ** BigInt(-shift);
  const rest = digits % divisor;
  return safe(digits / divisor + (rest * 2n >= divisor ? 1n : 0n), rest === 0n);
}

function safe(units: bigint, exact: boolean): Scaled | undefined {
  return units > BigInt(Number.MAX_SAFE_INTEGER) ? undefined : { units: Number(units), exact };
}

/** Whether a decimal number is more than nothing and less than one unit of 10^-places. */
export function isBelowUnit(text: string, places: number): boolean {
  const value = decimal.test(text) ? Number(text) : 0;
  return value > 0 && value < Number(`1e-${places}`);
}

/**
 * Dollars as a person writes them (`1`, `1.50`, `$0.000001`) in nanodollars. Undefined when the text is
 * no such amount: nine decimals at most, nine million dollars at most.
 */
export function parseDollars(text: string): number | undefined {
  const amount = /^\$?(\d+(?:\.\d+)?)$/.exec(text.trim())?.[1];
  const read = amount === undefined ? undefined : scaledDecimal(amount, 9);
  return read?.exact === true ? read.units : undefined;
}

/** Nanodollars in dollars, every digit that counts and no other: `1.5`, `0.0000123`, `0`. */
export function dollarsText(nanodollars: number): string {
  return decimalText(nanodollars, 9);
}

/**
 * Nanodollars in dollars as a number of JSON. It is the nearest to the exact decimal, so that it prints
 * as that decimal does (up to four million dollars); never add such numbers.
 */
export function dollarsNumber(nanodollars: number): number {
  // Both are exact, and the quotient of two exact numbers is rounded once: as reading the decimal would.
  return nanodollars / 1e9;
}

/** Picodollars a token in dollars per million tokens: `0.075`. */
export function ratePerMillion(picodollars: number): string {
  return decimalText(picodollars, 6);
}

/** An integer divided by 10^places, exactly. */
export function decimalText(units: number, places: number): string {
  const digits = String(Math.abs(units)).padStart(places + 1, '0');
  const whole = digits.slice(0, -places);
  const fraction = digits.slice(-places).replace(/0+$/, '');
  return `${units < 0 ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}
