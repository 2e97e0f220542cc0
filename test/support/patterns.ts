/** The regular expressions of a source text, and what makes one of them slow. */

export interface Pattern {
  readonly source: string;
  readonly flags: string;
  readonly line: number;
}

/** Behind these a slash begins a pattern; behind a value it divides. */
const opensValue =
  /(?:^|[(,=:[!&|?{};+\-*%~^<>]|=>|\b(?:return|typeof|case|of|in|yield|await))\s*$/;
const literal = /\/((?:[^\\/[\n]|\\.|\[(?:[^\\\]\n]|\\.)*\])+)\/([a-z]*)/y;
const skipped = /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y;

/** All literals of a TypeScript text. */
export function patternsOf(text: string): readonly Pattern[] {
  const found: Pattern[] = [];
  /** Depths of braces at which a template goes on. */
  const templates: number[] = [];
  let depth = 0;
  let before = '';
  let at = 0;
  const take = (length: number, kept: string): void => {
    before = (before + kept).slice(-20);
    at += length;
  };
  while (at < text.length) {
    const character = text[at] ?? '';
    const inTemplate = character === '`' || (character === '}' && templates.at(-1) === depth);
    if (inTemplate) {
      if (character === '}') templates.pop();
      const end = templateEnd(text, at + 1);
      if (text.startsWith('${', end - 2)) templates.push(depth);
      const opens = templates.at(-1) === depth && text.startsWith('${', end - 2);
      take(end - at, opens ? '(' : '0');
      continue;
    }
    const skip = matchAt(skipped, text, at);
    if (skip !== undefined) {
      take(skip[0].length, skip[0].startsWith('/') ? '' : '0');
      continue;
    }
    const match =
      character === '/' && opensValue.test(before) ? matchAt(literal, text, at) : undefined;
    if (match !== undefined) {
      const [whole, source = '', flags = ''] = match;
      found.push({ source, flags, line: text.slice(0, at).split('\n').length });
      take(whole.length, '0');
      continue;
    }
    if (character === '{') depth += 1;
    if (character === '}') depth -= 1;
    take(1, character);
  }
  return found;
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

/** Behind the closing backtick, or behind the next `${`. */
function templateEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '`') return at + 1;
    else if (text.startsWith('${', at)) return at + 2;
  }
  return text.length;
}

/** A repetition up to this count is ignored. */
const fewTimes = 10;
const token =
  /\\.|\[(?:[^\\\]]|\\.)*\]|\((?:\?(?:[:=!]|<[=!]|<\w+>))?|\)|[*+?]\??|\{\d+(?:,\d*)?\}\??|[^]/gu;

/**
 * Whether the pattern repeats something that holds a repetition, as in `(a+)+`: a text that almost
 * fits can be split in exponentially many ways, and all are tried (CWE-1333).
 */
export function nestsRepetitions(source: string): boolean {
  const groups: boolean[] = [false];
  /** Whether what the next quantifier belongs to is a group that holds a repetition. */
  let holds = false;
  for (const [part] of source.matchAll(token)) {
    if (part === ')') holds = groups.pop() ?? false;
    else if (part.startsWith('(')) groups.push(false);
    if (part === ')') {
      if (holds) markLast(groups);
      continue;
    }
    if (repeats(part)) {
      if (holds) return true;
      markLast(groups);
    }
    holds = false;
  }
  return false;
}

function markLast(groups: boolean[]): void {
  groups[groups.length - 1] = true;
}

function repeats(part: string): boolean {
  if (part.startsWith('*') || part.startsWith('+')) return part.length <= 2;
  const bounds = /^\{(\d+)(,?)(\d*)\}/.exec(part);
  if (bounds === null) return false;
  const [, least = '', comma = '', most = ''] = bounds;
  const highest = comma === '' ? Number(least) : most === '' ? Infinity : Number(most);
  return highest > fewTimes;
}
