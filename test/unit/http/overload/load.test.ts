/** What is seen of a process that cannot open a file, since no descriptor is left (F92). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadOfProcess, type LoadSample } from '../../../../src/http/overload/load.ts';

test('F92 a process whose size cannot be read has the size that it had, and continues', async (t) => {
  const samples: LoadSample[] = [];
  let told = Promise.withResolvers<void>();
  const stop = loadOfProcess({ waitedMs: 0 })((sample) => {
    samples.push(sample);
    told.resolve();
  });
  t.after(stop);
  // The timer of the look keeps nothing alive, as little as a promise does.
  const alive = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(alive));
  await told.promise;
  t.mock.method(process.memoryUsage, 'rss', () => {
    throw new Error('EMFILE: too many open files, uv_resident_set_memory');
  });
  const before = samples.at(-1)?.rssBytes ?? 0;
  told = Promise.withResolvers<void>();
  await told.promise;
  assert.ok(before > 0);
  assert.equal(samples.at(-1)?.rssBytes, before);
});
