/** The template literals of a source text, with what is put into them. */

export interface Template {
  /** All that stands between the backticks. */
  readonly text: string;
  /** What stands in `${ }`, white space aside. */
  readonly expressions: readonly string[];
  readonly line: number;
}

const skipped = /\/\/[^\n]*|\/\*[^]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/y;

/** Also those that stand within another one's expressions. Patterns must not hold backticks. */
export function templatesOf(text: string): readonly Template[] {
  const found: Template[] = [];
  codeEnd(text, 0, found);
  return found;
}

/** Reads code up to a brace that closes it; returns where that stands. */
function codeEnd(text: string, from: number, found: Template[]): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    skipped.lastIndex = at;
    const skip = skipped.exec(text)?.[0];
    const character = text[at];
    if (skip !== undefined) at += skip.length - 1;
    else if (character === '`') at = templateEnd(text, at, found);
    else if (character === '{') depth += 1;
    else if (character === '}') {
      if (depth === 0) return at;
      depth -= 1;
    }
  }
  return text.length;
}

/** Reads a template from its first backtick; returns where its last one stands. */
function templateEnd(text: string, from: number, found: Template[]): number {
  const expressions: string[] = [];
  let at = from + 1;
  while (at < text.length && text[at] !== '`') {
    if (text[at] === '\\') at += 1;
    else if (text.startsWith('${', at)) {
      const end = codeEnd(text, at + 2, found);
      expressions.push(
        text
          .slice(at + 2, end)
          .replaceAll(/\s+/g, ' ')
          .trim(),
      );
      at = end;
    }
    at += 1;
  }
  const line = text.slice(0, from).split('\n').length;
  found.push({ text: text.slice(from + 1, at), expressions, line });
  return at;
}
