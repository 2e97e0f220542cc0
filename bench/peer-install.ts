/**
 * Installs a peer with its own package manager into a folder of the user's cache, once for each list of
 * what is wanted. Install scripts stay off; Python packages come as wheels only.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';

/** `npm`: the package.json to install; `pip`: a requirement for a virtual environment of Python. */
export const installation = z.union([
  z.strictObject({ npm: z.record(z.string(), z.unknown()) }),
  z.strictObject({ pip: z.string() }),
]);
type Installation = z.infer<typeof installation>;

/** Written last: a folder without it was left half done. */
const doneFile = 'installed';

/** The folder that holds it, or why there is none. */
export function installPeer(
  wanted: Installation,
): { readonly folder: string } | { readonly missing: string } {
  const text = JSON.stringify(wanted);
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16);
  const folder = join(cacheFolder(), 'model-gateway-bench', name);
  if (existsSync(join(folder, doneFile))) return { folder };
  process.stderr.write(`installing ${text.slice(0, 100)} into ${folder}\n`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const fault = 'npm' in wanted ? installNpm(wanted.npm, folder) : installPip(wanted.pip, folder);
  if (fault !== undefined) return { missing: fault };
  writeFileSync(join(folder, doneFile), text);
  return { folder };
}

function cacheFolder(): string {
  return process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache');
}

function installNpm(manifest: object, folder: string): string | undefined {
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  return run(['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund'], folder);
}

function installPip(requirement: string, folder: string): string | undefined {
  const install = ['venv/bin/pip', 'install', '--quiet', '--only-binary', ':all:', requirement];
  return run(['python3', '-m', 'venv', 'venv'], folder) ?? run(install, folder);
}

/** What went wrong, in a line; undefined when nothing did. */
function run([program = '', ...args]: readonly string[], cwd: string): string | undefined {
  const { status, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8' });
  if (status === 0) return undefined;
  const line = error === undefined ? stderr.trim().split('\n').at(-1) : error.message;
  return `${program} could not install it: ${line ?? 'no reason given'}`;
}
