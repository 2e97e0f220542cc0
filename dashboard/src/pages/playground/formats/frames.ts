/** Frames of an event stream, as text; the data of each is JSON or `[DONE]`. */

export interface Frame {
  /** As it came, without the empty line behind it. */
  readonly text: string;
  /** Its data as JSON; undefined where it has none, or other data. */
  readonly data: unknown;
}

/** Cuts a stream into frames, however it is split into pieces. */
export class FrameReader {
  #rest = '';

  /** The frames that this piece completes. */
  push(piece: string): readonly Frame[] {
    this.#rest += piece;
    const parts = this.#rest.split(/\r?\n\r?\n/);
    this.#rest = parts.pop() ?? '';
    return parts.filter((part) => part !== '').map((text) => frameOf(text));
  }

  /** What was never completed. */
  get rest(): string {
    return this.#rest;
  }
}

function frameOf(text: string): Frame {
  const data = text
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice('data:'.length).replace(/^ /, ''))
    .join('\n');
  try {
    return { text, data: JSON.parse(data) as unknown };
  } catch {
    return { text, data: undefined };
  }
}
