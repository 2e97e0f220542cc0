import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRetryAfterMs } from '../../../src/wire/upstream-error.ts';

const now = Date.parse('2026-11-21T00:00:00Z');

test('F16: every form of retry-after is read or ignored', () => {
  const cases: readonly (readonly [Record<string, string>, number | undefined])[] = [
    [{ 'retry-after': '17' }, 17_000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': '86400' }, 86_400_000],
    [{ 'retry-after-ms': '1500', 'retry-after': '17' }, 1500],
    [{ 'retry-after': 'Sat, 21 Nov 2026 00:00:10 GMT' }, 10_000],
    [{ 'retry-after': 'Fri, 20 Nov 2026 00:00:10 GMT' }, undefined],
    [{ 'retry-after': '-3' }, undefined],
    [{ 'retry-after': 'abc' }, undefined],
    [{}, undefined],
  ];
  for (const [headers, expected] of cases) assert.equal(readRetryAfterMs(headers, now), expected);
});
