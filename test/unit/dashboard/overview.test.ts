import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitName } from '../../../dashboard/src/api/errors.ts';
import { periodBefore, periodOf } from '../../../dashboard/src/api/period.ts';
import { roughMoney } from '../../../dashboard/src/format/money.ts';

test('issue 24 sums at a glance have two significant digits, or whole dollars', () => {
  const amounts = [null, 0, 0.132_632, 0.000_31, 1.5, 9.99, 25.54, 412.4, 12_345, 2_500_000];
  const texts = ['–', '$0', '$0.13', '$0.00031', '$1.5', '$10', '$26', '$412', '$12K', '$2.5M'];
  assert.deepEqual(amounts.map(roughMoney), texts);
});

test('issue 24 the period before is as long as the period, and ends where it begins', () => {
  const now = Date.parse('2026-11-27T12:00:00Z');
  assert.deepEqual(periodBefore(periodOf({}), now), { since: '48h', until: '24h' });
  assert.deepEqual(periodBefore(periodOf({ range: '7d' }), now), { since: '14d', until: '7d' });
  const dates = { since: '2026-11-26T00:00:00Z', until: '2026-11-26T06:00:00Z' };
  assert.deepEqual(periodBefore(periodOf(dates), now), {
    since: '2026-11-25T18:00:00.000Z',
    until: '2026-11-26T00:00:00.000Z',
  });
  assert.deepEqual(periodBefore(periodOf({ since: '2026-11-27T00:00:00Z' }), now), {
    since: '2026-11-26T12:00:00.000Z',
    until: '2026-11-27T00:00:00.000Z',
  });
  assert.equal(periodBefore(periodOf({ since: 'no date' }), now), undefined);
});

test('A4 a limit is named in words, also of a tag with colons and of certain models', () => {
  const kinds = ['key:a1:requests', 'team:red:month', 'tag:a:b:day', 'key:a1:tokens:openai/*'];
  assert.deepEqual(
    kinds.map((limit) => {
      const { holder, name, kind } = limitName(limit) ?? {};
      return [holder, name, kind];
    }),
    [
      ['key', 'a1', 'request limit'],
      ['team', 'red', 'monthly budget'],
      ['tag', 'a:b', 'daily budget'],
      ['key', 'a1', 'token limit for openai/*'],
    ],
  );
  assert.equal(limitName('nothing'), undefined);
});
