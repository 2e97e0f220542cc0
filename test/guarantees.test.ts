/** docs/guarantees.md: every guarantee has a line, what proves it is there, and comments name no other ids. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { filesOfRun, withImports } from './support/test-runs.ts';

const root = join(import.meta.dirname, '..');
const text = readFileSync(join(root, 'docs', 'guarantees.md'), 'utf8');

interface Line {
  readonly ids: readonly string[];
  readonly cells: readonly string[];
}

/** Rows of its tables, by what stands in the first column: `G1`, `F1–F5 F7`. */
const lines: readonly Line[] = text
  .split('\n')
  .filter((line) => /^\| [A-Z]\d|^\| EM/.test(line))
  .map((line) => {
    const cells = line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim());
    return { ids: idsOf(cells[0] ?? ''), cells };
  });

function idsOf(cell: string): readonly string[] {
  return cell.split(/[ ,]+/).flatMap((part) => {
    const [, kind = '', from = '', to = from] = /^([A-Z])(\d+)(?:–[A-Z]?(\d+))?$/.exec(part) ?? [];
    if (from === '') return [part];
    const count = Number(to) - Number(from) + 1;
    return Array.from({ length: count }, (_, i) => `${kind}${Number(from) + i}`);
  });
}

function span(kind: string, from: number, to: number): readonly string[] {
  return Array.from({ length: to - from + 1 }, (_, i) => `${kind}${from + i}`);
}

const wanted = [
  ...span('G', 1, 17),
  ...span('R', 1, 7),
  ...span('Q', 1, 3),
  ...span('S', 1, 26),
  ...span('E', 1, 18),
  'EM',
  ...span('F', 1, 37),
  ...span('F', 40, 66),
  ...span('F', 70, 78),
  ...span('F', 80, 95),
  ...span('B', 1, 75),
];

test('every guarantee has one line', () => {
  const found = lines.flatMap(({ ids }) => ids);
  assert.deepEqual(
    wanted.filter((id) => !found.includes(id)),
    [],
    'without a line',
  );
  assert.deepEqual(
    found.filter((id, i) => !wanted.includes(id) || found.indexOf(id) !== i),
    [],
    'unknown, or with two lines',
  );
});

test('every line names what is promised, and its proof or what is missing', () => {
  for (const { cells } of lines) {
    const [ids, promise = '', proof = '', rest = ''] = cells;
    assert.equal(cells.length, 4, ids);
    assert.ok(promise.length > 10, `${ids} promises nothing`);
    assert.ok(/`(test|bench)\//.test(proof) || /[Nn]ot/.test(rest), `${ids} has no proof`);
  }
});

/** Ids as tests write them: `F81`, `F1–F5`, `B38–B66`. */
function idsNamed(text: string): readonly string[] {
  const names = text.matchAll(/\b(?:[GRQSEFB]\d+(?:–[GRQSEFB]?\d+)?|EM)\b/g);
  return [...names].flatMap(([name]) => idsOf(name));
}

/** What `npm test` runs, without the files that list all ids. */
const tests = withImports(
  [...filesOfRun().keys()].filter((file) => !/^test\/(guarantees|requirements)/.test(file)),
);
const claimed = lines.filter(({ cells }) => !/[Nn]ot met|not\*{0,2} built/.test(cells[3] ?? ''));

test('every id that is met stands in a test that `npm test` runs', () => {
  const named = new Set(
    [...tests].flatMap((file) => idsNamed(readFileSync(join(root, file), 'utf8'))),
  );
  assert.deepEqual(
    claimed.flatMap(({ ids }) => ids).filter((id) => !named.has(id)),
    [],
  );
});

/** Their proofs take longer than `npm test` may: ten minutes of load. */
const longProofs = ['G1'];

test('every line that is met names a proof that `npm test` runs', () => {
  const proofs = (cell: string): readonly string[] =>
    [...cell.matchAll(/`(test\/[^`]*)`/g)].map(([, path = '']) => path);
  assert.deepEqual(
    claimed
      .filter(({ cells }) => !proofs(cells[2] ?? '').some((path) => tests.has(path)))
      .flatMap(({ ids }) => ids),
    longProofs,
  );
});

/** The comments of a program, of either of its languages. */
const comments = /\/\*[^]*?\*\/|(?:^|\s)\/\/.*$|;;.*$/gm;
/** Ids, also with a hyphen: `F81`, `X-2`, `EM`. V8 is the engine. */
const anyId = /(?<![-\w])(?!V8\b)(?:[A-Z]{1,2}-?\d{1,3}|EM)\b(?!\.\d)/g;

test('every id in a comment of a program has a line', () => {
  const files = globSync(['{src,bench,dashboard/src}/**/*.{ts,tsx,wat}', 'scripts/**/*.mjs'], {
    cwd: root,
  });
  const known = new Set(lines.flatMap(({ ids }) => ids));
  const named = files.flatMap((file) =>
    (readFileSync(join(root, file), 'utf8').match(comments) ?? [])
      .flatMap((comment) => comment.match(anyId) ?? [])
      .map((id) => ({ file, id })),
  );
  assert.ok(named.length > 300);
  assert.deepEqual(
    named.filter(({ id }) => !known.has(id)),
    [],
  );
});

test('every file that it names is there', () => {
  const paths = [...text.matchAll(/`((?:test|bench|docs|src|scripts)\/[^`\s]*)`/g)].map(
    ([, path = '']) => path,
  );
  assert.ok(paths.length > 100);
  assert.deepEqual(
    [...new Set(paths)].filter((path) => !existsSync(join(root, path))),
    [],
  );
});

test('every command that it names is there', () => {
  const scripts: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts;
  for (const [, name = ''] of text.matchAll(/`npm run ([a-z]+)/g)) {
    assert.ok(Object.hasOwn(Object(scripts), name), `npm run ${name}`);
  }
});
