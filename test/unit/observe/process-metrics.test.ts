/** What a process without a file descriptor still tells of itself (F92). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Family, single, sumFamilies } from '../../../src/observe/metrics/family.ts';
import { processFamilies } from '../../../src/observe/metrics/metrics.ts';

test('issue 8.2 a worker that takes the place of another does not move the start of the gateway', () => {
  const started = (at: number): readonly Family[] =>
    processFamilies()
      .filter(({ name }) => name === 'process_start_time_seconds')
      .map((family) => (family.type === 'histogram' ? family : { ...family, samples: single(at) }));
  const [sum] = sumFamilies([started(1000), started(5000)]);
  assert.deepEqual(sum?.samples, single(1000));
});

test('F92 a process whose memory cannot be read reports the rest of itself', (t) => {
  const whole = processFamilies().map(({ name }) => name);
  assert.ok(whole.includes('process_resident_memory_bytes'));
  t.mock.method(process, 'memoryUsage', () => {
    throw new Error('EMFILE: too many open files, uv_resident_set_memory');
  });
  assert.deepEqual(
    processFamilies().map(({ name }) => name),
    whole.filter((name) => !/_memory_|_heap_/.test(name)),
  );
});
