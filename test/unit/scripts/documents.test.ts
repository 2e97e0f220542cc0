/** The documents: links lead somewhere, table cells stay short; the files that path.md and comments name exist. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const root = join(import.meta.dirname, '..', '..', '..');
const maxCellLength = 300;

const pages = globSync(['*.md', 'docs/**/*.md', 'bench/*.md', 'deploy/**/*.md'], { cwd: root });
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8');

/** A page without its code: blocks and spans may hold what looks like a link. */
function proseOf(text: string): string {
  return text
    .replace(/^```[^]*?^```/gm, '')
    .replace(/`[^`\n]*`/g, (span) => ' '.repeat(span.length));
}

/** Anchors of headings, as GitHub forms them. */
function anchorsOf(text: string): ReadonlySet<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of text.replace(/^```[^]*?^```/gm, '').matchAll(/^#+ +(.+)$/gm)) {
    const words = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = words
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-');
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n += 1) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

function brokenLinks(page: string): readonly string[] {
  const links = [...proseOf(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, link = '']) => link,
  );
  return links
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : join(dirname(page), path);
      if (!existsSync(join(root, target))) return true;
      return (
        anchor !== undefined && target.endsWith('.md') && !anchorsOf(textOf(target)).has(anchor)
      );
    })
    .map((link) => `${page}: ${link}`);
}

function longCells(page: string): readonly string[] {
  return textOf(page)
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .flatMap((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .filter((cell) => cell.length > maxCellLength)
    .map((cell) => `${page}: ${cell.slice(0, 60)}… (${cell.length})`);
}

test('links between documents lead to a file and a heading', () => {
  assert.ok(pages.length > 60);
  assert.deepEqual(pages.flatMap(brokenLinks), []);
});

test('no cell of a table is longer than 300 characters', () => {
  const made = ['bench/RESULTS.md', 'CHANGELOG.md'];
  const written = pages.filter((page) => !made.includes(page));
  assert.deepEqual(written.flatMap(longCells), []);
});

test('the files that docs/maintainer/path.md names exist', () => {
  const names = [
    ...textOf('docs/maintainer/path.md').matchAll(
      /(?<![\w./-])[\w*<>-]+(?:\/[\w*<>-]+)*(?:\/|\.(?:ts|mjs))(?=[\s`,;:)])/g,
    ),
  ];
  const paths = new Set(names.map(([name]) => name.replace('<dialect>', '*')));
  const folders = [
    'src',
    '',
    'src/dialects/*',
    'src/dialects/*/answer',
    'src/observe/metrics',
    'src/store/*',
  ];
  const missing = [...paths].filter((path) =>
    folders.every((folder) => globSync(join(folder, path), { cwd: root }).length === 0),
  );
  assert.ok(paths.size > 60);
  assert.deepEqual(missing, []);
});

test('the functions that docs/maintainer/path.md names exist', () => {
  const drawn = [...textOf('docs/maintainer/path.md').matchAll(/#[a-z]\w+\b|\b[a-z]\w+(?=\(\))/g)];
  const names = new Set(drawn.map(([name]) => name).filter((name) => name !== '#texts'));
  const programs = globSync('src/**/*.ts', { cwd: root }).map(textOf);
  assert.ok(names.size > 3);
  assert.deepEqual(
    [...names].filter((name) => !programs.some((text) => text.includes(`${name}(`))),
    [],
  );
});

test('the files and documents that comments name exist', () => {
  const programs = globSync(['{src,bench,dashboard/src}/**/*.{ts,tsx,wat}', 'scripts/**/*.mjs'], {
    cwd: root,
  });
  const files = globSync('{src,bench,test,scripts,docs,dashboard}/**/*.{ts,tsx,mjs,wat,md}', {
    cwd: root,
    exclude: ['**/node_modules/**'],
  }).map((path) => `/${path}`);
  const ends = new Set(
    files.flatMap((path) => [...path.matchAll(/\//g)].map(({ index }) => path.slice(index + 1))),
  );
  const named = programs.flatMap((program) =>
    (textOf(program).match(/\/\*[^]*?\*\/|(?:^|\s)\/\/.*$|;;.*$/gm) ?? [])
      .flatMap(
        (comment) => comment.match(/(?<![\w./@*<-])[a-z][\w/.-]*\.(?:tsx?|mjs|wat|md)\b/g) ?? [],
      )
      .map((name) => ({ program, name })),
  );
  assert.ok(named.length > 100);
  assert.deepEqual(
    named.filter(({ name }) => !ends.has(name)),
    [],
  );
});

test('docs/operator/logs.md has each event of warn and error, with its level, and no other event', () => {
  const written = new Set<string>();
  for (const line of textOf('docs/operator/logs.md').split('\n')) {
    const [, events = '', levels = ''] = line.split('|').map((cell) => cell.trim());
    const names = [...events.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name);
    const each = levels.split(', ');
    // One level for all of a row, a level for each event, or two for the only event.
    if (names.length === 1) for (const level of each) written.add(`${names[0]}: ${level}`);
    else names.forEach((name, i) => written.add(`${name}: ${each[i] ?? each[0]}`));
  }
  const known = readFileSync(join(root, 'test/golden/files/log-events.txt'), 'utf8')
    .trim()
    .split('\n');
  const loud = known.filter((event) => /: (?:warn|error)$/.test(event));
  assert.ok(loud.length > 60);
  assert.deepEqual(
    loud.filter((event) => !written.has(event)),
    [],
    'not on the page',
  );
  // The first one is the head of the tables.
  written.delete('event: level');
  assert.deepEqual(
    [...written].filter((event) => !known.includes(event)),
    [],
    'no such event',
  );
});

test('the README names the version of Node that package.json asks for', () => {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const [, older = '', newer = ''] = /^\^(\d+\.\d+) \|\| >=(\d+\.\d+)$/.exec(engines.node) ?? [];
  assert.notEqual(newer, '');
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  assert.match(readme, new RegExp(`global install .* needs ${older} or ${newer}\\.`));
});
