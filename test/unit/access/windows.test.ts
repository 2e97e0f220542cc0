/** Calendar windows in time zones. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { test } from 'node:test';
import { isTimeZone, windowAt } from '../../../src/access/windows.ts';
import type { BudgetPeriod } from '../../../src/core/policy.ts';
import { check } from '../../support/checking.ts';

const rows: readonly (readonly [BudgetPeriod, string, string, string, string, string])[] = [
  // period, zone, moment, name, start, end
  [
    'day',
    'UTC',
    '2026-11-21T23:59:59.999Z',
    '2026-11-21',
    '2026-11-21T00:00Z',
    '2026-11-22T00:00Z',
  ],
  ['month', 'UTC', '2028-02-29T12:00Z', '2028-02', '2028-02-01T00:00Z', '2028-03-01T00:00Z'],
  // ISO weeks: the year is that of the Thursday.
  ['week', 'UTC', '2027-01-03T12:00Z', '2026-W53', '2026-12-28T00:00Z', '2027-01-04T00:00Z'],
  ['week', 'UTC', '2024-12-30T00:00Z', '2025-W01', '2024-12-30T00:00Z', '2025-01-06T00:00Z'],
  // 23 and 25 hours.
  [
    'day',
    'Europe/Berlin',
    '2026-03-29T12:00Z',
    '2026-03-29',
    '2026-03-28T23:00Z',
    '2026-03-29T22:00Z',
  ],
  [
    'day',
    'Europe/Berlin',
    '2026-10-25T12:00Z',
    '2026-10-25',
    '2026-10-24T22:00Z',
    '2026-10-25T23:00Z',
  ],
  [
    'month',
    'Europe/Berlin',
    '2026-10-31T22:59Z',
    '2026-10',
    '2026-09-30T22:00Z',
    '2026-10-31T23:00Z',
  ],
  // Midnight is left out.
  [
    'day',
    'Africa/Cairo',
    '2023-04-28T12:00Z',
    '2023-04-28',
    '2023-04-27T22:00Z',
    '2023-04-28T21:00Z',
  ],
  // Midnight comes twice.
  [
    'day',
    'America/Havana',
    '2023-11-05T04:30Z',
    '2023-11-05',
    '2023-11-05T04:00Z',
    '2023-11-06T05:00Z',
  ],
  // At 0:01 clocks go back to 23:01 of the day before, whose window is over.
  [
    'day',
    'America/St_Johns',
    '2010-11-07T02:50Z',
    '2010-11-07',
    '2010-11-07T02:30Z',
    '2010-11-08T03:30Z',
  ],
  // The 30th was left out.
  [
    'day',
    'Pacific/Apia',
    '2011-12-30T09:59Z',
    '2011-12-29',
    '2011-12-29T10:00Z',
    '2011-12-30T10:00Z',
  ],
  [
    'day',
    'Pacific/Apia',
    '2011-12-30T10:00Z',
    '2011-12-31',
    '2011-12-30T10:00Z',
    '2011-12-31T10:00Z',
  ],
  [
    'day',
    'Asia/Kathmandu',
    '2026-01-01T18:14Z',
    '2026-01-01',
    '2025-12-31T18:15Z',
    '2026-01-01T18:15Z',
  ],
];

for (const [per, zone, moment, name, start, end] of rows) {
  test(`K7: the ${per} of ${moment} in ${zone} is ${name}`, () => {
    assert.deepEqual(windowAt(per, zone, Date.parse(moment)), {
      name,
      startsAt: Date.parse(start),
      endsAt: Date.parse(end),
    });
  });
}

test('K7: ever is one window', () => {
  const ever = { name: 'ever', startsAt: undefined, endsAt: undefined };
  assert.deepEqual(windowAt('ever', 'UTC', 0), ever);
});

test('unknown zones are reported', () => {
  assert.equal(isTimeZone('Europe/Berlin'), true);
  assert.equal(isTimeZone('Europe/Atlantis'), false);
  assert.throws(() => windowAt('day', 'Europe/Atlantis', 0), RangeError);
});

const zone = fc.constantFrom(...Intl.supportedValuesOf('timeZone'));
const period = fc.constantFrom('day' as const, 'week' as const, 'month' as const);
const moment = fc.integer({ min: Date.UTC(1990, 0, 1), max: Date.UTC(2037, 11, 31) });

test('K7: windows hold their moment and follow each other without a gap, in every zone', (t) => {
  check(t, fc.record({ zone, period, moment }), ({ zone, period, moment }) => {
    const now = windowAt(period, zone, moment);
    const { startsAt, endsAt } = now;
    assert.ok(startsAt !== undefined && endsAt !== undefined);
    assert.ok(startsAt <= moment && moment < endsAt);
    assert.deepEqual(windowAt(period, zone, startsAt), now);
    assert.deepEqual(windowAt(period, zone, endsAt - 1), now);
    const next = windowAt(period, zone, endsAt);
    const before = windowAt(period, zone, startsAt - 1);
    assert.equal(next.startsAt, endsAt);
    assert.equal(before.endsAt, startsAt);
    assert.ok(before.name < now.name && now.name < next.name);
  });
});

test('K7: a month is the days of its name, a week seven of them from Monday', (t) => {
  check(t, fc.record({ zone, moment }), ({ zone, moment }) => {
    const month = windowAt('month', zone, moment);
    const week = windowAt('week', zone, moment);
    const day = windowAt('day', zone, moment);
    assert.equal(day.name.slice(0, 7), month.name);
    const monday = windowAt('day', zone, week.startsAt ?? 0);
    // Where a Monday was left out the week begins with its Tuesday.
    assert.ok([1, 2].includes(new Date(`${monday.name}T00:00Z`).getUTCDay()));
    assert.equal(windowAt('day', zone, month.startsAt ?? 0).startsAt, month.startsAt);
  });
});
