/** S26: the package is the repository: the files that package.json names, the program without its types, and the same twice. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { isObject } from '../../src/json/value.ts';
import { pack, packedOnce, root } from './pack.ts';

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => name.replaceAll('\\', '/'))
    .sort();
}

test('S26 the package holds what package.json names, as it lies here, and is the same twice', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gw-package-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { folder: home, copy, tarball } = await packedOnce();
  assert.deepEqual(readFileSync(await pack(copy, home)), readFileSync(tarball));

  const { status } = spawnSync('tar', ['-xzf', tarball, '-C', folder]);
  assert.equal(status, 0);
  const packed = filesUnder(join(folder, 'package'));
  const asTheyAre = [
    ...globSync('models/tiny/*.*', { cwd: copy }),
    ...filesUnder(join(copy, 'docs')).map((name) => `docs/${name}`),
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'LICENSE',
    'README.md',
    'SECURITY.md',
    'bench/RESULTS.md',
    'bin/model-gateway',
    'scripts/prune-install.mjs',
  ];
  const program = globSync('src/**/*.ts', { cwd: copy }).map((name) =>
    name.replace(/^src/, 'dist').replace(/\.ts$/, '.js'),
  );
  const inDashboard = packed.filter((name) => name.startsWith('dist/dashboard/'));
  assert.ok(inDashboard.includes('dist/dashboard/index.html'));
  assert.ok(inDashboard.includes('dist/dashboard/licenses.md'));
  assert.deepEqual(packed, ['package.json', ...asTheyAre, ...program, ...inDashboard].sort());
  const manifest = (path: string) => tryParseObject(readFileSync(path, 'utf8')) ?? {};
  const [inPackage, here] = [join(folder, 'package'), root].map((place) =>
    manifest(join(place, 'package.json')),
  );
  const { optionalDependencies: brought, ...same } = inPackage ?? {};
  const { optionalDependencies: all, ...rest } = here ?? {};
  assert.deepEqual(same, rest);
  assert.ok(isObject(all) && isObject(brought));
  const left = Object.keys(all).filter((name) => !Object.hasOwn(brought, name));
  assert.ok(left.length > 3 && left.every((name) => name.startsWith('node-')), left.join(' '));
  assert.deepEqual(manifest(join(copy, 'package.json')), here, 'the file is put back');
  // Without dead links: what the README leads to is there.
  const readme = readFileSync(join(folder, 'package', 'README.md'), 'utf8');
  const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, path = '']) => path);
  assert.deepEqual(
    links.filter((path) => !packed.includes(path)),
    [],
  );
  for (const name of asTheyAre) {
    const inPackage = readFileSync(join(folder, 'package', name));
    assert.ok(inPackage.equals(readFileSync(join(copy, name))), `${name} is another one`);
  }
});

test('S26 an install runs one script of this project, which only removes files', () => {
  const manifest = tryParseObject(readFileSync(join(root, 'package.json'), 'utf8')) ?? {};
  const scripts = Object.entries(manifest['scripts'] ?? {});
  const hooks = scripts.filter(([name]) => /^(pre|post)?(install|prepare|pack|publish)/.test(name));
  assert.deepEqual(hooks, [
    ['postinstall', 'node scripts/prune-install.mjs'],
    // In a checkout and where it is packed, not where it is installed.
    ['prepare', 'node scripts/build-dashboard.mjs --if-possible'],
    ['prepack', 'node scripts/build-package.mjs'],
    ['postpack', 'node scripts/build-package.mjs --restore'],
  ]);
  const text = readFileSync(join(root, 'scripts', 'prune-install.mjs'), 'utf8');
  const imports = [...text.matchAll(/from '([^']+)'/g)].map(([, name]) => name);
  assert.deepEqual(imports, ['node:fs', 'node:path']);
});
