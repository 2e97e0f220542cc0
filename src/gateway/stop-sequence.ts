/** One stop sequence, and how much of it a text may have begun. */
export class StopSequence {
  readonly text: string;
  /** For each beginning, the length of the longest shorter one that it ends in; made when needed. */
  readonly #borders: number[] = [0];

  constructor(text: string) {
    this.text = text;
  }

  /**
   * Length of the longest end of the text that begins the sequence and is not all of it. By Knuth,
   * Morris and Pratt, since comparing each end took milliseconds a chunk for long sequences.
   */
  pendingLength(text: string): number {
    const { length } = this.text;
    const from = text.indexOf(this.text.charAt(0), Math.max(0, text.length - length + 1));
    if (from === -1) return 0;
    let matched = 0;
    for (let i = from; i < text.length; i++) matched = this.#extended(matched, text.charAt(i));
    return matched;
  }

  /** How much of the sequence is matched when this character follows so much of it. */
  #extended(matched: number, char: string): number {
    let length = matched;
    while (length > 0 && this.text.charAt(length) !== char) length = this.#borderOf(length);
    return this.text.charAt(length) === char ? length + 1 : 0;
  }

  #borderOf(length: number): number {
    const borders = this.#borders;
    for (let known = borders.length; known < length; known++) {
      borders.push(this.#extended(borders[known - 1] ?? 0, this.text.charAt(known)));
    }
    return borders[length - 1] ?? 0;
  }
}
