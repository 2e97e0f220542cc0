// Runs before `npm pack` (prepack) and writes dist/, src/ without its types: Node strips types nowhere below
// node_modules, so an installed package has to be JavaScript. A clone runs src/ as it is. Then it builds the dashboard.
// Last it takes the Node packages out of package.json: a clone brings its own Node, a package runs on the one that npm
// runs on, and is 190 MB smaller. `--restore` (postpack) puts the file back.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const manifest = join(root, 'package.json');
const kept = join(root, 'dist', 'package.json.kept');

// A pack that was interrupted leaves the file changed.
if (existsSync(kept)) renameSync(kept, manifest);
if (process.argv.includes('--restore')) process.exit(0);
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
if (built === 0) {
  copyFileSync(manifest, kept);
  const packed = JSON.parse(readFileSync(manifest, 'utf8'));
  for (const name of Object.keys(packed.optionalDependencies)) {
    if (/^node-(bin-)?(linux|darwin|win)-/.test(name)) delete packed.optionalDependencies[name];
  }
  writeFileSync(manifest, `${JSON.stringify(packed, null, 2)}\n`);
}
process.exitCode = built ?? 1;
