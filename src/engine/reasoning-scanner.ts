/**
 * Splits an answer of a thinking model into its reasoning and what it says. The reasoning stands at
 * the beginning, between tags; the opening one is written by the model or stood in the prompt already.
 */
import { TextToMark } from './text-marks.ts';

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
