/** Where a text stops being JSON. V8 tells the position only sometimes, and quotes the content. */

export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

const space = /[ \t\n\r]*/y;
const scalar =
  /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

/** Line and column (from 1) of the first character that cannot stand where it stands. */
export function locateJsonError(text: string): TextPosition {
  return position(text, firstError(text));
}

/** Walks the text with a stack of open brackets; returns the offset at which it fails. */
function firstError(text: string): number {
  const open: ('{' | '[')[] = [];
  let at = skip(text, 0);
  let expect: 'value' | 'key' | 'key-or-end' | 'value-or-end' | 'after' = 'value';
  while (at < text.length) {
    const char = text[at];
    if (expect === 'after') {
      const innermost = open.at(-1);
      if (innermost === undefined) return at;
      if (char === ',') expect = innermost === '{' ? 'key' : 'value';
      else if (char === (innermost === '{' ? '}' : ']')) open.pop();
      else return at;
      at = skip(text, at + 1);
      continue;
    }
    if (expect.endsWith('or-end') && (char === '}' || char === ']')) {
      if (char !== (open.pop() === '{' ? '}' : ']')) return at;
      expect = 'after';
      at = skip(text, at + 1);
      continue;
    }
    if (expect.startsWith('key')) {
      const end = char === '"' ? match(text, at) : at;
      const colon = skip(text, end);
      if (end === at || text[colon] !== ':') return end === at ? at : colon;
      expect = 'value';
      at = skip(text, colon + 1);
      continue;
    }
    if (char === '{' || char === '[') {
      open.push(char);
      expect = char === '{' ? 'key-or-end' : 'value-or-end';
      at = skip(text, at + 1);
      continue;
    }
    const end = match(text, at);
    if (end === at) return at;
    expect = 'after';
    at = skip(text, end);
  }
  return at;
}

function skip(text: string, at: number): number {
  space.lastIndex = at;
  space.exec(text);
  return space.lastIndex;
}

function match(text: string, at: number): number {
  scalar.lastIndex = at;
  return scalar.exec(text) === null ? at : scalar.lastIndex;
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
