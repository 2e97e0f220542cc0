/** Rows of text in columns. */
import {
  fitted,
  noScreen,
  padded,
  paint,
  widthOf,
  wrapped,
  type Colour,
  type Screen,
} from './screen.ts';

const maxWidth = 48;
/** Narrower no column is made for the sake of the others. */
const minWidth = 6;
/** Longer words of wrapped columns are broken. */
const maxWord = 16;
/** Below it the columns of a table with a head say too little: each row becomes a block of lines. */
const usefulWidth = 9;
const gap = 2;

export interface Look {
  /** Absent = a file: every cell is written out, without colours. */
  readonly screen?: Screen | undefined;
  /** The first row names the columns. */
  readonly head?: boolean;
  /** Columns of identifiers, which people copy: they are never cut. Named, the other columns are wrapped. */
  readonly whole?: readonly number[];
  /** The colour of a cell. */
  readonly colourOf?: (cell: string, column: number) => Colour | undefined;
}

/**
 * Text that cannot move the cursor or turn the terminal's colours: names come from clients.
 * @returns the text with `?` for every control and direction character.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '?');
}

/** The same of each line of a text of several. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}

/**
 * Pads every column but the last to its widest cell; a cell beyond 48 columns widens only its row. On a terminal no row is
 * wider than it: the widest columns are narrowed first, and their cells cut, or wrapped where `whole` names the others. Where
 * too little would be left of them, each row is printed as lines of its own, with the names of the head, and nothing is cut.
 */
export function columns(rows: readonly (readonly string[])[], look: Look = {}): string {
  const { screen = noScreen, head = false, whole } = look;
  const safe = rows.map((row) => row.map(printable));
  if (head && isTooNarrow(safe, screen, whole)) return blocks(safe, screen, whole ?? []);
  const widths = screen.columns === undefined ? usual(safe) : narrowed(safe, screen.columns, whole);
  return safe.map((row, r) => rowText(row, widths, r === 0, look)).join('');
}

function rowText(
  row: readonly string[],
  widths: readonly number[],
  isFirst: boolean,
  { screen = noScreen, head = false, colourOf, whole }: Look,
): string {
  const cells: readonly (readonly string[])[] = row.map((text, i) => {
    const width = widths[i] ?? 0;
    if (screen.columns === undefined) return [text];
    return whole === undefined ? [fitted(text, width)] : wrapped(text, width);
  });
  const height = Math.max(...cells.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) => {
    const shown = cells.map((texts, i) => {
      const text = texts[line] ?? '';
      const placed = i === row.length - 1 ? text : padded(text, widths[i] ?? 0);
      const colour = head && isFirst ? 'bold' : colourOf?.(row[i] ?? '', i);
      return colour === undefined ? placed : paint(screen, colour, placed);
    });
    const text = shown.join(' '.repeat(gap));
    return `${whole === undefined ? text : text.trimEnd()}\n`;
  }).join('');
}

function isTooNarrow(
  rows: readonly (readonly string[])[],
  { columns: room }: Screen,
  whole: readonly number[] | undefined,
): boolean {
  if (room === undefined) return false;
  const floors = floorsOf(rows, whole);
  const useful = widest(rows).map(
    (width, i) =>
      Math.max(Math.min(width, usefulWidth), whole === undefined ? 0 : (floors[i] ?? 0)) + gap,
  );
  return useful.reduce((sum, width) => sum + width, -gap) > room;
}

/** What is empty is omitted. A row without a first cell continues the row before. */
function blocks(
  [head = [], ...rows]: readonly (readonly string[])[],
  screen: Screen,
  whole: readonly number[],
): string {
  const { columns: room = Infinity } = screen;
  const label = Math.max(...head.map(widthOf));
  const width = Math.max(minWidth, room - label - gap);
  return rows
    .map((row, r) => {
      const lines = row.map((cell, i) => {
        if (cell.trim() === '') return '';
        const name = padded(fitted(head[i] ?? '', room), label);
        const texts = whole.includes(i) ? [cell.trim()] : wrapped(cell.trim(), width);
        const value = texts.join(`\n${' '.repeat(label + gap)}`);
        return `${paint(screen, 'bold', name)}${' '.repeat(gap)}${value}\n`;
      });
      return `${r === 0 || row[0] === '' ? '' : '\n'}${lines.join('')}`;
    })
    .join('');
}

function usual(rows: readonly (readonly string[])[]): readonly number[] {
  return widest(rows).map((width) => Math.min(width, maxWidth));
}

function widest(rows: readonly (readonly string[])[]): number[] {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, widthOf(cell));
    });
  }
  return widths;
}

/** The widest column gives way first. A column that is wrapped keeps room for its longest word. */
function narrowed(
  rows: readonly (readonly string[])[],
  room: number,
  whole: readonly number[] | undefined,
): readonly number[] {
  const widths = widest(rows);
  const floors = floorsOf(rows, whole);
  for (;;) {
    const total = widths.reduce((sum, width) => sum + width + gap, -gap);
    const most = Math.max(...widths.filter((width, i) => width > (floors[i] ?? 0)));
    if (total <= room || most < minWidth) return widths;
    widths[widths.findIndex((width, i) => width === most && width > (floors[i] ?? 0))] = most - 1;
  }
}

/** How narrow each column may get. */
function floorsOf(
  rows: readonly (readonly string[])[],
  whole: readonly number[] | undefined,
): readonly number[] {
  const widths = widest(rows);
  if (whole === undefined) return widths.map(() => minWidth);
  const words = widest(
    rows.map((row) =>
      row.map((cell) => cell.split(' ').reduce((a, b) => (b.length > a.length ? b : a), '')),
    ),
  );
  return widths.map((width, i) => (whole.includes(i) ? width : Math.min(words[i] ?? 0, maxWord)));
}
