// Runs test files (default: all of them) and closes with the line `N passed, N failed`.
// Usage: node scripts/test.mjs [folder or file …]
import { globSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

// A process for each file would strip and compile the same sources again: half of its CPU time.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, '../node_modules/.cache/compile');

const wanted = process.argv.slice(2);
const files = (wanted.length === 0 ? ['test'] : wanted).flatMap((path) =>
  statSync(path).isDirectory() ? globSync(`${path}/**/*.test.ts`) : [path],
);
let passed = 0;
let failed = 0;
let skipped = 0;
const stream = run({ files: files.sort(), concurrency: 2, timeout: 600_000 });
const isLeaf = (data) =>
  data.details?.type !== 'suite' && !files.some((file) => data.name.endsWith(file));
stream.on('test:pass', (data) => {
  if (!isLeaf(data)) return;
  if (data.skip !== undefined || data.todo !== undefined) skipped += 1;
  else passed += 1;
});
stream.on('test:fail', (data) => {
  if (isLeaf(data)) failed += 1;
  else if (data.details?.error?.failureType !== 'subtestsFailed') failed += 1;
});
stream.on('end', () => {
  process.stdout.write(
    `\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`,
  );
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
});
stream.compose(spec).pipe(process.stdout);
