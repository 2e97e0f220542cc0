/** G4 in short, and what the soak is made of; `npm run soak` goes on for longer. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { savedSections, putSection } from '../../bench/saved-sections.ts';
import { temporaryFolder } from '../support/folders.ts';
import { slopeOf } from './slope.ts';
import { soak } from './soak-run.ts';

test('G4: after a mixed load nothing is open that was not before, and each call has its true row', async (t) => {
  const report = await soak({ ms: 8000, callers: 40 });
  t.diagnostic(`${report.calls} calls`);
  assert.deepEqual(report.wrong, []);
  assert.equal(report.booked, report.counted);
  assert.ok(report.succeeded > 50, `${report.succeeded} succeeded`);
  assert.notEqual(report.settledMs, undefined, JSON.stringify(report.after.resources));
});

test('the slope of a line is its own, and scatter is reported', () => {
  const line = [0, 1, 2, 3].map((x) => ({ x, y: 7 + 3 * x }));
  assert.deepEqual(slopeOf(line), { slope: 3, error: 0 });
  const scattered = slopeOf([0, 1, 2, 3].map((x) => ({ x, y: x % 2 })));
  assert.ok(Math.abs(scattered.slope) <= 2 * scattered.error);
});

test('what other commands wrote into the results stays when the bench writes them anew', () => {
  const folder = temporaryFolder('kept');
  const path = join(folder, 'RESULTS.md');
  writeFileSync(path, '# Results\n');
  putSection('soak', '## Soak\n\none', path);
  putSection('crash', '## Crash', path);
  putSection('soak', '## Soak\n\ntwo', path);
  writeFileSync(path, `# New results\n${savedSections(path)}`);
  const text = readFileSync(path, 'utf8');
  assert.match(text, /^# New results\n\n<!-- kept: soak -->\n\n## Soak\n\ntwo\n\n<!-- end -->\n/);
  assert.match(text, /## Crash/);
  assert.doesNotMatch(text, /one/);
});
