/** Which test files `npm test` runs, and which are left to `npm run test:all` (scripts/test-plan.mjs). */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** Depth of each test file of a run, by its path from the root. @param flags `--rest`, `--all`; none for `npm test` */
export function filesOfRun(...flags: readonly string[]): ReadonlyMap<string, string> {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['scripts/test.mjs', '--list', ...flags],
    { cwd: root, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(stderr);
  return new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => {
        const [depth = '', file = ''] = line.split(' ');
        return [file, depth];
      }),
  );
}

/** These files and what they import of `test/`, directly or not. */
export function withImports(files: Iterable<string>): ReadonlySet<string> {
  const found = new Set<string>(files);
  // A set is walked to its end, including what is added meanwhile.
  for (const file of found) {
    const text = readFileSync(join(root, file), 'utf8');
    for (const [, path = ''] of text.matchAll(
      /^(?:import|export|}) .*\bfrom '(\.\.?\/[^']+\.ts)';$/gm,
    )) {
      const imported = relative(root, join(root, file, '..', path));
      if (imported.startsWith('test/')) found.add(imported);
    }
  }
  return found;
}
