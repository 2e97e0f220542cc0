/** Bytes in the pieces in which they came: to put 100 KB together costs as much as to send them. */
export class Pieces {
  readonly length: number;
  #list: readonly Buffer[];

  constructor(list: readonly Buffer[]) {
    this.#list = list;
    let length = 0;
    for (const piece of list) length += piece.length;
    this.length = length;
  }

  static of(bytes: Buffer): Pieces {
    return new Pieces([bytes]);
  }

  get list(): readonly Buffer[] {
    return this.#list;
  }

  /** All of them in one, made at the first call; the pieces are let go, or all would be in memory twice (G5). */
  whole(): Buffer {
    const [first] = this.#list;
    if (this.#list.length === 1 && first !== undefined) return first;
    const whole = Buffer.concat(this.#list);
    this.#list = [whole];
    return whole;
  }

  /** Whether the bytes of a text are in them, in one piece or over a seam. */
  includes(text: Buffer | string): boolean {
    const mark = typeof text === 'string' ? Buffer.from(text) : text;
    let before: Buffer = nothing;
    for (const piece of this.#list) {
      if (piece.includes(mark)) return true;
      const seam = Buffer.concat([before, piece.subarray(0, mark.length - 1)]);
      if (seam.includes(mark)) return true;
      before = Buffer.concat([before, piece.subarray(Math.max(0, piece.length - mark.length + 1))]);
      before = before.subarray(Math.max(0, before.length - mark.length + 1));
    }
    return false;
  }

  /** Those from one offset up to another, at the end of a list; no byte is copied. */
  between(start: number, end: number, found: Buffer[] = []): readonly Buffer[] {
    let at = 0;
    for (const piece of this.#list) {
      const from = Math.max(start - at, 0);
      const to = Math.min(end - at, piece.length);
      if (from < to)
        found.push(from === 0 && to === piece.length ? piece : piece.subarray(from, to));
      at += piece.length;
    }
    return found;
  }

  /** Copies them; `target` has room for all. */
  copy(target: Buffer, at = 0): void {
    let end = at;
    for (const piece of this.#list) end += piece.copy(target, end);
  }

  equals(other: Pieces): boolean {
    return this.length === other.length && this.whole().equals(other.whole());
  }

  /** As UTF-8. */
  toString(): string {
    return this.whole().toString('utf8');
  }
}

const nothing = Buffer.alloc(0);
