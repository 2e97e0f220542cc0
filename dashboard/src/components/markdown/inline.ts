/** What is within a block of Markdown: code, emphasis, links. Images are not fetched: their source is text. */

export type Inline =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'code'; readonly text: string }
  | {
      readonly kind: 'strong' | 'emphasis' | 'deleted';
      readonly children: readonly Inline[];
      readonly depth: number;
    }
  | {
      readonly kind: 'link';
      readonly address: string;
      readonly children: readonly Inline[];
      readonly depth: number;
    };

export function inlineOf(text: string): readonly Inline[] {
  return new InlineReader(text).read();
}

/** A mark that may begin something: `**`, `[`. */
interface Opener {
  /** Of the node that holds the mark as text. */
  readonly node: number;
  length: number;
}

type Mark = '*' | '_' | '~' | '[';

/** Deeper ones stay text: they are rendered by recursion. */
const maxDepth = 20;
/** What can be escaped, and where plain text ends. */
const special = /[\\`*_~[\]!h]/g;
const escapable = /[!-/:-@[-`{-~]/;
const maxAddress = 2_000;

/** One pass: what marks begin is kept on stacks, and wrapped when they end. */
class InlineReader {
  readonly #text: string;
  readonly #nodes: Inline[] = [];
  readonly #openers: { readonly [M in Mark]: Opener[] } = { '*': [], _: [], '~': [], '[': [] };
  /** Lengths of runs of backticks that nothing closes. */
  readonly #unclosed = new Set<number>();
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): readonly Inline[] {
    const text = this.#text;
    while (this.#at < text.length) {
      special.lastIndex = this.#at;
      const next = special.exec(text)?.index ?? text.length;
      if (next > this.#at) this.#push(text.slice(this.#at, next));
      this.#at = next;
      if (next < text.length) this.#special(text.charAt(next));
    }
    return this.#nodes;
  }

  #special(character: string): void {
    switch (character) {
      case '\\':
        this.#escape();
        break;
      case '`':
        this.#code();
        break;
      case '[':
        this.#open('[', 1);
        break;
      case ']':
        this.#closeLink();
        break;
      case '!':
        this.#image();
        break;
      case 'h':
        this.#address();
        break;
      case '*':
      case '_':
      case '~':
        this.#emphasis(character);
        break;
      default:
        this.#take(1);
    }
  }

  /** The next characters as text. */
  #take(length: number): void {
    this.#push(this.#text.slice(this.#at, this.#at + length));
    this.#at += length;
  }

  #push(text: string): void {
    const last = this.#nodes.at(-1);
    const isMark = Object.values(this.#openers).some(
      (openers) => openers.at(-1)?.node === this.#nodes.length - 1,
    );
    if (last?.kind === 'text' && !isMark) {
      this.#nodes[this.#nodes.length - 1] = { kind: 'text', text: last.text + text };
    } else this.#nodes.push({ kind: 'text', text });
  }

  #escape(): void {
    const next = this.#text.charAt(this.#at + 1);
    if (!escapable.test(next)) {
      this.#take(1);
      return;
    }
    this.#push(next);
    this.#at += 2;
  }

  #code(): void {
    const length = this.#runLength('`');
    const begin = this.#at + length;
    const end = this.#unclosed.has(length) ? -1 : this.#runAfter(begin, length);
    if (end === -1) {
      this.#unclosed.add(length);
      this.#take(length);
      return;
    }
    const inside = this.#text.slice(begin, end);
    const isPadded = inside.length > 2 && inside.startsWith(' ') && inside.endsWith(' ');
    this.#nodes.push({ kind: 'code', text: isPadded ? inside.slice(1, -1) : inside });
    this.#at = end + length;
  }

  /** Start of the next run of exactly this number of backticks; -1: there is none. */
  #runAfter(from: number, length: number): number {
    let at = this.#text.indexOf('`', from);
    while (at !== -1) {
      let end = at;
      while (this.#text.charAt(end) === '`') end += 1;
      if (end - at === length) return at;
      at = this.#text.indexOf('`', end);
    }
    return -1;
  }

  #runLength(character: string): number {
    let end = this.#at;
    while (this.#text.charAt(end) === character) end += 1;
    return end - this.#at;
  }

  /** Fetching it would show its host that the page was read. */
  #image(): void {
    const source = /!\[[^[\]]{0,500}\]\([^()\s]{0,2000}\)/y;
    source.lastIndex = this.#at;
    this.#take(source.exec(this.#text)?.[0].length ?? 1);
  }

  /** An address in the text. */
  #address(): void {
    const pattern = /https?:\/\/[^\s<>"'`()[\]*]{1,2000}/y;
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0].replace(/[.,;:!?_~]{1,20}$/, '') ?? '';
    const isWithin = /\w/.test(this.#text.charAt(this.#at - 1));
    const address = isWithin ? undefined : safeAddress(found);
    if (address === undefined) {
      this.#take(1);
      return;
    }
    this.#nodes.push({
      kind: 'link',
      address,
      children: [{ kind: 'text', text: found }],
      depth: 1,
    });
    this.#at += found.length;
  }

  #open(mark: Mark, length: number): void {
    this.#nodes.push({
      kind: 'text',
      text: this.#text.slice(this.#at, this.#at + length),
    });
    this.#openers[mark].push({ node: this.#nodes.length - 1, length });
    this.#at += length;
  }

  #closeLink(): void {
    const opener = this.#openers['['].pop();
    const target = /\]\(<?([^()\s<>]{1,2000})>?(?:\s{1,3}"[^"]{0,500}")?\)/y;
    target.lastIndex = this.#at;
    const found = opener === undefined ? null : target.exec(this.#text);
    const address = safeAddress(found?.[1] ?? '');
    if (opener === undefined || found === null || address === undefined) {
      this.#take(found?.[0].length ?? 1);
      return;
    }
    const link = (children: readonly Inline[], depth: number): Inline => {
      return { kind: 'link', address, children, depth };
    };
    if (this.#wrap(opener.node, link, '')) this.#at += found[0].length;
    else this.#take(found[0].length);
  }

  #emphasis(mark: '*' | '_' | '~'): void {
    const length = this.#runLength(mark);
    const before = this.#text.charAt(this.#at - 1);
    const after = this.#text.charAt(this.#at + length);
    const isInWord = mark === '_' && /\w/.test(before) && /\w/.test(after);
    if ((mark === '~' && length !== 2) || isInWord) {
      this.#take(length);
      return;
    }
    let left = length;
    if (before.trim() !== '') {
      while (left > 0) {
        const taken = this.#closeEmphasis(mark, left);
        if (taken === 0) break;
        left -= taken;
        this.#at += taken;
      }
    }
    if (left === 0) return;
    if (after.trim() === '') this.#take(left);
    else this.#open(mark, left);
  }

  /** @returns how many characters of the mark were needed */
  #closeEmphasis(mark: '*' | '_' | '~', left: number): number {
    const opener = this.#openers[mark].at(-1);
    if (opener === undefined || opener.node === this.#nodes.length - 1) return 0;
    const taken = Math.min(left, opener.length, 2);
    const kind = mark === '~' ? 'deleted' : taken === 2 ? 'strong' : 'emphasis';
    opener.length -= taken;
    if (opener.length === 0) this.#openers[mark].pop();
    const rest = mark.repeat(opener.length);
    const isMade = this.#wrap(opener.node, (children, depth) => ({ kind, children, depth }), rest);
    return isMade ? taken : 0;
  }

  /** Makes one node of all nodes behind a mark, whose `rest` stays as text. False: the nesting would be too deep. */
  #wrap(
    node: number,
    make: (children: readonly Inline[], depth: number) => Inline,
    rest: string,
  ): boolean {
    const children = this.#nodes.splice(node + 1);
    const mark = this.#nodes.pop();
    for (const openers of Object.values(this.#openers)) {
      while ((openers.at(-1)?.node ?? -1) > node) openers.pop();
    }
    const below = children.reduce((most, child) => Math.max(most, depthOf(child)), 0);
    if (below >= maxDepth && mark !== undefined) {
      this.#nodes.push(mark);
      for (const child of children) this.#nodes.push(child);
      // What began before it would be deeper still.
      for (const openers of Object.values(this.#openers)) openers.length = 0;
      return false;
    }
    if (rest !== '') this.#nodes.push({ kind: 'text', text: rest });
    this.#nodes.push(make(children, below + 1));
    return true;
  }
}

function depthOf(node: Inline): number {
  return 'depth' in node ? node.depth : 0;
}

/** Only http, https and mailto become links: other schemes can run scripts. */
function safeAddress(text: string): string | undefined {
  if (text.length > maxAddress || !URL.canParse(text)) return undefined;
  return /^(https?|mailto):$/.test(new URL(text).protocol) ? text : undefined;
}
