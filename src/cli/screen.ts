/** What a stream of the program is written to: how wide it is, whether it shows colours, how wide a text is on it. */
import { wantsColour } from '../core/display.ts';

export interface Screen {
  /** Absent = no terminal: nothing is cut to a width. */
  readonly columns?: number;
  readonly colour: boolean;
}

/** A file or a pipe. */
export const noScreen: Screen = { colour: false };

interface Stream {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const usualColumns = 80;

/** A stream of the process, under the environment's wishes. */
export function screenOf(
  { isTTY = false, columns = 0 }: Stream,
  env: { readonly [name: string]: string | undefined },
): Screen {
  const isTerminal = isTTY && env['TERM'] !== 'dumb';
  const colour = wantsColour(isTTY, env);
  // Some terminals say that they have no columns.
  return { colour, ...(isTerminal ? { columns: columns > 0 ? columns : usualColumns } : {}) };
}

const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
} as const;

export type Colour = keyof typeof codes;

export function paint({ colour }: Screen, how: Colour, text: string): string {
  if (!colour || text === '') return text;
  const [on, off] = codes[how];
  return `\u001B[${on}m${text}\u001B[${off}m`;
}

const invisible = /\p{Mn}|\p{Me}|\u200B|\u200D|\uFE0F/u;
/** East Asian wide and full-width forms, and what is shown as a picture by default. */
const wide =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97C\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{16FE0}-\u{18DFF}\u{1B000}-\u{1B2FF}\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u;
const plain = /^[\x20-\x7e]*$/;

/** How many columns a text takes that holds no control characters. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += widthOfOne(character);
  return width;
}

function widthOfOne(character: string): number {
  if (invisible.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** The beginning of a text that takes no more columns; where something is omitted it ends in `…`. */
export function fitted(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let kept = '';
  let width = 0;
  for (const character of text) {
    width += widthOfOne(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

/** The text in lines of at most `columns` columns, broken at spaces, and within words that are longer. */
export function wrapped(text: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  const push = (word: string): void => {
    const longer = line === '' ? word : `${line} ${word}`;
    if (widthOf(longer) <= columns) {
      line = longer;
      return;
    }
    if (line !== '') lines.push(line);
    line = '';
    for (const character of word) {
      if (line !== '' && widthOf(line) + widthOfOne(character) > columns) {
        lines.push(line);
        line = '';
      }
      line += character;
    }
  };
  for (const word of text.split(' ')) push(word);
  return [...lines, line];
}

export function padded(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - widthOf(text)));
}
