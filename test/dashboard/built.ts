/** The dashboard as its sources are now: built again when one is newer than what was built. */
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const built = join(root, 'dist/dashboard/index.html');
const lock = join(root, 'dist/dashboard.lock');

/** A checkout that was installed has it built already. @throws Error with what the build said. */
export async function buildDashboard(): Promise<void> {
  if (!isOld()) return;
  mkdirSync(join(root, 'dist'), { recursive: true });
  // Test files run beside each other: one builds, the others wait.
  while (!takeLock()) await new Promise((resolve) => setTimeout(resolve, 100));
  try {
    if (!isOld()) return;
    const script = join(root, 'scripts/build-dashboard.mjs');
    const { status, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`the dashboard does not build: ${stderr}`);
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function isOld(): boolean {
  if (!existsSync(built)) return true;
  const since = statSync(built).mtimeMs;
  const sources = globSync(['dashboard/**/*.*', 'src/cli/*.ts'], { cwd: root });
  return sources.some((path) => statSync(join(root, path)).mtimeMs > since);
}

const lockMs = 120_000;

/** A lock that its process left behind counts for a while only. */
function takeLock(): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    const age = existsSync(lock) ? Date.now() - statSync(lock).mtimeMs : 0;
    if (age > lockMs) rmSync(lock, { recursive: true, force: true });
    return false;
  }
}
