/**
 * Bytes that wait for more. Joining them anew for each chunk would copy a frame of 8 MiB that comes
 * byte by byte eight million times (S22), so that from some size on there is room for twice as much.
 */
const roomFrom = 4096;
/** What lies in memory more than so many times its size is copied out of it: a view keeps all of that (G9). */
const mostAround = 4;

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
    // A chunk as long as what is kept doubles it by itself.
    const grown = Buffer.allocUnsafeSlow(chunk.length < held.length ? 2 * length : length);
    grown.set(held);
    grown.set(chunk, held.length);
    this.#own = grown;
    return grown.subarray(0, length);
  }

  /** Keeps the end of what `with` gave. */
  keep(rest: Buffer): void {
    if (rest.length === 0) {
      // So ends nearly every read of a stream: there is nothing to copy, and no room to keep.
      this.#bytes = undefined;
      this.#own = undefined;
      return;
    }
    const small = rest.length * mostAround < rest.buffer.byteLength;
    const kept = small ? copied(rest) : rest;
    this.#bytes = kept;
    if (kept.buffer !== this.#own?.buffer) this.#own = undefined;
  }

  /** What is kept, for good; undefined when it is nothing. */
  taken(): Buffer | undefined {
    const bytes = this.#bytes;
    this.#bytes = undefined;
    this.#own = undefined;
    return bytes;
  }
}

/** Long ones have memory of their own: one in the pool keeps all of the pool. */
function copied(bytes: Buffer): Buffer {
  if (bytes.length < roomFrom) return Buffer.from(bytes);
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
