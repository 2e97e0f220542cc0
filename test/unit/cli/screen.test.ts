/** issue 8.6: what the program writes to a terminal, to a file, and to one that wants no colours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assert as check, array, constantFrom, integer, property, string } from 'fast-check';
import { fitted, padded, paint, screenOf, widthOf } from '../../../src/cli/screen.ts';
import { columns, printable, printableLines } from '../../../src/cli/table.ts';

const terminal = { isTTY: true, columns: 100 };

test('issue 8.6 colours: FORCE_COLOR first, then NO_COLOR, then whether it is a terminal', () => {
  const colour = (stream: object, env: { readonly [name: string]: string }): boolean =>
    screenOf(stream, env).colour;
  assert.equal(colour(terminal, {}), true);
  assert.equal(colour({}, {}), false);
  assert.equal(colour(terminal, { NO_COLOR: '1' }), false);
  assert.equal(colour(terminal, { NO_COLOR: '' }), true, 'an empty one says nothing');
  assert.equal(colour({}, { FORCE_COLOR: '1' }), true);
  assert.equal(colour(terminal, { FORCE_COLOR: '0' }), false);
  assert.equal(colour(terminal, { FORCE_COLOR: '1', NO_COLOR: '1' }), true);
  assert.equal(colour(terminal, { TERM: 'dumb' }), false);
});

test('issue 8.6 the width is that of a terminal, and of nothing else', () => {
  assert.equal(screenOf(terminal, {}).columns, 100);
  assert.equal(screenOf({ isTTY: true, columns: 0 }, {}).columns, 80);
  assert.equal(screenOf({ columns: 100 }, {}).columns, undefined);
  assert.equal(screenOf(terminal, { TERM: 'dumb' }).columns, undefined);
});

test('B65 wide characters take two columns, combining marks none', () => {
  for (const [text, width] of [
    ['', 0],
    ['abc', 3],
    ['你好', 4],
    ['ｱ', 1],
    ['한국어', 6],
    ['🦀', 2],
    ['e\u0301', 1],
    ['né', 2],
    ['Ω', 1],
  ] as const) {
    assert.equal(widthOf(text), width, text);
  }
  assert.equal(fitted('你好世界', 5), '你好…');
  assert.equal(padded('你', 4), '你  ');
});

test('B65 what could move the cursor or colour the terminal is shown as ?', () => {
  const escapes = '\u001B[31mred\u001B]0;title\u0007\u009b2J\r\n\u202Eevil\u200F';
  assert.ok(!/[\p{Cc}\p{Cf}]/u.test(printable(escapes)));
  assert.equal(printableLines('a\u001B[2J\nb'), 'a?[2J\nb');
  const table = columns([['NAME'], [escapes]], {
    head: true,
    screen: { colour: false, columns: 80 },
  });
  assert.equal(table.split('\n').length, 3);
  assert.ok(!table.includes('\u001B'));
});

test('issue 8.6 no row is wider than the terminal where that can be, and nothing is cut in a file', () => {
  const cell = string({ unit: constantFrom('a', 'W', '你', '🦀', ' ', '-'), maxLength: 70 });
  check(
    property(
      array(array(cell, { minLength: 4, maxLength: 4 }), { minLength: 1 }),
      integer({ min: 40, max: 200 }),
      (rows, width) => {
        const shown = columns(rows, { screen: { colour: false, columns: width } });
        for (const line of shown.split('\n')) assert.ok(widthOf(line) <= width, `${widthOf(line)}`);
        const file = columns(rows);
        for (const text of rows.flat()) assert.ok(file.includes(text));
      },
    ),
  );
});

test('A13 identifiers are never cut: other columns are wrapped, or each row becomes a block', () => {
  const id = 'openrouter/anthropic/claude-sonnet-5';
  const why = 'down: the provider answered 503 three times in a row, next try in 30 s';
  const rows = [
    ['MODEL', 'TARGET', 'HEALTH'],
    ['fast', id, why],
    ['', 'local/tiny', 'healthy'],
    [id, id, 'unknown'],
  ];
  const look = { head: true, whole: [0, 1] };
  for (const width of [20, 40, 60, 80, 100, 120]) {
    const shown = columns(rows, { ...look, screen: { colour: false, columns: width } });
    const count = shown.split(id).length - 1;
    assert.equal(count, 3, `${width}: ${shown}`);
    assert.ok(!shown.includes('…'), shown);
    assert.equal(shown.match(/\S+/g)?.filter((word) => why.split(' ').includes(word)).length, 15);
  }
  const wide = columns(rows, { ...look, screen: { colour: false, columns: 100 } });
  for (const line of wide.split('\n')) assert.ok(widthOf(line) <= 100, line);
  const narrow = columns(rows, { ...look, screen: { colour: false, columns: 60 } });
  assert.match(narrow, /^MODEL {3}fast\nTARGET {2}openrouter\/\S+\nHEALTH {2}down: /);
  assert.match(narrow, /\nTARGET {2}local\/tiny\nHEALTH {2}healthy\n\nMODEL {3}openrouter/);
  assert.equal(columns(rows, look), columns(rows, { head: true }), 'in a file nothing changes');
});

test('issue 8.6 columns stand below each other, wide names or not', () => {
  const rows = [
    ['NAME', 'STATE'],
    ['模型', 'here'],
    ['model', 'here'],
  ];
  assert.equal(columns(rows), 'NAME   STATE\n模型   here\nmodel  here\n');
});

test('issue 8.6 colours change nothing of what stands there', () => {
  const rows = [
    ['A', 'B'],
    ['one', 'default'],
  ];
  const look = { head: true, colourOf: () => 'dim' as const };
  const coloured = columns(rows, { ...look, screen: { colour: true } });
  assert.ok(coloured.includes('\u001B[1mA  \u001B[22m'));
  assert.equal(coloured.replaceAll(new RegExp(`${'\u001B'}\\[\\d+m`, 'g'), ''), columns(rows));
  assert.equal(paint({ colour: false }, 'red', 'x'), 'x');
});
