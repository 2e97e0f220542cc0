/** Durations and sizes as people write them. */

const durationUnits: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
]);

const sizeUnits: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['KB', 1000],
  ['MB', 1000 ** 2],
  ['GB', 1000 ** 3],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
  ['TiB', 1024 ** 4],
]);

export const durationPattern = '^\\d+(\\.\\d+)?(ms|s|m|h)$';
export const sizePattern = '^\\d+(\\.\\d+)?(B|KB|MB|GB|KiB|MiB|GiB|TiB)$';
const durationForm = new RegExp(durationPattern);
const sizeForm = new RegExp(sizePattern);

/** Milliseconds of `500ms`, `2s`, `30m`, `1h`; undefined when the text is none of them. */
export function readDuration(text: string): number | undefined {
  return read(text, durationForm, durationUnits);
}

/** Bytes of `32MiB`, `10MB`, `512KiB`; undefined when the text is none of them. */
export function readSize(text: string): number | undefined {
  return read(text, sizeForm, sizeUnits);
}

function read(text: string, form: RegExp, units: ReadonlyMap<string, number>): number | undefined {
  if (!form.test(text)) return undefined;
  const unit = units.get(text.replace(/^[\d.]+/, ''));
  const value = Math.round(Number.parseFloat(text) * (unit ?? Number.NaN));
  return Number.isSafeInteger(value) ? value : undefined;
}

const spanUnits: ReadonlyMap<string, number> = new Map([
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
]);

export const spanPattern = '^(\\d{1,5}(h|d|w)|forever)$';
const spanForm = new RegExp(spanPattern);

/** Milliseconds of `36h`, `90d`, `26w`; Infinity of `forever`; undefined when the text is none of them. */
export function readSpan(text: string): number | undefined {
  if (text === 'forever') return Number.POSITIVE_INFINITY;
  return read(text, spanForm, spanUnits);
}

/** `90d`, `36h`, `forever`. */
export function spanText(ms: number): string {
  if (ms === Number.POSITIVE_INFINITY) return 'forever';
  return ms % 86_400_000 === 0 ? `${ms / 86_400_000}d` : `${ms / 3_600_000}h`;
}

/** The shortest exact spelling: 90000 is `90s`, 1800000 is `30m`. */
export function durationText(ms: number): string {
  return ms === 0 ? '0s' : spell(ms, ['h', 'm', 's', 'ms'], durationUnits);
}

/** The shortest exact spelling: 33554432 is `32MiB`. */
export function sizeText(bytes: number): string {
  return spell(bytes, ['TiB', 'GiB', 'GB', 'MiB', 'MB', 'KiB', 'KB', 'B'], sizeUnits);
}

function spell(
  value: number,
  names: readonly string[],
  units: ReadonlyMap<string, number>,
): string {
  const name = names.find((each) => value > 0 && value % (units.get(each) ?? Infinity) === 0);
  return name === undefined ? String(value) : `${value / (units.get(name) ?? 1)}${name}`;
}
