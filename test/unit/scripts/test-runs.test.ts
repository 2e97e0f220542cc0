/** How tests are divided: `npm test` and what `npm run test:all` adds to it lose none and repeat none. */
import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { filesOfRun, withImports } from '../../support/test-runs.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const all = globSync('test/**/*.test.ts', { cwd: root }).sort();
const short = filesOfRun();
const rest = filesOfRun('--rest');

test('each test file belongs to `npm test` or to the rest, and a sampled one to both', () => {
  assert.ok(all.length > 600);
  const depths = all.map((file) => ({
    file,
    depths: `${short.get(file) ?? '-'} ${rest.get(file) ?? '-'}`,
  }));
  const allowed = ['whole -', '- whole', 'sample rest'];
  assert.deepEqual(
    depths.filter((each) => !allowed.includes(each.depths)),
    [],
  );
  assert.equal(new Set([...short.keys(), ...rest.keys()]).size, all.length);
});

test('`--all` runs each of them whole', () => {
  assert.deepEqual(
    [...filesOfRun('--all')].sort(),
    all.map((file) => [file, 'whole']),
  );
});

test('a file plays a sample in `npm test` if and only if the plan says so', () => {
  const drawn = all.filter((file) => withImports([file]).has('test/support/depth.ts'));
  assert.ok(drawn.length > 10);
  assert.deepEqual(
    [...short].filter(([, depth]) => depth === 'sample').map(([file]) => file),
    drawn.filter((file) => short.has(file)),
  );
});
