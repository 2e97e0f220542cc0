/**
 * A config file as a person may see it: each secret is replaced by a placeholder with its path. The placeholder stands
 * for the value in the file on disk, at this path only, and only while the address that it is sent to stays.
 */
import { pathText } from '../errors.ts';
import type { ConfigPath } from '../yaml-text.ts';
import { boundKeys, isHidden, isHiddenComment, looksSecret } from './fields.ts';
import { readFileOnDisk } from './file-on-disk.ts';
import { type Leaf, type ReadLeaves, type TextRange, readLeaves } from './yaml-leaves.ts';

/** A problem of a text, in the wording of `check`. */
export interface EditProblem {
  /** From 1, as `column`; absent for the file as a whole. */
  readonly line?: number;
  readonly column?: number;
  /** Empty for the file as a whole. */
  readonly path: string;
  readonly message: string;
}

/** A secret of the file on disk. */
interface Kept {
  readonly placeholder: string;
  readonly range: TextRange;
  /** As it is in the file: in quotes, or over several lines. */
  readonly raw: string;
  readonly value: unknown;
  readonly isComment: boolean;
}

/** The positions of the retained secrets, in the file and in the text that a person sees. */
export interface MaskedFile {
  readonly text: string;
  /** Replaces each secret in a message by its placeholder. */
  scrub(message: string): string;
  /** The text that a person sent, with the secrets of the file instead of their placeholders. */
  restore(typed: string): RestoredText | readonly EditProblem[];
}

export interface RestoredText {
  readonly text: string;
  /** The line of the typed text that a line of `text` came from. */
  typedLine(line: number): number;
}

const isPlaceholder = (text: string): boolean => text.includes('<kept:');

/** Masks the text of a file. @returns why it cannot be shown, where secrets cannot be distinguished from the rest */
export function maskFile(text: string): MaskedFile | { readonly problem: string } {
  const read = readLeaves(text);
  if (read.broken !== undefined) {
    const { line, message, isSyntax } = read.broken;
    return {
      problem: isSyntax
        ? `line ${line} of the file is not valid YAML: ${message}`
        : `the file ${message}`,
    };
  }
  if (isPlaceholder(text)) return { problem: 'the file has a text that begins with <kept:' };
  const openKey = read.keys.find(({ value }) => looksSecret(String(value)));
  if (openKey !== undefined) {
    const { line } = read.position(openKey.range.start);
    return { problem: `the name on line ${line} of the file looks like a secret` };
  }
  const values = keptValues(read, text);
  const comments = keptComments(read, text, values);
  return new Masked(text, read, values, comments);
}

function keptValues({ leaves }: ReadLeaves, text: string): readonly Kept[] {
  const kept = new Map<number, Kept>();
  for (const { path, value, range } of leaves) {
    // An anchor's value has one placeholder, wherever aliases use it; one secret path is enough.
    if (kept.has(range.start) || !isHidden(path, value)) continue;
    const first = leaves.find((each) => each.range.start === range.start)?.path ?? path;
    const placeholder = `<kept: ${pathText(first)}>`;
    kept.set(range.start, {
      placeholder,
      range,
      raw: text.slice(range.start, range.end),
      value,
      isComment: false,
    });
  }
  return [...kept.values()];
}

function keptComments(
  { comments }: ReadLeaves,
  text: string,
  values: readonly Kept[],
): readonly Kept[] {
  const inValue = ({ start }: TextRange): boolean =>
    values.some(({ range }) => start >= range.start && start < range.end);
  return comments
    .filter((range) => !inValue(range) && isHiddenComment(text.slice(range.start, range.end)))
    .map((range, i) => {
      const raw = text.slice(range.start, range.end);
      return { placeholder: `# <kept: comment ${i + 1}>`, range, raw, value: raw, isComment: true };
    });
}

interface Piece {
  readonly range: TextRange;
  readonly by: string;
}

/** The text with these ranges replaced. */
function replaced(text: string, pieces: readonly Piece[]): string {
  let result = '';
  let end = 0;
  for (const { range, by } of pieces.toSorted((a, b) => a.range.start - b.range.start)) {
    result += text.slice(end, range.start) + by;
    end = range.end;
  }
  return result + text.slice(end);
}

class Masked implements MaskedFile {
  readonly text: string;
  readonly #values: readonly Kept[];
  readonly #comments: ReadonlyMap<string, Kept>;
  /** The text of the file, with placeholders instead of secrets. */
  readonly #leaves: readonly Leaf[];

  constructor(text: string, read: ReadLeaves, values: readonly Kept[], comments: readonly Kept[]) {
    this.#values = values;
    this.#comments = new Map(comments.map((each) => [each.placeholder, each]));
    this.text = replaced(
      text,
      [...values, ...comments].map((each) => ({ range: each.range, by: shownFor(each) })),
    );
    const byStart = new Map(values.map((each) => [each.range.start, each.placeholder]));
    this.#leaves = read.leaves.map((leaf) => {
      const placeholder = byStart.get(leaf.range.start);
      return placeholder === undefined ? leaf : { ...leaf, value: placeholder };
    });
  }

  scrub(message: string): string {
    return [...this.#values, ...this.#comments.values()].reduce((shown, { value, placeholder }) => {
      const secret = String(value);
      return secret.length < 4 ? shown : shown.replaceAll(secret, placeholder);
    }, message);
  }

  restore(typed: string): RestoredText | readonly EditProblem[] {
    const read = readLeaves(typed);
    if (read.broken !== undefined) {
      const { isSyntax, ...problem } = read.broken;
      // `check` has its own words for it, and names all of it.
      return isSyntax ? { text: typed, typedLine: (line) => line } : [{ ...problem, path: '' }];
    }
    const { problems, placeholders, values } = this.#placeholders(typed, read);
    if (problems.length > 0) return problems;
    const asBefore = restored(typed, placeholders, ({ raw }) => raw);
    const found = readLeaves(asBefore.text).leaves.map(({ value }) => value);
    const wanted = read.leaves.map(({ range, value }) => values.get(range.start) ?? value);
    if (JSON.stringify(found) === JSON.stringify(wanted)) return asBefore;
    // Its old form does not fit at the new path: indented elsewhere, or within braces.
    return restored(typed, placeholders, ({ raw, value, isComment }) =>
      isComment ? raw : JSON.stringify(String(value)),
    );
  }

  /** Which secret belongs where, and which placeholders are where they may not. */
  #placeholders(typed: string, read: ReadLeaves) {
    const problems: EditProblem[] = [];
    const placeholders = new Map<number, Placeholder>();
    const values = new Map<number, unknown>();
    const report = (start: number, path: string, message: string): void =>
      void problems.push({ ...read.position(start), path, message });
    for (const leaf of read.leaves) {
      const { path, value, range } = leaf;
      if (typeof value !== 'string' || !isPlaceholder(value)) continue;
      const kept = this.#values.find(({ placeholder }) => placeholder === value);
      const problem = this.#problemOf(leaf, kept, read.leaves);
      if (kept === undefined || problem !== undefined) {
        report(range.start, pathText(path), `${value.slice(0, 200)} ${problem}`);
      } else {
        placeholders.set(range.start, { range, kept });
        values.set(range.start, kept.value);
      }
    }
    for (const { value, range } of read.keys) {
      if (isPlaceholder(String(value))) report(range.start, '', 'a placeholder cannot be a name');
    }
    for (const range of read.comments) {
      const comment = typed.slice(range.start, range.end);
      const kept = this.#comments.get(comment.trimEnd());
      if (kept !== undefined) placeholders.set(range.start, { range, kept });
      else if (isPlaceholder(comment)) report(range.start, '', inComment);
    }
    return { problems, placeholders: [...placeholders.values()], values };
  }

  /** Why a retained value may not be at the path of a leaf. */
  #problemOf(leaf: Leaf, kept: Kept | undefined, typed: readonly Leaf[]): string | undefined {
    if (kept === undefined) return 'stands for no value of the file: type the value';
    const path = withoutPositions(leaf.path);
    const before = this.#leaves.filter(
      (each) => each.value === kept.placeholder && withoutPositions(each.path) === path,
    );
    if (before.length === 0) return 'was moved from its path: type the value again';
    // Else a kept secret could be sent to any address.
    const address = addressAround(leaf, typed);
    return before.some((each) => addressAround(each, this.#leaves) === address)
      ? undefined
      : 'was kept for another address: type the value again';
  }
}

interface Placeholder {
  readonly range: TextRange;
  readonly kept: Kept;
}

const inComment =
  'a placeholder in a comment keeps nothing: remove it, and note the value elsewhere';

/** `webhooks[].secret`: entries of a list may be moved within it, with their address. */
function withoutPositions(path: ConfigPath): string {
  return JSON.stringify(path.map((step) => (typeof step === 'number' ? 0 : step)));
}

/** The addresses in the map of a value, and in the maps around that: they say where the value is sent. */
function addressAround({ path }: Leaf, leaves: readonly Leaf[]): string {
  const around = leaves.filter(
    (each) =>
      each.path.length > 1 &&
      each.path.length <= path.length &&
      boundKeys.has(String(each.path.at(-1))) &&
      each.path.slice(0, -1).every((step, i) => step === path[i]),
  );
  return JSON.stringify(
    around.map((each) => [each.path.length, each.path.at(-1), each.value]).toSorted(),
  );
}

/** The text that a person sees instead of it. The line end after a text over several lines belongs to it. */
function shownFor({ placeholder, raw, isComment }: Kept): string {
  if (isComment) return placeholder;
  return JSON.stringify(placeholder) + (raw.endsWith('\n') ? '\n' : '');
}

function restored(
  typed: string,
  placeholders: readonly Placeholder[],
  write: (kept: Kept) => string,
): RestoredText {
  const pieces = placeholders
    .toSorted((a, b) => a.range.start - b.range.start)
    .map(({ range, kept }) => {
      const by = write(kept);
      // The line end that `shownFor` added.
      const end = by.endsWith('\n') && typed[range.end] === '\n' ? range.end + 1 : range.end;
      return { range: { start: range.start, end }, by };
    });
  /** Of the restored text: the first line after each piece, and how many lines it added before. */
  const shifts: { readonly from: number; readonly start: number; readonly added: number }[] = [];
  let added = 0;
  for (const { range, by } of pieces) {
    const start = linesIn(typed.slice(0, range.start)) + added + 1;
    added += linesIn(by) - linesIn(typed.slice(range.start, range.end));
    shifts.push({ from: start + linesIn(by), start, added });
  }
  return {
    text: replaced(typed, pieces),
    typedLine: (line) => {
      const inside = shifts.findIndex(({ start, from }) => line > start && line < from);
      const at = inside === -1 ? line : (shifts[inside]?.start ?? line);
      return at - (shifts.findLast(({ start }) => start < at)?.added ?? 0);
    },
  };
}

function linesIn(text: string): number {
  return text.split('\n').length - 1;
}

/**
 * Why a config file was refused, for people who may not read the file: the message without secrets of the file. If the
 * file cannot be masked, the message quotes nothing.
 * @param path of the config file; undefined: there is none
 */
export function withoutValuesOf(path: string | undefined, message: string): string {
  if (path === undefined) return message;
  const file = readFileOnDisk(path);
  const masked = 'problem' in file ? file : maskFile(file.text);
  if ('scrub' in masked) return masked.scrub(message);
  return message
    .split('\n')
    .map((line) => {
      const [from, to] = [line.indexOf('"'), line.lastIndexOf('"')];
      return from === to ? line : `${line.slice(0, from + 1)}…${line.slice(to)}`;
    })
    .join('\n');
}
