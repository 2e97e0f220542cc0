/** Patterns of model names: `*` matches any text, everything else itself (B50: no RegExp). */

/** No provider has longer model names; longer ones are refused without matching. */
const maxModelNameLength = 512;

export class Glob {
  readonly #first: string;
  readonly #middle: readonly string[];
  readonly #last: string | undefined;

  constructor(pattern: string) {
    const parts = pattern.split('*').filter((part, i, all) => {
      // `a**b` means the same as `a*b`.
      return part !== '' || i === 0 || i === all.length - 1;
    });
    this.#first = parts[0] ?? '';
    this.#last = parts.length > 1 ? parts.at(-1) : undefined;
    this.#middle = parts.slice(1, -1);
  }

  /** One pass from left to right: a pattern without alternatives never backtracks. */
  matches(name: string): boolean {
    if (name.length > maxModelNameLength) return false;
    if (this.#last === undefined) return name === this.#first;
    const end = name.length - this.#last.length;
    let at = this.#first.length;
    if (at > end || !name.startsWith(this.#first) || !name.endsWith(this.#last)) return false;
    for (const part of this.#middle) {
      const found = name.indexOf(part, at);
      if (found === -1 || found + part.length > end) return false;
      at = found + part.length;
    }
    return true;
  }
}
