/** S26: the package is the repository: the files that package.json names, byte by byte, and the same twice. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { tryParseObject } from '../../../src/core/json.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const nodeBin = join(root, 'node_modules', '.bin');

/** Packs the repository without its scripts, network and npm's own config; the path of the tarball. */
function pack(folder: string): string {
  const destination = mkdtempSync(join(folder, 'pack-'));
  const args = ['pack', '--ignore-scripts', '--offline', '--pack-destination', destination];
  const { status, stderr } = spawnSync('npm', args, {
    cwd: root,
    encoding: 'utf8',
    env: {
      PATH: `${nodeBin}:${process.env['PATH'] ?? ''}`,
      HOME: folder,
      npm_config_cache: join(folder, 'cache'),
      npm_config_update_notifier: 'false',
    },
  });
  assert.equal(status, 0, stderr);
  const [name = ''] = readdirSync(destination);
  return join(destination, name);
}

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => name.replaceAll('\\', '/'))
    .sort();
}

test('S26 the package holds what package.json names, as it lies here, and is the same twice', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gw-package-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const tarball = pack(folder);
  assert.deepEqual(readFileSync(pack(folder)), readFileSync(tarball));

  const { status } = spawnSync('tar', ['-xzf', tarball, '-C', folder]);
  assert.equal(status, 0);
  const packed = filesUnder(join(folder, 'package'));
  const named = [
    ...globSync('src/**/*.ts', { cwd: root }),
    ...globSync('models/tiny/*.*', { cwd: root }),
    'LICENSE',
    'README.md',
    'package.json',
    'bin/model-gateway',
    'scripts/prune-install.mjs',
  ].sort();
  assert.deepEqual(packed, named);
  for (const name of packed) {
    const inPackage = readFileSync(join(folder, 'package', name));
    assert.ok(inPackage.equals(readFileSync(join(root, name))), `${name} is another one`);
  }
});

test('S26 an install runs one script of this project, which only removes files', () => {
  const manifest = tryParseObject(readFileSync(join(root, 'package.json'), 'utf8')) ?? {};
  const scripts = Object.entries(manifest['scripts'] ?? {});
  const hooks = scripts.filter(([name]) => /^(pre|post)?(install|prepare|pack|publish)/.test(name));
  assert.deepEqual(hooks, [['postinstall', 'node scripts/prune-install.mjs']]);
  const text = readFileSync(join(root, 'scripts', 'prune-install.mjs'), 'utf8');
  const imports = [...text.matchAll(/from '([^']+)'/g)].map(([, name]) => name);
  assert.deepEqual(imports, ['node:fs', 'node:path']);
});
