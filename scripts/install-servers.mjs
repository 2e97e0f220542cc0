// Installs PostgreSQL and Redis for the tests where this machine lacks them and it may: Debian packages,
// as root. Never fails: tests without their server say so in one line each.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/usr/sbin'];
const has = (...names) =>
  names.some((name) => folders.some((folder) => existsSync(join(folder, name))));

const missing = [
  ...(globSync('/usr/lib/postgresql/*/bin/initdb').length > 0 || has('initdb')
    ? []
    : ['postgresql']),
  ...(has('redis-server', 'valkey-server') ? [] : ['redis-server']),
];

if (missing.length > 0) {
  const why = install(missing);
  if (why !== undefined) {
    process.stdout.write(
      `${missing.join(' and ')} not installed: ${why}; their tests are left out\n`,
    );
  }
}

/** Undefined when it worked. */
function install(packages) {
  if (process.getuid?.() !== 0) return 'only root may';
  if (!has('apt-get')) return 'there is no apt-get';
  // The tests start servers of their own: the package's service stays off.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const run = (...args) =>
    spawnSync('apt-get', [...args], { env, stdio: 'ignore', timeout: 240_000 }).status === 0;
  const wanted = ['install', '-y', '--no-install-recommends', ...packages];
  if (run(...wanted) || (run('update') && run(...wanted))) return undefined;
  return 'apt-get could not';
}
