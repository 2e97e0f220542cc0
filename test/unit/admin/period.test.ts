import assert from 'node:assert/strict';
import { it } from 'node:test';
import { readDate, readSpan } from '../../../src/admin/route.ts';

it('reads spans', () => {
  assert.equal(readSpan('90m'), 5_400_000);
  assert.equal(readSpan('24h'), 86_400_000);
  assert.equal(readSpan('30d'), 2_592_000_000);
  assert.equal(readSpan('2w'), 1_209_600_000);
  for (const text of ['', '0d', '30', 'd', '-1d', '1.5h', '1y', '1D', ' 1d', '9999999w', '1d2h']) {
    assert.equal(readSpan(text), undefined, text);
  }
});

it('reads dates, a bare one as midnight UTC', () => {
  assert.equal(readDate('2026-03-01'), Date.UTC(2026, 2, 1));
  assert.equal(readDate('2026-03-01T12:30Z'), Date.UTC(2026, 2, 1, 12, 30));
  assert.equal(readDate('2026-03-01T12:30:00+02:00'), Date.UTC(2026, 2, 1, 10, 30));
  for (const text of ['', '2026', '2026-13-01', '2026-03-01T12:30', '01.03.2026', 'now', '0']) {
    assert.equal(readDate(text), undefined, text);
  }
});

it('a day that the calendar does not have is no date', () => {
  const texts = [
    '2026-02-31',
    '2026-02-29',
    '2026-04-31T12:00Z',
    '2026-01-00',
    '2026-01-01T24:00Z',
  ];
  for (const text of texts) assert.equal(readDate(text), undefined, text);
  assert.equal(readDate('2028-02-29'), Date.UTC(2028, 1, 29));
});
