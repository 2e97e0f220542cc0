/** Rows of text in columns. */
import { fitted, noScreen, padded, paint, widthOf, type Colour, type Screen } from './screen.ts';

const maxWidth = 48;
/** Narrower no column is made for the sake of the others. */
const minWidth = 6;
/** Below it the columns of a table with a head say too little: each row becomes a block of lines. */
const usefulWidth = 9;
const gap = 2;

export interface Look {
  /** Absent = a file: every cell is written out, without colours. */
  readonly screen?: Screen | undefined;
  /** The first row names the columns. */
  readonly head?: boolean;
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
 * Pads every column but the last to its widest cell; a cell beyond 48 columns widens only its row. On a terminal
 * cells are cut so that no row is wider than it, the widest columns first; where too little would be left of
 * them, each row stands as lines of its own, with the names of the head.
 */
export function columns(rows: readonly (readonly string[])[], look: Look = {}): string {
  const { screen = noScreen, head = false, colourOf } = look;
  const safe = rows.map((row) => row.map(printable));
  if (head && isTooNarrow(safe, screen)) return blocks(safe, screen);
  const widths = screen.columns === undefined ? usual(safe) : narrowed(safe, screen.columns);
  return safe
    .map((row, r) => {
      const cells = row.map((cell, i) => {
        const width = widths[i] ?? 0;
        const text = screen.columns === undefined ? cell : fitted(cell, width);
        const shown = i === row.length - 1 ? text : padded(text, width);
        const colour = head && r === 0 ? 'bold' : colourOf?.(cell, i);
        return colour === undefined ? shown : paint(screen, colour, shown);
      });
      return `${cells.join(' '.repeat(gap))}\n`;
    })
    .join('');
}

function isTooNarrow(rows: readonly (readonly string[])[], { columns: room }: Screen): boolean {
  if (room === undefined) return false;
  const useful = widest(rows).map((width) => Math.min(width, usefulWidth) + gap);
  return useful.reduce((sum, width) => sum + width, -gap) > room;
}

/** What is empty is left out. */
function blocks([head = [], ...rows]: readonly (readonly string[])[], screen: Screen): string {
  const { columns: room = Infinity } = screen;
  const label = Math.max(...head.map(widthOf));
  return rows
    .map((row) =>
      row
        .map((cell, i) => {
          if (cell.trim() === '') return '';
          const name = padded(fitted(head[i] ?? '', room), label);
          const value = fitted(cell.trim(), Math.max(minWidth, room - label - gap));
          return `${paint(screen, 'bold', name)}${' '.repeat(gap)}${value}\n`;
        })
        .join(''),
    )
    .join('\n');
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

function narrowed(rows: readonly (readonly string[])[], room: number): readonly number[] {
  const widths = widest(rows);
  const total = (): number => widths.reduce((sum, width) => sum + width + gap, -gap);
  for (let over = total() - room; over > 0; over = total() - room) {
    const most = Math.max(...widths);
    if (most <= minWidth) break;
    // The widest goes down to the next one, or as far as is needed.
    const next = Math.max(minWidth, ...widths.filter((width) => width < most));
    const at = widths.indexOf(most);
    widths[at] = Math.max(next === most ? most - 1 : next, most - over);
    if (widths[at] === most) widths[at] = most - 1;
  }
  return widths;
}
