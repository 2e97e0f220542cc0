/** The single values and the comments of a YAML text, each with its range in the text. */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseDocument,
  type Document,
  type Scalar,
} from 'yaml';
import type { ConfigPath } from '../yaml-text.ts';

/** A value that the file has at a path; behind an alias it is where the anchor is. */
export interface Leaf {
  readonly path: ConfigPath;
  readonly value: unknown;
  readonly range: TextRange;
}

/** Offsets in the text; the end is exclusive. */
export interface TextRange {
  readonly start: number;
  readonly end: number;
}

interface Broken {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  readonly message: string;
  /** The text is not YAML, which `check` finds, too. */
  readonly isSyntax: boolean;
}

export interface ReadLeaves {
  readonly leaves: readonly Leaf[];
  /** Keys of maps. */
  readonly keys: readonly Omit<Leaf, 'path'>[];
  readonly comments: readonly TextRange[];
  /** Why the values cannot be listed. */
  readonly broken?: Broken;
  position(offset: number): { readonly line: number; readonly column: number };
}

/** Aliases of aliases multiply. */
const maxLeaves = 100_000;

export function readLeaves(text: string): ReadLeaves {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    schema: 'core',
    uniqueKeys: false,
    prettyErrors: false,
  });
  const position = (offset: number) => {
    const { line, col: column } = lines.linePos(offset);
    return { line, column };
  };
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) {
    const message = error.message.split('\n')[0] ?? '';
    const broken = { ...position(error.pos[0]), message, isSyntax: true };
    return { leaves: [], keys: [], comments: [], broken, position };
  }
  const walk = new Walk(document);
  walk.visit(document.contents, []);
  if (walk.isTooLarge) {
    const message = `has more than ${maxLeaves} values, counted as often as aliases use them`;
    const broken = { line: 1, column: 1, message, isSyntax: false };
    return { leaves: [], keys: [], comments: [], broken, position };
  }
  const comments = commentsOf(text);
  if (comments === undefined) {
    const broken = { line: 1, column: 1, message: 'has control characters', isSyntax: false };
    return { leaves: [], keys: [], comments: [], broken, position };
  }
  return { leaves: walk.leaves, keys: walk.keys, comments, position };
}

class Walk {
  readonly leaves: Leaf[] = [];
  readonly keys: Omit<Leaf, 'path'>[] = [];
  readonly #document: Document;
  readonly #targets = new Map<unknown, unknown>();
  #visited = 0;

  constructor(document: Document) {
    this.#document = document;
  }

  get isTooLarge(): boolean {
    return this.#visited > maxLeaves;
  }

  visit(node: unknown, path: ConfigPath): void {
    this.#visited += 1;
    // An alias within its own anchor never ends.
    if (this.isTooLarge || path.length > 100) return;
    const target = this.#target(node);
    if (isSeq(target)) target.items.forEach((item, i) => this.visit(item, [...path, i]));
    if (isScalar(target)) this.leaves.push({ path, ...leafOf(target) });
    if (!isMap(target)) return;
    for (const { key, value } of target.items) {
      if (isScalar(key)) this.keys.push(leafOf(key));
      this.visit(value, [...path, String(isScalar(key) ? key.value : key)]);
    }
  }

  #target(node: unknown): unknown {
    if (!isAlias(node)) return node;
    // The library looks through the whole document for each.
    if (!this.#targets.has(node)) this.#targets.set(node, node.resolve(this.#document));
    return this.#targets.get(node);
  }
}

function leafOf({ value, range }: Scalar): Omit<Leaf, 'path'> {
  const [start = 0, end = 0] = range ?? [];
  return { value, range: { start, end } };
}

/** The marks that the lexer puts between the pieces of the text. */
const marks: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001F']);

/** Undefined where the pieces of the lexer are not the text. */
function commentsOf(text: string): readonly TextRange[] | undefined {
  const comments: TextRange[] = [];
  let offset = 0;
  let isValue = false;
  for (const piece of new Lexer().lex(text)) {
    if (marks.has(piece)) {
      isValue = piece === '\u001F';
      continue;
    }
    if (piece.startsWith('#') && !isValue)
      comments.push({ start: offset, end: offset + piece.length });
    offset += piece.length;
    isValue = false;
  }
  return offset === text.length ? comments : undefined;
}
