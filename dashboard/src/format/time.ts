/** Points and spans of time as people read them: their own zone, and words for what is near. */
import { unknown } from './money.ts';

const secondMs = 1_000;
const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;

const day = new Intl.DateTimeFormat('en-GB', { day: '2-digit', month: 'short' });
const dayAndYear = new Intl.DateTimeFormat('en-GB', {
  day: '2-digit',
  month: 'short',
  year: 'numeric',
});
const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});
const full = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  timeZoneName: 'short',
});

/** `21 Nov 14:03:22`, without the day when it is today. */
export function moment(iso: string, now: number = Date.now()): string {
  const at = new Date(iso);
  const today = new Date(now);
  if (at.toDateString() === today.toDateString()) return clock.format(at);
  const isThisYear = at.getFullYear() === today.getFullYear();
  return `${(isThisYear ? day : dayAndYear).format(at)} ${clock.format(at)}`;
}

/** With zone and milliseconds, for titles and details. */
export function fullMoment(iso: string): string {
  return full.format(new Date(iso));
}

const minutely = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: 'short',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  timeZoneName: 'short',
});

/** `21 Nov 2026, 14:03 UTC`: for periods, where seconds say nothing. */
export function minute(at: string | number): string {
  return minutely.format(new Date(at));
}

/** `21 Nov 2026`. */
export function date(iso: string): string {
  return dayAndYear.format(new Date(iso));
}

/** `412 ms`, `3.21 s`, `17.3 s`, `2 min 5 s`. */
export function span(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return unknown;
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < secondMs) return `${Math.round(ms)} ms`;
  if (ms < minuteMs) return `${(ms / secondMs).toFixed(ms < 10 * secondMs ? 2 : 1)} s`;
  if (ms < hourMs) {
    const seconds = Math.round(ms / secondMs);
    return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  }
  const minutes = Math.round(ms / minuteMs);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `0`, `250 ms`, `20 s`, `1.5 min`: for axes, where ticks are round. */
export function shortSpan(ms: number): string {
  if (ms === 0) return '0';
  if (ms < secondMs) return `${shortNumber(ms)} ms`;
  if (ms < minuteMs) return `${shortNumber(ms / secondMs)} s`;
  return ms < hourMs ? `${shortNumber(ms / minuteMs)} min` : `${shortNumber(ms / hourMs)} h`;
}

/** At most two digits behind the point. */
function shortNumber(value: number): number {
  return Number(value.toFixed(2));
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const units = [
  ['day', dayMs],
  ['hour', hourMs],
  ['minute', minuteMs],
  ['second', secondMs],
] as const;

/** `3 minutes ago`, `in 2 days`. */
export function ago(iso: string, now: number = Date.now()): string {
  const away = Date.parse(iso) - now;
  const [unit, size] = units.find(([, ms]) => Math.abs(away) >= ms) ?? ['second', secondMs];
  return relative.format(Math.round(away / size), unit);
}
