/** What is made of measurements: which figures stand in the results, and what they are warned of. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { doubts, Results } from '../../../bench/analysis.ts';
import { barChart } from '../../../bench/bar-chart.ts';
import { budgetLines } from '../../../bench/budget-table.ts';
import { delayTable } from '../../../bench/figure-tables.ts';
import {
  leftOutOf,
  merge,
  readMeasurements,
  writeMeasurements,
  type Measurements,
  type Run,
} from '../../../bench/saved-measurements.ts';
import { failedMeasurement, type Sample } from '../../../bench/measure.ts';
import { plotsOf } from '../../../bench/plots.ts';
import type { Measurement } from '../../../bench/protocol.ts';
import { calmRate, workloads } from '../../../bench/workloads.ts';
import { temporaryFolder } from '../../support/folders.ts';

/** 1,000 requests in a second, of so many µs each. */
function measurement(cpuUs: number, more: Partial<Measurement> = {}): Measurement {
  return {
    wallMs: 1000,
    requests: 1000,
    chunks: 0,
    reads: 0,
    subjectUs: cpuUs * 1000,
    loadUs: 0,
    mockUs: 0,
    foreignUs: 0,
    stealUs: 0,
    failures: 0,
    reasons: [],
    ...more,
  };
}

function sample(workload: string, subject: string, what: Measurement, round = 1): Sample {
  return { round, workload, subject, measurement: what };
}

function only(...ids: string[]): typeof workloads {
  return workloads.filter(({ id }) => ids.includes(id));
}

const rate = only('unary-1k-rate');

test('issue 7.1: others stand beside the gateway, each by its ratio to nginx in the same round', () => {
  const results = new Results([
    sample('unary-1k-rate', 'nginx', measurement(20)),
    sample('unary-1k-rate', 'gateway', measurement(60)),
    sample('unary-1k-rate', 'Peer', measurement(800)),
    sample('unary-1k-rate', 'nginx', measurement(40), 2),
    sample('unary-1k-rate', 'gateway', measurement(200), 2),
    sample('unary-1k-rate', 'Peer', measurement(800), 2),
  ]);
  const [head, , row] = budgetLines({ workloads: rate, results }, []);
  assert.match(head ?? '', /\| must reached \| Peer \|$/);
  assert.match(row ?? '', /\| ≤ 4 × \| ≤ 2\.5 × \| 4\.00 × \(3\.00–5\.00\) \| yes \| 30\.00 × /);
});

test('issue 7.1: a subject whose measurement failed has no figure, and says why', () => {
  const results = new Results([
    sample('unary-1k-rate', 'nginx', measurement(20)),
    sample('unary-1k-rate', 'gateway', failedMeasurement('refused')),
  ]);
  const [, , row] = budgetLines({ workloads: rate, results }, []);
  assert.match(row ?? '', /\| no result \| – \|$/);
  assert.deepEqual(
    results.failed().map(({ measurement: { reasons } }) => reasons),
    [['refused']],
  );
});

test('issue 7.1: bad setups are reported: a busy core, a mock that is the limit, a rate that is not kept', () => {
  const results = new Results([
    sample('unary-1k', 'direct', measurement(0, { requests: 1200 })),
    sample('unary-1k', 'nginx', measurement(20, { foreignUs: 150_000 })),
    sample('unary-1k-rate', 'nginx', measurement(20, { stealUs: 30_000, requests: calmRate / 2 })),
  ]);
  const told = doubts(results, only('unary-1k', 'unary-1k-rate'), 200).join('\n');
  assert.match(told, /other processes used more than 10 % of a core in 1 of 3 .*at most 15 %/);
  assert.match(told, /the hypervisor took more than 2 % of a core in 1 of 3/);
  assert.match(told, /load and mock alone reach only 1\.2 times the rate of nginx/);
  assert.ok(told.includes(`nginx answered ${calmRate / 2} of ${calmRate} requests a second`), told);
  const fine = new Results([
    sample('unary-1k', 'direct', measurement(0, { requests: 3000 })),
    sample('unary-1k', 'nginx', measurement(20)),
    sample('unary-1k-rate', 'nginx', measurement(20, { requests: calmRate })),
  ]);
  assert.deepEqual(doubts(fine, only('unary-1k', 'unary-1k-rate'), 200), []);
});

test('issue 7.1: delays are what is added to the direct way of the same round', () => {
  const times = (p50Ms: number): Measurement =>
    measurement(0, { p50Ms, p99Ms: 2 * p50Ms, chunkP50Ms: p50Ms / 2, chunkP99Ms: p50Ms });
  const results = new Results([
    sample('delay-relay-chat', 'direct', times(1)),
    sample('delay-relay-chat', 'gateway', times(1.5)),
  ]);
  const lines = delayTable({ workloads: only('delay-relay-chat'), results });
  assert.match(
    lines.at(-2) ?? '',
    /direct \(absolute\) \| 1\.00 ms \| 2\.00 ms \| 0\.50 ms \| 1\.00 ms/,
  );
  assert.match(lines.at(-1) ?? '', /gateway \| 0\.50 ms \| 1\.00 ms \| 0\.25 ms \| 0\.50 ms/);
});

function run(measured: string[], more: Partial<Run> = {}): Run {
  const machine = { machine: 'm', commit: 'c', method: 'as ever', warnings: [] };
  return {
    command: 'bench',
    date: '2026-01-01',
    ...machine,
    subjects: [],
    missing: [],
    measured,
    ...more,
  };
}

test('issue 7.1: a run of a few workloads takes the place of those only', () => {
  const folder = temporaryFolder('measurements');
  const file = join(folder, 'measurements.json');
  const first = merge(readMeasurements(file), run(['unary-1k', 'unary-100k', 'start']), {
    samples: [
      sample('unary-1k', 'nginx', measurement(20)),
      sample('unary-100k', 'nginx', measurement(70)),
    ],
    starts: [{ model: 'm', times: { seconds: [0.5] } }],
    engines: [],
  });
  writeMeasurements(file, first);
  assert.deepEqual(readMeasurements(file), first);
  const second: Measurements = merge(readMeasurements(file), run(['unary-1k']), {
    samples: [sample('unary-1k', 'nginx', measurement(21))],
    starts: [],
    engines: [],
  });
  const cpu = second.samples.map((each) => [each.workload, each.measurement.subjectUs]);
  assert.deepEqual(cpu, [
    ['unary-100k', 70_000],
    ['unary-1k', 21_000],
  ]);
  assert.deepEqual(
    second.runs.map(({ measured }) => measured),
    [['unary-1k'], ['unary-100k', 'start']],
  );
  assert.deepEqual(second.starts, first.starts);
  const third = merge(second, run(['unary-100k', 'start']), {
    samples: [],
    starts: [],
    engines: [],
  });
  assert.equal(third.runs.length, 2, 'a run of which nothing is left is gone');
});

test('issue 7.1: what one run could not measure and another did is not listed as omitted', () => {
  const missing = [
    { name: 'Peer', why: 'not asked for' },
    { name: 'Other', why: 'no other on the PATH' },
  ];
  const all = {
    runs: [run(['unary-1k']), run(['unary-100k'], { missing })],
    samples: [sample('unary-1k', 'Peer', measurement(800))],
    starts: [],
    engines: [],
  };
  assert.deepEqual(leftOutOf(all), ['Other (no other on the PATH)']);
});

test('issue 7.1: a chart has a bar for each figure, as long as the scale says, and no markup of names', () => {
  const bars = [
    { label: 'a < b', value: 10 },
    { label: 'c', value: 100, min: 90, max: 1000 },
  ];
  const chart = { title: 'CPU & co', unit: 'µs', groups: [{ label: 'g', bars }] } as const;
  const widths = (svg: string): number[] =>
    [...svg.matchAll(/<rect [^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
  const logarithmic = barChart({ ...chart, scale: 'logarithmic' });
  const [ten = 0, hundred = 0] = widths(logarithmic);
  assert.ok(Math.abs(hundred - 2 * ten) < 1, `${ten}, ${hundred}: decades are alike`);
  const [little = 0, much = 0] = widths(barChart({ ...chart, scale: 'linear' }));
  assert.ok(Math.abs(much - 10 * little) < 1);
  assert.match(logarithmic, /CPU &amp; co \(µs, logarithmic\)/);
  assert.match(logarithmic, /a &lt; b/);
  assert.throws(() => {
    const none = [{ label: 'g', bars: [{ label: 'a', value: 0 }] }];
    barChart({ ...chart, groups: none, scale: 'logarithmic' });
  }, /no place for 0/);
});

test('issue 7.1: plots show every subject with a result, and only kinds that were measured', () => {
  const results = new Results([
    sample('unary-1k', 'direct', measurement(0)),
    sample('unary-1k', 'nginx', measurement(20)),
    sample('unary-1k', 'gateway', measurement(200)),
    sample('unary-1k', 'Peer', failedMeasurement('it broke')),
  ]);
  const plots = plotsOf(workloads, results);
  assert.deepEqual(
    plots.map(({ file }) => file),
    ['cpu-per-request.svg'],
  );
  const svg = plots[0]?.svg ?? '';
  for (const name of ['nginx', 'gateway']) assert.match(svg, new RegExp(`>${name}<`));
  for (const name of ['direct', 'Peer']) assert.doesNotMatch(svg, new RegExp(`>${name}<`));
});
