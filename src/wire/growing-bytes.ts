/**
 * Bytes that wait for more. Joining them anew for each chunk would copy a frame of 8 MiB that comes
 * byte by byte eight million times (S22), so that from some size on there is room for twice as much.
 */
const roomFrom = 4096;

export class GrowingBytes {
  #bytes: Buffer | undefined;
  /** Memory of this object's own in which `#bytes` lies, and behind it nothing that anybody was given. */
  #own: Buffer | undefined;

  /** What is kept with the chunk behind it. The next call is `keep` or `taken`. */
  with(chunk: Buffer): Buffer {
    const held = this.#bytes;
    if (held === undefined) return chunk;
    const length = held.length + chunk.length;
    if (length < roomFrom) return Buffer.concat([held, chunk]);
    const own = this.#own;
    // Both are views of one memory: the room is what lies behind the kept bytes.
    if (own !== undefined) {
      const end = held.byteOffset - own.byteOffset + held.length;
      if (end + chunk.length <= own.length) {
        own.set(chunk, end);
        return own.subarray(end - held.length, end + chunk.length);
      }
    }
    const grown = Buffer.allocUnsafeSlow(2 * length);
    grown.set(held);
    grown.set(chunk, held.length);
    this.#own = grown;
    return grown.subarray(0, length);
  }

  /** Keeps the end of what `with` gave. */
  keep(rest: Buffer): void {
    this.#bytes = rest.length === 0 ? undefined : rest;
    if (rest.buffer !== this.#own?.buffer || rest.length === 0) this.#own = undefined;
  }

  /** What is kept, for good; undefined when it is nothing. */
  taken(): Buffer | undefined {
    const bytes = this.#bytes;
    this.#bytes = undefined;
    this.#own = undefined;
    return bytes;
  }
}
