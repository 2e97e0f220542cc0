/**
 * Splits an answer of a thinking model into its reasoning and what it says. The reasoning stands at
 * the beginning, between tags; the opening one is written by the model or stood in the prompt already.
 */

// Looks for marks in text that comes in pieces. Each character is looked at a bounded number of times,
// however the pieces are cut: a model may write white space, or the inside of a call, for ever (S22).

interface Shown {
  /** What may be passed on: up to the mark, without the white space before it. */
  readonly text: string;
  /** What follows the mark; undefined while it was not found. */
  readonly rest: string | undefined;
}

/** Text up to a mark. White space and what may be the beginning of the mark wait for what follows. */
export class TextToMark {
  readonly #mark: string;
  #space = '';
  #begun = '';

  /** @param mark does not begin with white space. */
  constructor(mark: string) {
    this.#mark = mark;
  }

  push(piece: string): Shown {
    const text = this.#begun + piece;
    const at = text.indexOf(this.#mark);
    const end = at === -1 ? text.length - heldLength(text, [this.#mark]) : at;
    const shown = this.#behindSpace(text.slice(0, end));
    this.#begun = at === -1 ? text.slice(end) : '';
    if (at === -1) return { text: shown, rest: undefined };
    this.#space = '';
    return { text: shown, rest: text.slice(at + this.#mark.length) };
  }

  /** What waited, when no more text comes. */
  end(): string {
    const text = this.#space + this.#begun;
    this.#space = '';
    this.#begun = '';
    return text;
  }

  #behindSpace(text: string): string {
    const shown = text.trimEnd();
    if (shown === '') {
      this.#space += text;
      return '';
    }
    const before = this.#space;
    this.#space = text.slice(shown.length);
    return before + shown;
  }
}

/** All text before a mark, gathered. */
export class TextBefore {
  readonly #mark: string;
  #text = '';
  /** The end of the text, in which the mark may have begun. */
  #tail = '';

  constructor(mark: string) {
    this.#mark = mark;
  }

  /** Undefined while the mark was not found; then what stands before and behind it. */
  push(piece: string): { readonly before: string; readonly rest: string } | undefined {
    const window = this.#tail + piece;
    const at = window.indexOf(this.#mark);
    this.#text += piece;
    if (at === -1) {
      this.#tail = window.slice(-(this.#mark.length - 1));
      return undefined;
    }
    const rest = window.slice(at + this.#mark.length);
    const length = this.#text.length - rest.length - this.#mark.length;
    return { before: this.#text.slice(0, length), rest };
  }

  /** What was gathered, when no more text comes. */
  get text(): string {
    return this.#text;
  }
}

export interface ReasoningTags {
  readonly open: string;
  readonly close: string;
}

/** Receives both parts, in order. */
export interface ReasoningSink {
  reasoning(text: string): void;
  /** What follows the reasoning, without the white space between. */
  content(text: string): void;
}

/** The tags in use, by the closing one that a template knows. */
const knownTags: readonly ReasoningTags[] = [
  { open: '<think>', close: '</think>' },
  { open: '<thinking>', close: '</thinking>' },
  { open: '<seed:think>', close: '</seed:think>' },
  { open: '[THINK]', close: '[/THINK]' },
];

/** The tags of a model; undefined when its template knows of none. */
export function reasoningTagsOf(template: string): ReasoningTags | undefined {
  return knownTags.find(({ close }) => template.includes(close));
}

/** Text in pieces of any size; what may be the beginning of a tag is held back. */
export class ReasoningScanner {
  readonly #tags: ReasoningTags | undefined;
  readonly #sink: ReasoningSink;
  #state: 'undecided' | 'reasoning' | 'between' | 'content';
  /** White space before anything else, and what may be the beginning of the opening tag. */
  #lead = '';
  #word = '';
  readonly #inside: TextToMark;
  #begun = false;

  /** Without tags everything is content. `open` = the prompt ended in the opening tag. */
  constructor(tags: ReasoningTags | undefined, open: boolean, sink: ReasoningSink) {
    this.#tags = tags;
    this.#sink = sink;
    this.#inside = new TextToMark(tags?.close ?? '');
    if (tags === undefined) this.#state = 'content';
    else this.#state = open ? 'reasoning' : 'undecided';
  }

  /** Whether the text that comes next still belongs to the reasoning. */
  get reasons(): boolean {
    return this.#state === 'reasoning';
  }

  push(piece: string): void {
    if (piece === '') return;
    if (this.#state === 'content' || this.#tags === undefined) {
      this.#sink.content(piece);
      return;
    }
    switch (this.#state) {
      case 'undecided':
        return this.#decide(piece, this.#tags.open);
      case 'reasoning':
        return this.#reason(piece);
      case 'between':
        return this.#leave(piece);
      default:
        return this.#state satisfies never;
    }
  }

  /** No more text comes. */
  end(): void {
    if (this.#state === 'reasoning') this.#emit(this.#inside.end().trimEnd());
    else if (this.#state === 'undecided' && this.#lead + this.#word !== '') {
      this.#sink.content(this.#lead + this.#word);
    }
    this.#lead = '';
    this.#word = '';
  }

  #decide(piece: string, open: string): void {
    const text = this.#word === '' ? piece.trimStart() : piece;
    this.#lead += piece.slice(0, piece.length - text.length);
    this.#word += text;
    if (this.#word.startsWith(open)) {
      this.#state = 'reasoning';
      this.push(this.#word.slice(open.length));
    } else if (!open.startsWith(this.#word)) {
      this.#state = 'content';
      this.#sink.content(this.#lead + this.#word);
    }
  }

  /** White space before the closing tag belongs to the form, so it waits until text follows. */
  #reason(piece: string): void {
    const { text, rest } = this.#inside.push(piece);
    this.#emit(text);
    if (rest === undefined) return;
    this.#state = 'between';
    this.push(rest);
  }

  #leave(piece: string): void {
    const text = piece.trimStart();
    if (text === '') return;
    this.#state = 'content';
    this.#sink.content(text);
  }

  #emit(text: string): void {
    const shown = this.#begun ? text : text.trimStart();
    if (shown === '') return;
    this.#begun = true;
    this.#sink.reasoning(shown);
  }
}

/** Finds stop sequences in text that arrives in pieces; a possible beginning is held back. */
export class StopScanner {
  readonly #sequences: readonly string[];
  #held = '';
  #matched: string | undefined;

  constructor(sequences: readonly string[]) {
    this.#sequences = sequences;
  }

  /** The sequence that was found; nothing may be pushed after that. */
  get matched(): string | undefined {
    return this.#matched;
  }

  /** The text that is safe to pass on; when a sequence is found, the text before it. */
  push(piece: string): string {
    if (this.#sequences.length === 0) return piece;
    const text = this.#held + piece;
    const at = this.#find(text);
    const end = at ?? text.length - heldLength(text, this.#sequences);
    this.#held = at === undefined ? text.slice(end) : '';
    return text.slice(0, end);
  }

  /** What was held back, when no more text comes. */
  end(): string {
    const text = this.#held;
    this.#held = '';
    return text;
  }

  /** Offset of the first sequence in the text; of two at one place the longer one counts. */
  #find(text: string): number | undefined {
    let first: number | undefined;
    for (const sequence of this.#sequences) {
      const at = text.indexOf(sequence);
      if (at === -1 || (first !== undefined && at > first)) continue;
      if (at === first && sequence.length < (this.#matched?.length ?? 0)) continue;
      first = at;
      this.#matched = sequence;
    }
    return first;
  }
}

/** Length of the longest end of the text that begins one of the sequences. */
function heldLength(text: string, sequences: readonly string[]): number {
  let longest = 0;
  for (const sequence of sequences) {
    let length = Math.min(sequence.length - 1, text.length);
    while (length > longest && !sequence.startsWith(text.slice(text.length - length))) length -= 1;
    longest = Math.max(longest, length);
  }
  return longest;
}
