/** Sizes and numbers as people read them. */

/** `1.6 GB`: as shops and file managers count, three digits at most. */
export function bytesText(bytes: number): string {
  return scaled(bytes, ['B', 'kB', 'MB', 'GB', 'TB'], ' ');
}

/** `1.48M`, `7.62B`: as model names spell parameters. */
export function countText(count: number): string {
  return scaled(count, ['', 'K', 'M', 'B', 'T'], '');
}

function scaled(amount: number, units: readonly string[], gap: string): string {
  let value = amount;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.5 ? 0 : value >= 9.95 ? 1 : 2;
  return `${value.toFixed(digits)}${gap}${units[unit] ?? ''}`;
}
