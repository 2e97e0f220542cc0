/** Where a text stops being JSON. V8 tells the position only sometimes, and quotes the content. */

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

const space = /[ \t\n\r]*/y;
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
/** A piece of a string's inside. Pieces in turn: one for all of it would need a stack as deep as it is long. */
const inside =
  // A JSON string may not hold raw control characters, so the expression must name them.
  // oxlint-disable-next-line no-control-regex
  /(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})){1,2000}/y;

/** Line and column (from 1) of the first character that cannot stand where it stands. */
export function locateJsonError(text: string): TextPosition {
  return position(text, firstError(text));
}

type Expected = 'value' | 'key' | 'key-or-end' | 'value-or-end' | 'after';

/** The offset of the first character that cannot stand where it stands; the length when more must come. */
export function firstError(text: string): number {
  const open: string[] = [];
  let expected: Expected = 'value';
  let at = skip(text, 0);
  while (at < text.length) {
    const step = advance(text, at, { open, expected });
    if (step === undefined) return at;
    expected = step.expected;
    at = skip(text, step.at);
  }
  return at;
}

interface Position {
  readonly open: string[];
  readonly expected: Expected;
}

interface Step {
  readonly at: number;
  readonly expected: Expected;
}

/** What may stand at `at`, and what is expected behind it; undefined when it may not stand there. */
function advance(text: string, at: number, { open, expected }: Position): Step | undefined {
  const char = text[at] ?? '';
  if (char === closer(open.at(-1)) && (expected === 'after' || expected.endsWith('or-end'))) {
    open.pop();
    return { at: at + 1, expected: 'after' };
  }
  if (expected === 'after') return afterValue(char, at, open.at(-1));
  if (expected.startsWith('key')) return afterKey(text, at);
  if (char === '{' || char === '[') {
    open.push(char);
    return { at: at + 1, expected: char === '{' ? 'key-or-end' : 'value-or-end' };
  }
  const end = match(text, at);
  return end === at ? undefined : { at: end, expected: 'after' };
}

function closer(bracket: string | undefined): string | undefined {
  if (bracket === undefined) return undefined;
  return bracket === '{' ? '}' : ']';
}

function afterValue(char: string, at: number, innermost: string | undefined): Step | undefined {
  if (char !== ',' || innermost === undefined) return undefined;
  return { at: at + 1, expected: innermost === '{' ? 'key' : 'value' };
}

function afterKey(text: string, at: number): Step | undefined {
  const end = text[at] === '"' ? match(text, at) : at;
  const colon = skip(text, end);
  return end === at || text[colon] !== ':' ? undefined : { at: colon + 1, expected: 'value' };
}

function skip(text: string, at: number): number {
  return matchOf(space, text, at);
}

/** Where the scalar that begins here ends; `at` when there is none. */
function match(text: string, at: number): number {
  return text[at] === '"' ? stringEnd(text, at) : matchOf(scalar, text, at);
}

function stringEnd(text: string, at: number): number {
  let i = at + 1;
  for (let behind = matchOf(inside, text, i); behind > i; behind = matchOf(inside, text, i)) {
    i = behind;
  }
  return text[i] === '"' ? i + 1 : at;
}

/** Where a sticky expression's match at this place ends; `at` when it does not match. */
function matchOf(expression: RegExp, text: string, at: number): number {
  expression.lastIndex = at;
  return expression.test(text) ? expression.lastIndex : at;
}

function position(text: string, offset: number): TextPosition {
  let line = 1;
  let lineStart = 0;
  for (let i = text.indexOf('\n'); i !== -1 && i < offset; i = text.indexOf('\n', i + 1)) {
    line += 1;
    lineStart = i + 1;
  }
  return { line, column: offset - lineStart + 1 };
}
