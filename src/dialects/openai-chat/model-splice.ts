/** Puts the client's model name into frames, in their own bytes (C4). */
import { findMember } from './frame-member.ts';

const modelKey = Buffer.from('"model"');
const quote = 0x22;

/** One answer's frames. All have the same layout as a rule, so the last place is tried first. */
export class ModelSplice {
  readonly #replacement: Buffer;
  /** The member as it stood in the last frame, key and value. */
  #member: Buffer | undefined;
  #offset = 0;
  /** The member is already what the client expects. */
  #same = false;

  /** @param model the name that the client used. */
  constructor(model: string) {
    this.#replacement = Buffer.from(`"model":${JSON.stringify(model)}`);
  }

  /** The same buffer when there is nothing to change. */
  apply(bytes: Buffer): Buffer {
    if (!this.#standsAgain(bytes) && !this.#locate(bytes)) return bytes;
    return this.#same ? bytes : this.#replaced(bytes);
  }

  #standsAgain(bytes: Buffer): boolean {
    const member = this.#member;
    if (member === undefined) return false;
    const offset = this.#offset;
    // A call of Node's own comparison takes as long as a hundred bytes of this.
    for (let i = 0; i < member.length; i += 1) if (bytes[offset + i] !== member[i]) return false;
    return true;
  }

  /** Looks for the top-level member; false when the frame has none. */
  #locate(bytes: Buffer): boolean {
    const span = findMember(bytes, modelKey);
    if (span === undefined || bytes[span.valueStart] !== quote) return false;
    // A copy: the frame's own memory is the socket's.
    this.#member = Buffer.from(bytes.subarray(span.start, span.end));
    this.#offset = span.start;
    this.#same = this.#member.equals(this.#replacement);
    return true;
  }

  #replaced(bytes: Buffer): Buffer {
    const member = this.#member;
    if (member === undefined) return bytes;
    const replacement = this.#replacement;
    const offset = this.#offset;
    const edited = Buffer.allocUnsafe(bytes.length - member.length + replacement.length);
    bytes.copy(edited, 0, 0, offset);
    replacement.copy(edited, offset);
    bytes.copy(edited, offset + replacement.length, offset + member.length);
    return edited;
  }
}
