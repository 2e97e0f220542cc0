/**
 * Looks for marks in text that comes in pieces. Each character is looked at a bounded number of times,
 * however the pieces are cut: a model may write white space, or the inside of a call, for ever (S22).
 */
import { heldLength } from './stop-scanner.ts';

export interface Shown {
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
