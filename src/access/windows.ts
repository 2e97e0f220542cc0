/**
 * Calendar windows of budgets: days, ISO weeks (from Monday) and months, as they begin in a time zone. The
 * current window is cached, so that a call compares two numbers and does not use `Intl`.
 */
import type { BudgetPeriod } from '../core/policy.ts';

export interface Window {
  /** `2026-11-21`, `2026-W47`, `2026-11`, `ever`; within one period, later windows have greater names. */
  readonly name: string;
  /** Ms since the epoch; undefined for `ever`. */
  readonly startsAt: number | undefined;
  /** Ms since the epoch, exclusive end; undefined for `ever`. */
  readonly endsAt: number | undefined;
}

type Calendar = Exclude<BudgetPeriod, 'ever'>;

interface CalendarWindow extends Window {
  readonly startsAt: number;
  readonly endsAt: number;
}

interface Zone {
  readonly format: Intl.DateTimeFormat;
  readonly current: { [P in Calendar]?: CalendarWindow };
}

const dayMs = 86_400_000;
const ever: Window = { name: 'ever', startsAt: undefined, endsAt: undefined };
/** One entry per configured time zone; settings allow only real zones. */
const zones = new Map<string, Zone>();

/** Whether `Intl` knows the zone. */
export function isTimeZone(name: string): boolean {
  try {
    zoneOf(name);
    return true;
  } catch {
    return false;
  }
}

/**
 * The window of that period that contains the moment. Windows follow each other without gaps, also across
 * daylight-saving changes at midnight and in zones that skipped a day.
 * @throws RangeError when the zone does not exist.
 */
export function windowAt(per: BudgetPeriod, timeZone: string, wall: number): Window {
  if (per === 'ever') return ever;
  const zone = zones.get(timeZone) ?? zoneOf(timeZone);
  const current = zone.current[per];
  if (current !== undefined && current.startsAt <= wall && wall < current.endsAt) return current;
  const found = findWindow(per, zone.format, wall);
  zone.current[per] = found;
  return found;
}

/** Two time zones are at most this far apart: UTC+14 and UTC-12. */
const zonesApartMs = 26 * 3_600_000;

/**
 * Windows that ended by then are over in every time zone. The time zone of a budget may have been changed since its
 * window was stored, and the window of the same name ends later then.
 */
export function overEverywhere(now: number): number {
  return now - zonesApartMs;
}

function zoneOf(timeZone: string): Zone {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  const zone: Zone = { format, current: {} };
  zones.set(timeZone, zone);
  return zone;
}

/** Dates are days since 1970-01-01, without a zone. */
function findWindow(per: Calendar, format: Intl.DateTimeFormat, wall: number): CalendarWindow {
  let first = firstDay(per, dayOf(format, wall));
  // A clock that is set back across midnight shows the previous day again, whose window is over nevertheless.
  for (;;) {
    const next = nextFirstDay(per, first);
    const endsAt = startOfDay(format, next);
    if (wall < endsAt) {
      return { name: nameOf(per, first), startsAt: startOfDay(format, first), endsAt };
    }
    first = next;
  }
}

function firstDay(per: Calendar, day: number): number {
  if (per === 'day') return day;
  if (per === 'week') return day - weekday(day);
  const date = new Date(day * dayMs);
  return day - date.getUTCDate() + 1;
}

function nextFirstDay(per: Calendar, first: number): number {
  if (per === 'day') return first + 1;
  if (per === 'week') return first + 7;
  return firstDay('month', first + 31);
}

/** 0 is Monday; 1970-01-01 was a Thursday. */
function weekday(day: number): number {
  return (((day + 3) % 7) + 7) % 7;
}

function nameOf(per: Calendar, first: number): string {
  if (per === 'week') return weekName(first);
  const text = new Date(first * dayMs).toISOString();
  return text.slice(0, per === 'day' ? 10 : 7);
}

/** ISO 8601: a week belongs to the year that contains its Thursday. */
function weekName(monday: number): string {
  const year = new Date((monday + 3) * dayMs).getUTCFullYear();
  const newYear = Math.floor(Date.UTC(year, 0, 1) / dayMs);
  const week = Math.floor((monday + 3 - newYear) / 7) + 1;
  return `${String(year).padStart(4, '0')}-W${String(week).padStart(2, '0')}`;
}

/** The first moment at which the zone's local date is that day or a later one. */
function startOfDay(format: Intl.DateTimeFormat, day: number): number {
  const midnight = day * dayMs;
  const reached = (at: number): boolean => dayOf(format, at) >= day;
  const before = midnight - offset(format, midnight - dayMs);
  const after = midnight - offset(format, midnight + dayMs);
  for (const at of [Math.min(before, after), Math.max(before, after)]) {
    if (reached(at) && !reached(at - 1)) return at;
  }
  // Midnight was skipped by a change that began before it.
  let low = Math.min(before, after) - dayMs;
  let high = Math.max(before, after) + dayMs;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (reached(middle)) high = middle;
    else low = middle;
  }
  return high;
}

function dayOf(format: Intl.DateTimeFormat, at: number): number {
  return Math.floor(localTime(format, at) / dayMs);
}

/** Offset of the zone from UTC, in ms. */
function offset(format: Intl.DateTimeFormat, at: number): number {
  return localTime(format, at) - Math.floor(at / 1000) * 1000;
}

/** The zone's local time, to the second, as if it were UTC. */
function localTime(format: Intl.DateTimeFormat, at: number): number {
  const shown: { [type: string]: number } = {};
  for (const part of format.formatToParts(at)) shown[part.type] = Number(part.value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = shown;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
