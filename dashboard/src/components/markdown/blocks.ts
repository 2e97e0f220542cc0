/**
 * Markdown as models write it, in blocks: headings, paragraphs, lists, quotes, code, tables, rules. HTML is text. Line
 * by line, so a long answer can be read again with every piece of its stream.
 */

export type Block =
  | { readonly kind: 'heading'; readonly level: number; readonly text: string }
  | { readonly kind: 'paragraph'; readonly text: string }
  | { readonly kind: 'code'; readonly language: string; readonly text: string }
  | { readonly kind: 'quote'; readonly blocks: readonly Block[] }
  | ListBlock
  | TableBlock
  | { readonly kind: 'rule' };

export interface ListBlock {
  readonly kind: 'list';
  /** Number of the first item; undefined: bullets. */
  readonly start: number | undefined;
  readonly items: readonly (readonly Block[])[];
}

export interface TableBlock {
  readonly kind: 'table';
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Of each column. */
  readonly align: readonly ('left' | 'center' | 'right')[];
}

/** Quotes and lists in each other; what is deeper is a paragraph. */
const maxDepth = 8;

export function blocksOf(text: string): readonly Block[] {
  return readBlocks(text.replaceAll('\r\n', '\n').split('\n'), 0);
}

/** A block, and the line behind it. */
interface Read {
  readonly block: Block;
  readonly end: number;
}

type Reader = (lines: readonly string[], at: number, depth: number) => Read | undefined;

function readBlocks(lines: readonly string[], depth: number): readonly Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const { block, end } = readBlock(lines, at, depth);
    blocks.push(block);
    at = end;
  }
  return blocks;
}

function readBlock(lines: readonly string[], at: number, depth: number): Read {
  const wanted = depth < maxDepth ? [...leaves, readQuote, readList] : leaves;
  for (const read of wanted) {
    const found = read(lines, at, depth);
    if (found !== undefined) return found;
  }
  return readParagraph(lines, at);
}

const leaves: readonly Reader[] = [readCode, readHeading, readRule, readTable];

function isBlank(line: string | undefined): boolean {
  return line === undefined || line.trim() === '';
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** An unclosed one ends with the text: the rest may be on its way. */
function readCode(lines: readonly string[], at: number): Read | undefined {
  const line = lines[at] ?? '';
  const fence = /^(`{3,}|~{3,})/.exec(line.trimStart())?.[0];
  const indent = indentOf(line);
  const language = line.slice(indent + (fence?.length ?? 0)).trim();
  if (fence === undefined || (fence.startsWith('`') && language.includes('`'))) return undefined;
  const isEnd = (each: string): boolean => {
    const text = each.trim();
    return text.startsWith(fence) && text === fence.charAt(0).repeat(text.length);
  };
  let end = at + 1;
  while (end < lines.length && !isEnd(lines[end] ?? '')) end += 1;
  const inside = lines.slice(at + 1, end).map((each) => withoutIndent(each, indent));
  return { block: { kind: 'code', language, text: inside.join('\n') }, end: end + 1 };
}

function withoutIndent(line: string, indent: number): string {
  return line.slice(Math.min(indent, indentOf(line)));
}

function readHeading(lines: readonly string[], at: number): Read | undefined {
  const line = (lines[at] ?? '').trim();
  const level = /^#{1,6}(?=\s)/.exec(line)?.[0].length;
  if (level === undefined) return undefined;
  const text = line.slice(level).trim();
  const closing = /\s#+$/.exec(text)?.index;
  return { block: { kind: 'heading', level, text: text.slice(0, closing) }, end: at + 1 };
}

function readRule(lines: readonly string[], at: number): Read | undefined {
  return isRule(lines[at] ?? '') ? { block: { kind: 'rule' }, end: at + 1 } : undefined;
}

function isRule(line: string): boolean {
  const text = line.replaceAll(' ', '');
  const [first = ''] = text;
  return text.length >= 3 && '-*_'.includes(first) && text === first.repeat(text.length);
}

function readQuote(lines: readonly string[], at: number, depth: number): Read | undefined {
  let end = at;
  while (lines[end]?.trimStart().startsWith('>') === true) end += 1;
  if (end === at) return undefined;
  const inside = lines.slice(at, end).map((line) => line.trimStart().replace(/^> ?/, ''));
  return { block: { kind: 'quote', blocks: readBlocks(inside, depth + 1) }, end };
}

interface Marker {
  readonly indent: number;
  /** Where the item's text begins. */
  readonly width: number;
  readonly number: number | undefined;
}

function markerOf(line: string): Marker | undefined {
  const indent = indentOf(line);
  const found = /^(?:[-*+]|(\d{1,9})[.)])(?=\s|$)/.exec(line.slice(indent));
  if (found === null || isRule(line)) return undefined;
  const [mark, digits] = found;
  return {
    indent,
    width: indent + mark.length + 1,
    number: digits === undefined ? undefined : Number(digits),
  };
}

/** Deeper lines belong to an item from two spaces on, as models write them. */
function readList(lines: readonly string[], at: number, depth: number): Read | undefined {
  const first = markerOf(lines[at] ?? '');
  if (first === undefined) return undefined;
  const items: string[][] = [];
  let end = at;
  for (; end < lines.length; end += 1) {
    const line = lines[end] ?? '';
    const marker = markerOf(line);
    const isOwn = marker !== undefined && marker.indent < first.indent + 2;
    if (isOwn && (marker.number === undefined) !== (first.number === undefined)) break;
    if (isOwn) items.push([line.slice(marker.width)]);
    else if (belongs(lines, end, first.indent)) {
      items.at(-1)?.push(withoutIndent(line, first.width));
    } else break;
  }
  const block: ListBlock = {
    kind: 'list',
    start: first.number,
    items: items.map((item) => readBlocks(item, depth + 1)),
  };
  return { block, end };
}

/** A line behind the marker of an item is part of it if it is deeper, or continues its paragraph. */
function belongs(lines: readonly string[], at: number, indent: number): boolean {
  const line = lines[at] ?? '';
  if (isBlank(line)) {
    const next = lines[at + 1];
    return next !== undefined && (indentOf(next) >= indent + 2 || markerOf(next) !== undefined);
  }
  if (indentOf(line) >= indent + 2) return true;
  return !isBlank(lines[at - 1]) && !startsBlock(line);
}

/** Also within a paragraph; there a number that is not 1 is the end of a sentence. */
function startsBlock(line: string): boolean {
  const text = line.trimStart();
  if (/^(?:`{3}|~{3}|#{1,6}\s|>)/.test(text) || isRule(line)) return true;
  const marker = markerOf(line);
  return marker !== undefined && (marker.number ?? 1) === 1;
}

function readTable(lines: readonly string[], at: number): Read | undefined {
  const head = lines[at] ?? '';
  const below = lines[at + 1]?.trim() ?? '';
  if (!head.includes('|') || !/^[|:\s-]+$/.test(below) || !below.includes('-')) return undefined;
  const names = cellsOf(head);
  const align = cellsOf(below).map(alignOf);
  if (names.length !== align.length) return undefined;
  let end = at + 2;
  const rows: (readonly string[])[] = [];
  for (; lines[end]?.includes('|') === true; end += 1) {
    const cells = cellsOf(lines[end] ?? '');
    rows.push(names.map((_, column) => cells[column] ?? ''));
  }
  return { block: { kind: 'table', head: names, rows, align }, end };
}

function alignOf(cell: string): TableBlock['align'][number] {
  if (!cell.endsWith(':')) return 'left';
  return cell.startsWith(':') ? 'center' : 'right';
}

/** An escaped bar, `\|`, belongs to the cell. */
function cellsOf(line: string): readonly string[] {
  const cells = line.trim().split(/(?<!\\)\|/);
  if (cells[0]?.trim() === '') cells.shift();
  if (cells.at(-1)?.trim() === '') cells.pop();
  return cells.map((cell) => cell.trim().replaceAll(String.raw`\|`, '|'));
}

function readParagraph(lines: readonly string[], at: number): Read {
  let end = at + 1;
  const goesOn = (line: string): boolean =>
    !isBlank(line) && !startsBlock(line) && readTable(lines, end) === undefined;
  while (end < lines.length && goesOn(lines[end] ?? '')) end += 1;
  const text = lines
    .slice(at, end)
    .map((line) => line.trim())
    .join('\n');
  return { block: { kind: 'paragraph', text }, end };
}
