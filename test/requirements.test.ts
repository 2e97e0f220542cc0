/** Which requirement is proven where: an entry that no test names is one that nobody shows. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

/** How many entries each theme of requirements.md has. */
const themes = { A: 12, B: 16, C: 4, D: 7, E: 11, F: 8, G: 2, H: 6 } as const;

/** Entries whose subject comes with a later issue, and which. */
const later: ReadonlyMap<string, string> = new Map([['F6', 'prices: budgets and unpriced models']]);

/**
 * Tests of reliability.md: its rows have ids of their own (B1–B58 bad inputs, E1–E18 the error table,
 * F1–F73 faults, G…), which look like entries of requirements.md and prove other things.
 */
const othersIds = [
  'test/inputs/doors.test.ts',
  'test/inputs/bad-bodies.test.ts',
  'test/inputs/byte-rows.ts',
  'test/inputs/field-rows.ts',
  'test/inputs/conversation-rows.ts',
  'test/inputs/framing-rows.ts',
  'test/inputs/request-rows.ts',
  'test/inputs/raw.test.ts',
  'test/inputs/media-rows.ts',
  'test/inputs/limit-rows.ts',
  'test/unit/access/presented-key.test.ts',
  'test/unit/access/keys.test.ts',
  'test/faults/timeouts.test.ts',
  'test/faults/call-limit.test.ts',
  'test/faults/stop.test.ts',
  'test/contract/count-tokens.test.ts',
];

const root = join(import.meta.dirname, '..');

/** The names of tests, suites and rows: what stands in quotes behind `test(`, `describe(`, `id:`, `name:`. */
const named =
  /(?:\b(?:test|describe|it)\(\s*|\b(?:id|name):\s*|Row\(\s*)(['"`])((?:(?!\1)[^\\\n]|\\.)*)\1/g;
/** Keys of tables whose rows become tests. */
const keyed = /^\s*(['"`])((?:[A-H]\d{1,2} )+.*?)\1(?:: |,$)/gm;

interface Named {
  readonly file: string;
  readonly name: string;
}

function names(): readonly Named[] {
  const files = globSync('test/**/*.ts', { cwd: root }).filter(
    (file) => !othersIds.includes(file) && file !== 'test/requirements.test.ts',
  );
  return files.sort().flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return [...text.matchAll(named), ...text.matchAll(keyed)].map((found) => ({
      file,
      name: found[2] ?? '',
    }));
  });
}

/** Names begin with the ids that they prove; ranges (`D1-D7`) name all that they span. */
function idsOf(name: string): readonly string[] {
  const ids: string[] = [];
  for (const [, theme = '', from = '', to = from] of name.matchAll(
    /\b([A-H])(\d{1,2})(?:[-–]\1?(\d{1,2}))?\b/g,
  )) {
    for (let at = Number(from); at <= Number(to); at += 1) ids.push(`${theme}${at}`);
  }
  return ids;
}

describe('requirements.md', () => {
  const provenBy = new Map<string, Set<string>>();
  for (const { file, name } of names()) {
    for (const id of idsOf(name)) {
      const files = provenBy.get(id) ?? new Set();
      provenBy.set(id, files.add(file));
    }
  }
  for (const [theme, count] of Object.entries(themes)) {
    for (let at = 1; at <= count; at += 1) {
      const id = `${theme}${at}`;
      const reason = later.get(id);
      test(
        reason === undefined ? `${id} is named by a test` : `${id} comes later: ${reason}`,
        (context) => {
          const files = [...(provenBy.get(id) ?? [])];
          if (reason === undefined) assert.ok(files.length > 0, `no test is named ${id}`);
          context.diagnostic(files.join(' '));
        },
      );
    }
  }
});

/** Rows of wire/responses.md §11. */
const responsesRows = 84;

test('R-1 to R-84 of wire/responses.md are each named by a test', () => {
  const found = new Set(names().flatMap(({ name }) => name.match(/\bR-\d{1,2}\b/g) ?? []));
  const missing = Array.from({ length: responsesRows }, (_, i) => `R-${i + 1}`).filter(
    (id) => !found.has(id),
  );
  assert.deepEqual(missing, []);
});
