// Runs before `npm pack` (prepack) and writes dist/: the joined program and the dashboard. Node strips types nowhere below
// node_modules, so an installed package has to be JavaScript.
// Both are built in a folder of this run. Then each file that differs is put in the place of the old one: a gateway that
// serves the dashboard, and a second `npm pack` at the same time, find every file whole.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, join, sep } from 'node:path';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');

/** Standard output is for npm, which may be asked for JSON there. */
function run(...args) {
  const { stderr } = process;
  return spawnSync(process.execPath, args, { cwd: root, stdio: ['ignore', stderr.fd, stderr.fd] })
    .status;
}

function filesOf(folder) {
  return globSync('**/*', { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** Moves the files of `from` to `to`, and removes all others from `to` but the joined program of the clone. */
function replaceFiles(from, to) {
  const wanted = filesOf(from);
  for (const name of wanted) {
    const target = join(to, name);
    if (existsSync(target) && readFileSync(target).equals(readFileSync(join(from, name)))) continue;
    mkdirSync(dirname(target), { recursive: true });
    renameSync(join(from, name), target);
  }
  const names = new Set(wanted);
  for (const name of filesOf(to)) {
    const isJoined = name.startsWith(`program${sep}`);
    if (!names.has(name) && !isJoined) rmSync(join(to, name), { force: true });
  }
}

// Beside dist/: a rename does not cross file systems.
const built = mkdtempSync(join(root, '.packing-'));
try {
  const program = join(import.meta.dirname, 'build-program.mjs');
  const dashboard = join(import.meta.dirname, 'build-dashboard.mjs');
  const status =
    run(program, '--package', built) || run(dashboard, '--out', join(built, 'dashboard'));
  if (status === 0) replaceFiles(built, dist);
  process.exitCode = status ?? 1;
} finally {
  rmSync(built, { recursive: true, force: true });
}
