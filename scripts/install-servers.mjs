// Installs PostgreSQL, Redis, Prometheus, nginx, Caddy, Chromium and buildah for the tests where this machine lacks them: Debian packages,
// by apt-get, as root. It names them before it installs them. It never fails: without the right, or without one of
// the packages, it names what is omitted, and the tests that need it are skipped with a line each.
import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/bin', '/usr/sbin'];
const has = (...names) =>
  names.some((name) => folders.some((folder) => existsSync(join(folder, name))));

/** Chromium without windows: a page takes half the CPU time. Another browser does where it cannot be had. */
const shell = 'chromium-headless-shell';
const hasBrowser = has('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable');
const isRoot = process.getuid?.() === 0;
const canInstall = isRoot && has('apt-get');

const missing = [
  ...(globSync('/usr/lib/postgresql/*/bin/initdb').length > 0 || has('initdb')
    ? []
    : ['postgresql']),
  ...(has('redis-server', 'valkey-server') ? [] : ['redis-server']),
  ...(has('prometheus') && has('promtool') ? [] : ['prometheus']),
  ...(has('nginx') ? [] : ['nginx-light']),
  ...(has('caddy') ? [] : ['caddy']),
  ...(has('buildah') && has('runc') ? [] : ['buildah', 'runc']),
  ...(has('strip') ? [] : ['binutils']),
  // With a font: without one a page has no letters.
  ...(has(shell, 'chrome-headless-shell') || (hasBrowser && !isOffered(shell))
    ? []
    : [shell, 'fonts-dejavu-core']),
];

if (missing.length > 0) {
  const { why, packages } = install(missing);
  if (packages.length > 0) {
    process.stdout.write(
      `Not installed: ${packages.join(', ')} (${why}). Tests that need them are left out.\n`,
    );
  }
}

/** Whether this system has a package of that name; other systems than Debian may not. */
function isOffered(name) {
  return canInstall && spawnSync('apt-cache', ['show', name], { stdio: 'ignore' }).status === 0;
}

/** Which could not be installed, and why. */
function install(packages) {
  if (!isRoot) return { why: 'installing packages needs root', packages };
  if (!canInstall) return { why: 'there is no apt-get', packages };
  process.stdout.write(`Installing for the tests, by apt-get: ${packages.join(', ')}\n`);
  // The tests start servers of their own: the package's service stays off.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const run = (...args) =>
    spawnSync('apt-get', [...args], { env, stdio: 'ignore', timeout: 240_000 }).status === 0;
  const add = (...names) => run('install', '-y', '--no-install-recommends', ...names);
  const why = 'apt-get failed';
  if (add(...packages) || (run('update') && add(...packages))) return { why, packages: [] };
  // One that this system does not have must not keep the others away.
  const isReplaced = (name) => name === shell && (hasBrowser || add('chromium'));
  return { why, packages: packages.filter((name) => !add(name) && !isReplaced(name)) };
}
