/** S26: the package is the repository: the files that package.json names, the joined program, and the same twice. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import { tryParseObject } from '../../src/json/parse.ts';
import { temporaryFolder } from '../support/folders.ts';
import { packedOnce, root, secretFiles } from './pack.ts';

function filesUnder(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .map((name) => name.replaceAll('\\', '/'))
    .sort();
}

/** Links of a page that lead to no file of the package. Text between accents or fences may look like a link. */
function deadLinks(folder: string, page: string): readonly string[] {
  const prose = readFileSync(join(folder, page), 'utf8')
    .replace(/^```[^]*?^```/gm, '')
    .replace(/`[^`\n]*`/g, '`');
  return [...prose.matchAll(/\]\((?![a-z]+:|#)([^)\s#]+)/g)]
    .map(([, path = '']) => normalize(join(dirname(page), path)))
    .filter((path) => path.startsWith('..') || !existsSync(join(folder, path)))
    .map((path) => `${page}: ${path}`);
}

test('S26 the package holds what package.json names, as it lies here, and is the same twice at once', async () => {
  const folder = temporaryFolder('package');
  const { copy, tarball, second } = await packedOnce();
  assert.ok(readFileSync(second).equals(readFileSync(tarball)), 'the second is another one');

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
    ...globSync(['bench/*.md', 'bench/plots/*.svg', 'bench/measurements.json'], { cwd: copy }),
    ...filesUnder(join(copy, 'deploy'))
      .map((name) => `deploy/${name}`)
      .filter((name) => !secretFiles.includes(name)),
    'bin/model-gateway',
    'scripts/prune-install.mjs',
  ];
  const inDashboard = packed.filter((name) => name.startsWith('dist/dashboard/'));
  assert.ok(inDashboard.includes('dist/dashboard/index.html'));
  assert.ok(inDashboard.includes('dist/dashboard/licenses.md'));
  // Joined: all names but the first have a hash.
  const program = packed.filter((name) => name.startsWith('dist/') && !inDashboard.includes(name));
  const hashed = program.filter((name) => /-[\w-]{8}\.c?js$/.test(name));
  assert.deepEqual(
    program.filter((name) => !hashed.includes(name)),
    ['dist/licenses.md', 'dist/main.js'],
  );
  assert.deepEqual(
    hashed
      .filter((name) => name.split('/').length > 2)
      .map((name) => name.slice('dist/'.length, -'-12345678.js'.length)),
    [
      'compose/host/worker-main',
      'compose/long-body-thread',
      'engine/main',
      'features/content-log/content-worker',
      'store/sqlite/worker',
      'tokens/tokenizer-worker',
    ],
  );
  assert.match(
    readFileSync(join(folder, 'package', 'dist', 'licenses.md'), 'utf8'),
    /^# yaml$[^]+^# zod$/m,
  );
  assert.deepEqual(packed, ['package.json', ...asTheyAre, ...program, ...inDashboard].sort());
  const pages = packed.filter((name) => name.endsWith('.md'));
  assert.ok(pages.length > 60);
  assert.deepEqual(
    pages.flatMap((page) => deadLinks(join(folder, 'package'), page)),
    [],
  );
  assert.ok(
    readFileSync(join(copy, 'package.json')).equals(readFileSync(join(root, 'package.json'))),
  );
  const left = readdirSync(copy).filter((name) => name.startsWith('.'));
  assert.deepEqual(left, [], 'left behind');
  for (const name of ['package.json', ...asTheyAre]) {
    const inPackage = readFileSync(join(folder, 'package', name));
    assert.ok(inPackage.equals(readFileSync(join(copy, name))), `${name} is another one`);
  }
});

test('S26 an install runs one script of this project, which removes files and links a Node', () => {
  const manifest = tryParseObject(readFileSync(join(root, 'package.json'), 'utf8')) ?? {};
  const scripts = Object.entries(manifest['scripts'] ?? {});
  const hooks = scripts.filter(([name]) => /^(pre|post)?(install|prepare|pack|publish)/.test(name));
  assert.deepEqual(hooks, [
    ['postinstall', 'node scripts/prune-install.mjs'],
    // In a checkout and where it is packed, not where it is installed.
    [
      'prepare',
      'node scripts/build-program.mjs --if-possible && node scripts/build-dashboard.mjs --if-possible',
    ],
    ['prepack', 'node scripts/build-package.mjs'],
  ]);
  const text = readFileSync(join(root, 'scripts', 'prune-install.mjs'), 'utf8');
  const imports = [...text.matchAll(/from '([^']+)'/g)].map(([, name]) => name);
  assert.deepEqual(imports, ['node:fs', 'node:path']);
});
