/** S12, issue 8: what the pages are made of, read from the files and from what the build makes of them. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { before, test } from 'node:test';
import { temporaryFolder } from '../../support/folders.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const sources = globSync('dashboard/src/**/*.{ts,tsx}', { cwd: root }).map((file) => ({
  file: file.replaceAll('\\', '/'),
  text: readFileSync(join(root, file), 'utf8'),
}));

const packages = new Set([
  '@base-ui/react',
  '@tanstack/react-query',
  '@tanstack/react-virtual',
  'react',
  'react-dom',
  'uplot',
  'wouter',
]);

/** Pure text of the command `connect`: what the page says of a client is what the command says. */
const shared = new Set([
  'src/cli/clients/client.ts',
  'src/cli/clients/clients.ts',
  'src/cli/clients/libraries.ts',
  'src/cli/connection.ts',
]);

function packageOf(specifier: string): string {
  const parts = specifier.split('/');
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
}

test('the dashboard knows HTTP only: it imports its own files and the packages of a page', () => {
  assert.ok(sources.length > 20);
  const wrong = sources.flatMap(({ file, text }) =>
    [...text.matchAll(/(?:\bfrom|\bimport\(?)\s*'([^']+)'/g)].flatMap(([, specifier = '']) => {
      const target = join(dirname(file), specifier).replaceAll('\\', '/');
      const isOwn = specifier.startsWith('.')
        ? target.startsWith('dashboard/src/') || shared.has(target)
        : packages.has(packageOf(specifier));
      return isOwn ? [] : [`${file} imports ${specifier}`];
    }),
  );
  assert.deepEqual(wrong, []);
});

test('S12 no source writes markup, runs text, or names another host', () => {
  const sinks =
    /innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function|srcdoc|javascript:|trustedTypes\.createPolicy/;
  const found = sources.filter(({ text }) => sinks.test(text)).map(({ file }) => file);
  assert.deepEqual(found, []);
});

let folder = '';
let inodeBefore = 0;
before(() => {
  folder = temporaryFolder('dashboard');
  writeFileSync(join(folder, 'of-an-earlier-build.js'), '');
  inodeBefore = statSync(folder).ino;
  const script = join(root, 'scripts', 'build-dashboard.mjs');
  const built = spawnSync(process.execPath, [script, '--out', folder], { encoding: 'utf8' });
  assert.equal(built.status, 0, built.stderr);
});

const built = (name: string): string => readFileSync(join(folder, name), 'utf8');

/** A chunk and all that it cannot start without. */
function withImports(name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const [, next = ''] of built(name).matchAll(
    /(?:from|import)\s*["'`]\.\/([^"'`]+\.js)["'`]/g,
  )) {
    withImports(`assets/${next}`, seen);
  }
  return seen;
}

test('a build replaces the folder as a whole: a reader meets no half of it, two builds at once mix no files', () => {
  assert.notEqual(statSync(folder).ino, inodeBefore);
  assert.equal(existsSync(join(folder, 'of-an-earlier-build.js')), false);
  const name = basename(folder);
  const besides = readdirSync(dirname(folder)).filter((each) => each.startsWith(`${name}-`));
  assert.deepEqual(besides, []);
});

test('issue 24 no code waits behind a fallback: React shows what suspended 300 ms after it at the earliest', () => {
  const sources = globSync('dashboard/src/**/*.tsx', { cwd: root });
  assert.ok(sources.length > 50);
  const suspending = sources.filter((path) =>
    /\b(lazy|Suspense|useSuspenseQuery)\b/.test(
      readFileSync(join(root, path), 'utf8').replaceAll(/\/\*[^]*?\*\//g, ''),
    ),
  );
  assert.deepEqual(suspending, []);
});

test('S12 the page has no script and no style of its own, and all that it loads is beside it', () => {
  const html = built('index.html');
  assert.ok(!/<style|style=|\son\w+=/i.test(html));
  assert.deepEqual(
    [...html.matchAll(/<script(?![^>]*\ssrc="\/assets\/)/g)].map(([tag]) => tag),
    [],
  );
  const addresses = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(
    ([, address = '']) => address,
  );
  assert.ok(addresses.length >= 3);
  for (const address of addresses) assert.ok(statSync(join(folder, address)).isFile(), address);
  assert.match(built('licenses.md'), /react-dom/);
});

test('issue 24 the first load of the overview, charts included, is at most 200 KB compressed', () => {
  const assets = readdirSync(join(folder, 'assets')).map((name) => `assets/${name}`);
  const named = (start: string): string => {
    const found = assets.filter(
      (name) => name.startsWith(`assets/${start}-`) && name.endsWith('.js'),
    );
    assert.equal(found.length, 1, `${start}: ${found.join(', ')}`);
    return found[0] ?? '';
  };
  const files = new Set(['index.html', 'icon.svg']);
  for (const name of assets) if (name.endsWith('.css')) files.add(name);
  for (const start of ['index', 'overview', 'plot']) {
    for (const name of withImports(named(start))) files.add(name);
  }
  let bytes = 0;
  for (const name of files) bytes += statSync(join(folder, `${name}.gz`)).size;
  assert.ok(bytes > 100_000, `${bytes} bytes: the overview is missing`);
  assert.ok(bytes <= 200_000, `${bytes} bytes`);
});
