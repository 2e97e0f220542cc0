/** The numbered cases of wire/gemini.md §11, bedrock.md §13 and azure.md §9: each has a test that begins with its number. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const lists = { gemini: 56, bedrock: 60, azure: 50 } as const;
type Cloud = keyof typeof lists;

/** What has no test, and why. */
const without: { readonly [id: string]: string } = {
  'azure 49': 'no library is optional: docs/decisions/0053-credentials-of-clouds.md',
};

const root = join(import.meta.dirname, '..');

/** Its tests have their names from rows of a table. */
const table = 'unit/config/clouds.test.ts';

/** `bedrock 14 and 15`, `azure 2–4`; tests of `clouds/gemini-*` begin with the number itself. */
function casesIn(file: string): readonly string[] {
  const text = readFileSync(join(root, file), 'utf8');
  const names =
    file === table
      ? /['"`](gemini |bedrock |azure |)(\d[^'"`]*)/g
      : /\b(?:it|test|describe)\(\s*['"`](gemini |bedrock |azure |)(\d[^'"`]*)/g;
  const bare = file.startsWith('clouds/gemini-');
  return [...text.matchAll(names)].flatMap(([, named = '', rest = '']) => {
    const cloud = named.trim() || (bare ? 'gemini' : '');
    if (!(cloud in lists)) return [];
    return numbersOf(rest).map((number) => `${cloud} ${number}`);
  });
}

/** The numbers that a name begins with. */
function numbersOf(name: string): readonly number[] {
  const numbers: number[] = [];
  let rest = name;
  for (;;) {
    const found = /^(\d{1,2})(?:–(\d{1,2}))?(?:, | and |: | |$)/.exec(rest);
    if (found === null) return numbers;
    const [whole, first, last = first] = found;
    for (let n = Number(first); n <= Number(last); n++) numbers.push(n);
    rest = rest.slice(whole.length);
  }
}

test('issue 22: each numbered case of the three clouds has a test, or a reason why it has none', () => {
  const files = globSync('**/*.test.ts', { cwd: root }).filter(
    (file) => file !== 'clouds/cases.test.ts',
  );
  const tested = new Set(files.flatMap(casesIn));
  const missing = (Object.keys(lists) as Cloud[]).flatMap((cloud) =>
    Array.from({ length: lists[cloud] }, (_, i) => `${cloud} ${i + 1}`).filter(
      (id) => !tested.has(id) && without[id] === undefined,
    ),
  );
  assert.deepEqual(missing, []);
  const excused = Object.keys(without).filter((id) => tested.has(id));
  assert.deepEqual(excused, [], 'these have tests');
});
