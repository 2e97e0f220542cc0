/** S26: the package is the repository: the files that package.json names, the program without its types, and the same twice. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { copyOfRepository, pack } from './pack.ts';

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => name.replaceAll('\\', '/'))
    .sort();
}

test('S26 the package holds what package.json names, as it lies here, and is the same twice', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gw-package-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const copy = copyOfRepository(folder);
  const tarball = await pack(copy, folder);
  assert.deepEqual(readFileSync(await pack(copy, folder)), readFileSync(tarball));

  const { status } = spawnSync('tar', ['-xzf', tarball, '-C', folder]);
  assert.equal(status, 0);
  const packed = filesUnder(join(folder, 'package'));
  const asTheyAre = [
    ...globSync('models/tiny/*.*', { cwd: copy }),
    'LICENSE',
    'README.md',
    'package.json',
    'bin/model-gateway',
    'scripts/prune-install.mjs',
  ];
  const program = globSync('src/**/*.ts', { cwd: copy }).map((name) =>
    name.replace(/^src/, 'dist').replace(/\.ts$/, '.js'),
  );
  const inDashboard = packed.filter((name) => name.startsWith('dist/dashboard/'));
  assert.ok(inDashboard.includes('dist/dashboard/index.html'));
  assert.ok(inDashboard.includes('dist/dashboard/licenses.md'));
  assert.deepEqual(packed, [...asTheyAre, ...program, ...inDashboard].sort());
  for (const name of asTheyAre) {
    const inPackage = readFileSync(join(folder, 'package', name));
    assert.ok(inPackage.equals(readFileSync(join(copy, name))), `${name} is another one`);
  }
});

test('S26 an install runs one script of this project, which only removes files', () => {
  const root = join(import.meta.dirname, '..', '..');
  const manifest = tryParseObject(readFileSync(join(root, 'package.json'), 'utf8')) ?? {};
  const scripts = Object.entries(manifest['scripts'] ?? {});
  const hooks = scripts.filter(([name]) => /^(pre|post)?(install|prepare|pack|publish)/.test(name));
  assert.deepEqual(hooks, [
    ['postinstall', 'node scripts/prune-install.mjs'],
    // In a checkout and where it is packed, not where it is installed.
    ['prepare', 'node scripts/build-dashboard.mjs --if-possible'],
    ['prepack', 'node scripts/build-package.mjs'],
  ]);
  const text = readFileSync(join(root, 'scripts', 'prune-install.mjs'), 'utf8');
  const imports = [...text.matchAll(/from '([^']+)'/g)].map(([, name]) => name);
  assert.deepEqual(imports, ['node:fs', 'node:path']);
});
