/** Points in time as people give them to the admin API: a span (`7d`) or a date. */

const unitMs: ReadonlyMap<string, number> = new Map([
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
]);

/** Ten years: longer is a slip of the hand, and far beyond it dates end. */
const maxSpanMs = 3660 * 86_400_000;

const spanForm = /^(\d{1,7})([mhdw])$/;
const dateForm = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

export const spanHint = 'give a span such as 90m, 24h, 30d or 2w';
export const dateHint = 'a date such as 2026-01-31 or 2026-01-31T12:00:00Z';

/** Milliseconds of `90m`, `24h`, `30d`, `2w`; undefined for anything else, zero, or over ten years. */
export function readSpan(text: string): number | undefined {
  const [, amount, unit] = spanForm.exec(text) ?? [];
  const ms = Number(amount) * (unitMs.get(unit ?? '') ?? Number.NaN);
  return ms > 0 && ms <= maxSpanMs ? ms : undefined;
}

/** Ms since the epoch of an ISO 8601 date (midnight UTC) or time with a zone. */
export function readDate(text: string): number | undefined {
  if (!dateForm.test(text) || !isDay(text.slice(0, 10)) || text.includes('T24')) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

/** `Date.parse` takes the 31st of February for a day in March. */
function isDay(text: string): boolean {
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && dateText(ms).startsWith(text);
}

/** A time as the API writes it. */
export function dateText(ms: number): string {
  return new Date(ms).toISOString();
}
