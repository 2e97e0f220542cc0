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
export function heldLength(text: string, sequences: readonly string[]): number {
  let longest = 0;
  for (const sequence of sequences) {
    let length = Math.min(sequence.length - 1, text.length);
    while (length > longest && !sequence.startsWith(text.slice(text.length - length))) length -= 1;
    longest = Math.max(longest, length);
  }
  return longest;
}
