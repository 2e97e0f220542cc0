/** `1.2 GB`: sizes of files, in decimal units. */
const units = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

export function bytes(size: number): string {
  let value = size;
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit] ?? ''}`;
}
