/** Metrics of several processes as those of one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  countedFamilies,
  type Family,
  Histogram,
  type NumberFamily,
  sumFamilies,
} from '../../../src/observe/metrics/family.ts';

function numbers(name: string, value: number, more: Partial<NumberFamily> = {}): NumberFamily {
  return { name, type: 'gauge', help: 'h', samples: [{ labels: 'a="b"', value }], ...more };
}

function histogram(...values: readonly number[]): Family {
  const data = new Histogram([1, 2]);
  for (const [i, value] of values.entries()) data.observeAs(`call_${value}`, value, i);
  return { name: 'h', type: 'histogram', help: 'h', samples: [{ labels: '', data }] };
}

test('counters and gauges are summed by labels, or the largest or smallest counts', () => {
  const one = [
    numbers('c', 1, { type: 'counter' }),
    numbers('most', 1, { across: 'max' }),
    numbers('ready', 1, { across: 'min' }),
  ];
  const other = [
    numbers('c', 2, { type: 'counter' }),
    numbers('most', 3, { across: 'max' }),
    numbers('ready', 0, { across: 'min' }),
    numbers('own', 7, { samples: [{ labels: '', value: 7 }] }),
  ];
  const sums = sumFamilies([one, other]).map(({ name, samples }) => [name, samples]);
  assert.deepEqual(sums, [
    ['c', [{ labels: 'a="b"', value: 3 }]],
    ['most', [{ labels: 'a="b"', value: 3 }]],
    ['ready', [{ labels: 'a="b"', value: 0 }]],
    ['own', [{ labels: '', value: 7 }]],
  ]);
  assert.deepEqual(
    countedFamilies([...one, histogram(1)]).map(({ name }) => name),
    ['c', 'h'],
  );
});

test('histograms are summed by bucket, with the latest exemplar of each', () => {
  const [sum] = sumFamilies([[histogram(0.5, 1.5)], [histogram(9, 9, 1.7)]]);
  assert.ok(sum?.type === 'histogram');
  const data = sum.samples[0]?.data;
  assert.deepEqual([...(data?.counts ?? [])], [1, 2, 2]);
  assert.equal(data?.sum, 0.5 + 1.5 + 9 + 9 + 1.7);
  assert.deepEqual(data?.exemplars?.ids, ['call_0.5', 'call_1.7', 'call_9']);
});
