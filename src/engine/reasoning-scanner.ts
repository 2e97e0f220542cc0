/**
 * Splits an answer of a thinking model into its reasoning and what it says. The reasoning stands at
 * the beginning, between tags; the opening one is written by the model or stood in the prompt already.
 */
import { heldLength } from './stop-scanner.ts';

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

const trailingSpace = /\s+$/u;

/** Text in pieces of any size; what may be the beginning of a tag is held back. */
export class ReasoningScanner {
  readonly #tags: ReasoningTags | undefined;
  readonly #sink: ReasoningSink;
  #state: 'undecided' | 'reasoning' | 'between' | 'content';
  #held = '';
  #begun = false;

  /** Without tags everything is content. `open` = the prompt ended in the opening tag. */
  constructor(tags: ReasoningTags | undefined, open: boolean, sink: ReasoningSink) {
    this.#tags = tags;
    this.#sink = sink;
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
    this.#held += piece;
    if (this.#state === 'undecided') this.#decide(this.#tags.open);
    if (this.#state === 'reasoning') this.#reason(this.#tags.close);
    if (this.#state === 'between') this.#leave();
  }

  /** No more text comes. */
  end(): void {
    const text = this.#held;
    this.#held = '';
    if (text === '') return;
    if (this.#state === 'reasoning') this.#emit(text.replace(trailingSpace, ''));
    else if (this.#state === 'undecided') this.#sink.content(text);
  }

  #decide(open: string): void {
    const text = this.#held.trimStart();
    if (text.startsWith(open)) {
      this.#held = text.slice(open.length);
      this.#state = 'reasoning';
    } else if (!open.startsWith(text)) {
      this.#state = 'content';
      this.#sink.content(this.#held);
      this.#held = '';
    }
  }

  #reason(close: string): void {
    const at = this.#held.indexOf(close);
    if (at !== -1) {
      this.#emit(this.#held.slice(0, at).replace(trailingSpace, ''));
      this.#held = this.#held.slice(at + close.length);
      this.#state = 'between';
      return;
    }
    const safe = this.#held.length - heldLength(this.#held, [close]);
    // White space before the closing tag belongs to the form, so it waits until text follows.
    const text = this.#held.slice(0, safe).replace(trailingSpace, '');
    this.#emit(text);
    this.#held = this.#held.slice(text.length);
  }

  #leave(): void {
    const text = this.#held.trimStart();
    if (text === '') return;
    this.#held = '';
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
