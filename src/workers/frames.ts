/** Frames on a stream of bytes: four bytes of length, then so many bytes. */

const headBytes = 4;

/** The frame of one body. */
export function frameOf(body: Uint8Array): readonly [Uint8Array, Uint8Array] {
  const head = Buffer.allocUnsafe(headBytes);
  head.writeUInt32BE(body.length);
  return [head, body];
}

/** Puts frames together, however they were cut on their way. */
export class FrameReader {
  readonly #told: (body: Buffer) => void;
  #chunks: Buffer[] = [];
  #held = 0;
  /** Of the body that is read; undefined = its head is awaited. */
  #length: number | undefined;

  constructor(told: (body: Buffer) => void) {
    this.#told = told;
  }

  read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    for (;;) {
      const wanted = this.#length ?? headBytes;
      if (this.#held < wanted) return;
      const bytes = this.#take(wanted);
      if (this.#length === undefined) {
        this.#length = bytes.readUInt32BE();
      } else {
        this.#length = undefined;
        this.#told(bytes);
      }
    }
  }

  #take(length: number): Buffer {
    const [first] = this.#chunks;
    const all =
      first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    this.#held -= length;
    this.#chunks = this.#held === 0 ? [] : [all.subarray(length)];
    return all.subarray(0, length);
  }
}
