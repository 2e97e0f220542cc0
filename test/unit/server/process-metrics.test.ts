/** What a process without a file descriptor still tells of itself (F92). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { processFamilies } from '../../../src/server/metrics/process-metrics.ts';

test('F92 a process whose memory cannot be read tells the rest of itself', (t) => {
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
