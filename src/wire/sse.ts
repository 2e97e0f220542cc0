/**
 * Server-sent events: bytes in any split to whole frames. The frames' bytes, concatenated with what
 * is still held, are exactly the bytes that came in, so a relay can forward them as they are.
 * Source: the event-stream grammar of the HTML standard.
 */
import { isUtf8 } from 'node:buffer';
import type { Frame } from '../core/dialect.ts';
import { GatewayError } from '../core/errors.ts';

/** A frame larger than this is refused. */
export const maxFrameBytes = 8 * 1024 * 1024;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
/** This many lines of a frame are compared one by one. */
const usualLines = 2;
/** The length of CR LF CR LF. */
const doubleLineEnd = 4;
const emptyLine = Buffer.from('\n\n');
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);
const noBytes = Buffer.alloc(0);
const none: readonly Frame[] = [];

/** Splits one stream. Push chunks in order; `end` gives a last frame that had no blank line. */
export class SseSplitter {
  /** The beginning of a frame whose end has not come yet. */
  readonly #held = new GrowingBytes();
  /** How far what is held was searched, so that a large frame is not searched again per chunk (S22). */
  #searched = 0;
  /** Where the line begins in which that search stopped. */
  #lineStart = 0;
  /** A carriage return was seen: line ends must be examined one by one from now on. */
  #mixedLineEnds = false;
  /** With mixed line ends: all frames so far were one line with CR LF. */
  #oneLineFrames = true;
  #atStart = true;

  /** @throws GatewayError `upstream_invalid` for a frame that is too large or not UTF-8. */
  push(chunk: Buffer): readonly Frame[] {
    if (chunk.length === 0) return none;
    const bytes = this.#joined(chunk);
    if (bytes === undefined) return none;
    if (!this.#mixedLineEnds && chunk.includes(carriageReturn)) {
      this.#mixedLineEnds = true;
      this.#searched = 0;
      this.#lineStart = 0;
    }
    let end = this.#frameEnd(bytes, 0);
    if (end === bytes.length) {
      // The usual read is one frame. A list that grows has room for 17, and an empty view takes as much as the frame.
      const frame = this.#read(bytes);
      this.#searched = 0;
      this.#lineStart = 0;
      this.#hold(noBytes);
      return [frame];
    }
    const frames: Frame[] = [];
    let start = 0;
    while (end !== -1) {
      frames.push(this.#read(bytes.subarray(start, end)));
      start = end;
      this.#searched = end;
      this.#lineStart = end;
      end = this.#frameEnd(bytes, start);
    }
    this.#searched -= start;
    this.#lineStart -= start;
    this.#hold(start === 0 ? bytes : bytes.subarray(start));
    return frames;
  }

  /** Offset after the frame that begins here; -1 when its end has not come yet. */
  #frameEnd(bytes: Buffer, start: number): number {
    if (!this.#mixedLineEnds) return this.#frameEndLineFeed(bytes);
    const isWhole = this.#searched === start && this.#lineStart === start;
    const isTried = this.#oneLineFrames && isWhole;
    const end = isTried ? frameEndOneLine(bytes, start) : undefined;
    if (end !== undefined) return end;
    const found = this.#frameEndAnyLine(bytes, start);
    // A search that fails may read all bytes: it fails once a stream, not once a frame.
    if (isTried && found !== -1) this.#oneLineFrames = false;
    return found;
  }

  /** Offset after the next blank line, when all line ends are line feeds; -1 when there is none yet. */
  #frameEndLineFeed(bytes: Buffer): number {
    // Most frames have one line or two; a search for one byte takes half as long as one for two.
    let line = this.#searched;
    for (let lines = 0; lines < usualLines; lines += 1) {
      line = bytes.indexOf(lineFeed, line) + 1;
      if (line === 0) break;
      if (bytes[line] === lineFeed) return line + 1;
    }
    const at = line === 0 ? -1 : bytes.indexOf(emptyLine, line);
    if (at !== -1) return at + 2;
    this.#searched = Math.max(this.#searched, bytes.length - 1);
    return -1;
  }

  /** The same for CR, LF and CR LF in any mixture. */
  #frameEndAnyLine(bytes: Buffer, start: number): number {
    for (let i = this.#searched; i < bytes.length; i++) {
      const byte = bytes[i];
      if (byte !== lineFeed && byte !== carriageReturn) continue;
      // A CR that ends the bytes may be half of CR LF: the LF then opens the next frame, harmlessly.
      const next = byte === carriageReturn && bytes[i + 1] === lineFeed ? i + 2 : i + 1;
      if (i === this.#lineStart && i > start) return next;
      // After a line it must be examined again: its LF would be taken for an empty line.
      if (byte === carriageReturn && next === bytes.length) {
        this.#searched = i;
        return -1;
      }
      this.#lineStart = next;
      i = next - 1;
    }
    this.#searched = bytes.length;
    return -1;
  }

  /** What is left when the upstream closed: a frame without its blank line, or undefined. */
  end(): Frame | undefined {
    const rest = this.#held.taken();
    return rest === undefined ? undefined : this.#read(rest);
  }

  /**
   * Reads `event` and `data` of one frame. The usual shapes, one data line alone or after the name of the event, take
   * no splitting: they are nearly all frames there are.
   */
  #read(bytes: Buffer): Frame {
    if (!isUtf8(bytes)) {
      throw new GatewayError('upstream_invalid', 'The upstream sent bytes that are not UTF-8.');
    }
    if (this.#mixedLineEnds) return readDataLine(bytes) ?? readLines(bytes);
    const end = bytes.length - 2;
    const lineEnd = bytes.indexOf(lineFeed);
    if (isDataLine(bytes, 0) && lineEnd === end)
      return { bytes, event: undefined, data: dataOf(bytes, 0) };
    const next = lineEnd + 1;
    if (isEventLine(bytes) && isDataLine(bytes, next) && bytes.indexOf(lineFeed, next) === end) {
      return {
        bytes,
        event: bytes.toString('utf8', valueStart(bytes, 6), lineEnd),
        data: dataOf(bytes, next),
      };
    }
    return readLines(bytes);
  }

  /** What is held and the chunk, without a byte order mark; undefined while that is undecided. */
  #joined(chunk: Buffer): Buffer | undefined {
    const bytes = this.#held.with(chunk);
    if (!this.#atStart) return bytes;
    if (bytes.length < byteOrderMark.length && bytes[0] === byteOrderMark[0]) {
      this.#hold(bytes);
      return undefined;
    }
    this.#atStart = false;
    const marked = bytes.subarray(0, byteOrderMark.length).equals(byteOrderMark);
    return marked ? bytes.subarray(byteOrderMark.length) : bytes;
  }

  #hold(rest: Buffer): void {
    if (rest.length > maxFrameBytes) {
      throw new GatewayError('upstream_invalid', 'The upstream sent an event larger than 8 MiB.');
    }
    this.#held.keep(rest);
  }
}

/** A frame of one data line with CR LF. Undefined for any other. */
function readDataLine(bytes: Buffer): Frame | undefined {
  const end = bytes.length - doubleLineEnd;
  if (!isDataLine(bytes, 0) || bytes.indexOf(carriageReturn) !== end) return undefined;
  if (!isDoubleLineEnd(bytes, end) || bytes.indexOf(lineFeed) !== end + 1) return undefined;
  return { bytes, event: undefined, data: bytes.toString('utf8', valueStart(bytes, 5), end) };
}

/** The end of a frame of one line with CR LF, as Google's servers write them. Undefined for any other. */
function frameEndOneLine(bytes: Buffer, start: number): number | undefined {
  const end = bytes.indexOf(carriageReturn, start);
  return end > start && isDoubleLineEnd(bytes, end) && bytes.indexOf(lineFeed, start) === end + 1
    ? end + doubleLineEnd
    : undefined;
}

/** Whether CR LF CR LF is here. */
function isDoubleLineEnd(bytes: Buffer, at: number): boolean {
  return (
    bytes[at] === carriageReturn &&
    bytes[at + 1] === lineFeed &&
    bytes[at + 2] === carriageReturn &&
    bytes[at + 3] === lineFeed
  );
}

function readLines(bytes: Buffer): Frame {
  let event: string | undefined;
  let data: string | undefined;
  for (const line of bytes.toString('utf8').split(/\r\n|\n|\r/)) {
    if (line.startsWith('data:')) {
      const value = fieldValue(line, 5);
      data = data === undefined ? value : `${data}\n${value}`;
    } else if (line.startsWith('event:')) {
      event = fieldValue(line, 6);
    } else if (line === 'data') {
      data = data === undefined ? '' : `${data}\n`;
    }
  }
  return { bytes, event, data };
}

function fieldValue(line: string, from: number): string {
  return line.slice(line[from] === ' ' ? from + 1 : from);
}

/** `data:` in ASCII. */
function isDataLine(bytes: Buffer, at: number): boolean {
  return (
    bytes[at] === 0x64 &&
    bytes[at + 1] === 0x61 &&
    bytes[at + 2] === 0x74 &&
    bytes[at + 3] === 0x61 &&
    bytes[at + 4] === 0x3a
  );
}

/** `event:` in ASCII, at the beginning. */
function isEventLine(bytes: Buffer): boolean {
  return (
    bytes[0] === 0x65 &&
    bytes[1] === 0x76 &&
    bytes[2] === 0x65 &&
    bytes[3] === 0x6e &&
    bytes[4] === 0x74 &&
    bytes[5] === 0x3a
  );
}

/** What the data line at the end of a frame says. @param at where that line begins. */
function dataOf(bytes: Buffer, at: number): string {
  return bytes.toString('utf8', valueStart(bytes, at + 5), bytes.length - 2);
}

function valueStart(bytes: Buffer, at: number): number {
  return bytes[at] === 0x20 ? at + 1 : at;
}

/** From this size on a buffer has room for twice its bytes. */
const roomFrom = 4096;
/** A view that is this many times smaller than its memory is copied, so that the memory can be freed (G9). */
const maxSurplus = 4;

/**
 * The bytes of an incomplete frame. Concatenating for each chunk would copy a frame of 8 MiB that comes byte by byte
 * eight million times (S22); here the buffer doubles.
 */
export class GrowingBytes {
  #bytes: Buffer | undefined;
  /** The memory that `#bytes` is a view of; nothing after `#bytes` was handed out. */
  #own: Buffer | undefined;

  get length(): number {
    return this.#bytes?.length ?? 0;
  }

  /** The kept bytes followed by the chunk. The next call must be `keep` or `taken`. */
  with(chunk: Buffer): Buffer {
    const held = this.#bytes;
    if (held === undefined) return chunk;
    const length = held.length + chunk.length;
    if (length < roomFrom) return Buffer.concat([held, chunk]);
    const own = this.#own;
    // The room is after the kept bytes.
    if (own !== undefined) {
      const end = held.byteOffset - own.byteOffset + held.length;
      if (end + chunk.length <= own.length) {
        own.set(chunk, end);
        return own.subarray(end - held.length, end + chunk.length);
      }
    }
    // A chunk as long as the kept bytes doubles them by itself.
    const grown = Buffer.allocUnsafeSlow(chunk.length < held.length ? 2 * length : length);
    grown.set(held);
    grown.set(chunk, held.length);
    this.#own = grown;
    return grown.subarray(0, length);
  }

  /** Keeps the end of what `with` gave. */
  keep(rest: Buffer): void {
    if (rest.length === 0) {
      // The usual end of a read: nothing to copy, and no room to keep.
      this.#bytes = undefined;
      this.#own = undefined;
      return;
    }
    const small = rest.length * maxSurplus < rest.buffer.byteLength;
    const remaining = small ? copied(rest) : rest;
    this.#bytes = remaining;
    if (remaining.buffer !== this.#own?.buffer) this.#own = undefined;
  }

  /** Takes the kept bytes out; undefined when there are none. */
  taken(): Buffer | undefined {
    const bytes = this.#bytes;
    this.#bytes = undefined;
    this.#own = undefined;
    return bytes;
  }
}

/** Long copies have memory of their own: a view of Node's pool keeps all of the pool. */
function copied(bytes: Buffer): Buffer {
  if (bytes.length < roomFrom) return Buffer.from(bytes);
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
