/** S21: SQL is text of the program; values reach it as parameters, never as text. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { templatesOf } from '../../support/templates.ts';

const src = join(import.meta.dirname, '..', '..', '..', 'src');
const files = globSync('**/*.ts', { cwd: src })
  .map((name) => name.replaceAll('\\', '/'))
  .sort();
const textOf = (name: string): string => readFileSync(join(src, name), 'utf8');

const sql =
  /\b(SELECT|INSERT|UPDATE|DELETE|WHERE|VALUES|PRAGMA|CREATE|ALTER|DROP|LISTEN|NOTIFY|FROM|ORDER BY|GROUP BY|SET)\b/;
const joined =
  /['"`][^'"`\n]*\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|VALUES)\b[^'"`\n]*['"`]\s*\+/;

/** What may be put into SQL: names of columns and tables, numbers of parameters, other pieces of SQL. */
const constants: readonly RegExp[] = [
  // Pieces of statements that the module defines.
  /^(totals|asFloats|inGroup|isWithin|answered|added|sums|summed|place|inPage|wanted|label|source)$/,
  /^(nextStamp|unknownModelError|maxScanned|changesChannel|leaseChannel|arePaid|sliceShare|unit|table|column|parameter)$/,
  /^(columns|isWanted|inPeriod|own|at|callSums|maxLooks \+ 1|maxFailures( \+ 1)?)$/,
  // Columns that the module lists.
  /^\w*[cC]olumns\.join\(', '\)$/,
  /^faultKinds\.map\(\(\{ fault, column \}\) => `(\(fault = '\$\{fault\}'\)::integer|fault IS '\$\{fault\}') AS \$\{column\}`\)\.join\(', '\)$/,
  /^summedClasses\.map\(\(\{ column \}\) => `charged_\$\{column\} AS \$\{column\}`\)\.join\(', '\)$/,
  // The schemas: descriptions of tables, and constants.
  /^columnsOf\((key|audit|call|attempt|sum|person|session)Table\)$/,
  /^(applicationId|schemaVersion|tables|counterSchema|answerFunctions|responseFunctions)$/,
  /^(attemptInput|groupInput|values|added)\.join\(', '\)$/,
  /^\w+Columns\.map\(\(name\) => `(\$\{name\} = \?|sum\(\$\{name\}\))`\)\.join\(', '\)$/,
  /^columns\.map\(\(\) => '\?'\)\.join\(', '\)$/,
  // Parameters by their number.
  /^parameters\(\w+\.length( \+ 1|, 2)?\)$/,
  /^keyColumns\.length \+ 1$|^(callsOfPiece|claimGraceMs|storeNow)$/,
  // Of closed lists; anything else gives undefined, which is no SQL.
  /^(by === undefined \? "''" : )?labels\[by\]$|^(sources|tables|callsOf)\[source\]$|^labelOf\(query\)$|^sources\.(days|hours)$/,
  // Functions that are given constants.
  /^where\(source, isChosen \? `\$\{inGroup\} AND \$\{label\} = ANY\(\$10::text\[\]\)` : inGroup\)$/,
  /^rowsOf\((\d|sums|groups|spending), (\w+Input|callColumns|\['group_id', \.\.\.groupInput\]|\['id', 'seen_at', 'call'\])\)$/,
  /^addSums\('usage_(hours|days)', (hourMs|dayMs)\)$|^(addSpending|takeOffLeases|addRollUps)\((\d, )?\d\)$/,
  /^addTotals\('total_(hours|days)', \{ unit: (hourMs|dayMs), groups \}\)$|^summedByHour\(sums\)$/,
  /^withSums\(table\)$|^hourMs$|^dayMs$|^totalTables\[source\]$/,
  /^totalKinds\.map\(\(kind\) => `'\$\{kind\}'`\)\.join\(', '\)$/,
  /^sumColumns\.map\(\(name\) => `\$\{name\}::double precision AS \$\{name\}`\)\.join\(', '\)$/,
  /^insertInto\('usage_(hours|days)', \['at', 'group_id', \.\.\.sumColumns\]\)$/,
  /^insertInto\(table, \['kind', 'at', 'name', \.\.\.sumColumns\]\)$/,
];

/** A copy names each table that it finds. `orderedTables` lets only plain names through. */
const namesOfCopies: readonly RegExp[] = [
  /^(name|names\.join\(', '\)|measures\.join\(', '\)|list|from|sourceOf\(name\)|groupText)$/,
  /^columns\.map\(\(column\) => `\$\{of\(column\)\} AS \$\{column\}`\)\.join\(', '\)$/,
  /^(keys|behind)$/,
  // Parameters.
  /^places\.join\(', '\)$|^key\.map\(\(\) => '\?'\)\.join\(', '\)$/,
  /^key\.map\(\(_, i\) => `\$\$\{i \+ 1\}`\)\.join\(', '\)$|^\(after\?\.length \?\? 0\) \+ 1$/,
];

test('S21 templates are found, also within templates', () => {
  const found = templatesOf('const a = "`no`"; // `no`\n`x ${ f(`y ${1}`, { b }) } z`; `w`;');
  assert.deepEqual(
    found.map(({ text, expressions, line }) => [text, expressions, line]),
    [
      ['y ${1}', ['1'], 2],
      ['x ${ f(`y ${1}`, { b }) } z', ['f(`y ${1}`, { b })'], 2],
      ['w', [], 2],
    ],
  );
});

test('S21 only constants of the program are put into SQL', () => {
  let seen = 0;
  for (const file of files) {
    for (const { text, expressions, line } of templatesOf(textOf(file))) {
      if (expressions.length === 0 || !sql.test(text)) continue;
      for (const expression of expressions) {
        seen += 1;
        const forms = file.startsWith('store/copy/') ? [...constants, ...namesOfCopies] : constants;
        const known = forms.some((form) => form.test(expression));
        assert.ok(
          known && file.startsWith('store/'),
          `src/${file}:${line}: \${${expression}} in SQL: pass values as parameters; list constants in this test`,
        );
      }
    }
  }
  assert.ok(seen > 50, `only ${seen} found`);
});

test('S21 no SQL is put together with +', () => {
  for (const file of files) {
    const found = joined.exec(textOf(file));
    assert.equal(found, null, `src/${file}: ${found?.[0] ?? ''}`);
  }
});
