// Runs before `npm pack` (prepack) and writes dist/, src/ without its types: Node strips types nowhere below
// node_modules, so an installed package has to be JavaScript. A clone runs src/ as it is. Then it builds the dashboard.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
rmSync(join(root, 'dist'), { recursive: true, force: true });
// Standard output is for npm, which may be asked for JSON there.
const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const { status } = spawnSync(process.execPath, [compiler, '-p', 'tsconfig.package.json'], {
  cwd: root,
  stdio: ['ignore', process.stderr.fd, process.stderr.fd],
});
const dashboard = join(import.meta.dirname, 'build-dashboard.mjs');
const built =
  status === 0
    ? spawnSync(process.execPath, [dashboard], {
        cwd: root,
        stdio: ['ignore', process.stderr.fd, process.stderr.fd],
      }).status
    : status;
process.exitCode = built ?? 1;
