/**
 * Messages of `application/vnd.amazon.eventstream`: bytes in any split to whole messages, both checksums verified. The
 * form: total length, length of the headers, CRC-32 of both; headers; payload; CRC-32 of all before it.
 * Checked against `@smithy/eventstream-codec` (test/property/event-stream.test.ts).
 */
import { crc32 } from 'node:zlib';
import { GatewayError } from '../core/errors.ts';
import { GrowingBytes } from './sse.ts';

export interface EventMessage {
  /** Values of the headers that are texts, by name: `:event-type`. */
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Buffer;
}

const preludeLength = 12;
const checksumLength = 4;
const minLength = preludeLength + checksumLength;
const maxMessageBytes = 24 * 1024 * 1024;
const maxHeadersBytes = 128 * 1024;

/** Lengths of values by type of header; a number = a fixed length in bytes, `sized` = the length is in front. */
const valueLengths: readonly (number | 'sized')[] = [0, 0, 1, 2, 4, 8, 'sized', 'sized', 8, 16];
const stringType = 7;

/** Splits one stream. Push chunks in order. */
export class EventStreamSplitter {
  readonly #held = new GrowingBytes();
  /** Why nothing more is read. */
  #failure: GatewayError | undefined;
  /** Headers of the last message, as they were sent and as they were read. Most messages of a stream have the same. */
  #known: { readonly bytes: Buffer; readonly headers: ReadonlyMap<string, string> } | undefined;

  /** The stream is broken: what `push` gave before is all there is. */
  get failure(): GatewayError | undefined {
    return this.#failure;
  }

  /** The messages that the chunk completes. Those before a broken one are given; `failure` says that one came. */
  push(chunk: Buffer): readonly EventMessage[] {
    if (this.#failure !== undefined || chunk.length === 0) return [];
    const bytes = this.#held.with(chunk);
    const messages: EventMessage[] = [];
    let at = 0;
    try {
      for (;;) {
        const length = messageLength(bytes, at);
        if (length === undefined || bytes.length - at < length) break;
        messages.push(this.#read(bytes, at, at + length - checksumLength));
        at += length;
      }
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.#failure = error;
      at = bytes.length;
    }
    this.#held.keep(at === 0 ? bytes : bytes.subarray(at));
    return messages;
  }

  /** Whether the bytes so far end within a message. */
  get isWithinMessage(): boolean {
    return this.#held.length > 0;
  }

  /** @param end the position of the checksum at the end of the message */
  #read(bytes: Buffer, start: number, end: number): EventMessage {
    if (crc32(bytes.subarray(start, end)) !== bytes.readUInt32BE(end)) throw broken('checksum');
    const headersStart = start + preludeLength;
    const headersEnd = headersStart + bytes.readUInt32BE(start + 4);
    let known = this.#known;
    if (known?.bytes.compare(bytes, headersStart, headersEnd) !== 0) {
      // The cached bytes must not retain the buffer of a read.
      const own = Buffer.from(bytes.subarray(headersStart, headersEnd));
      known = { bytes: own, headers: readHeaders(own) };
      this.#known = known;
    }
    return { headers: known.headers, payload: bytes.subarray(headersEnd, end) };
  }
}

/** Undefined while the prelude is incomplete. @throws GatewayError for lengths that no message has */
function messageLength(bytes: Buffer, at: number): number | undefined {
  if (bytes.length - at < preludeLength) return undefined;
  // Before the lengths are believed: a broken one would make the reader wait for gigabytes.
  if (lengthsChecksum(bytes, at) !== bytes.readUInt32BE(at + 8)) throw broken('checksum');
  const length = bytes.readUInt32BE(at);
  const headers = bytes.readUInt32BE(at + 4);
  if (length < minLength || headers > length - minLength) throw broken('length');
  if (length > maxMessageBytes || headers > maxHeadersBytes) {
    throw broken('length', 'an event larger than 24 MiB, or its headers than 128 KiB');
  }
  return length;
}

const polynomial = 0xedb88320;
/** The checksum of each byte. */
const checksums = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ polynomial : sum >>> 1;
  return sum;
});

/** CRC-32 of the eight bytes of the lengths. For so few bytes a call of zlib takes longer. */
function lengthsChecksum(bytes: Buffer, at: number): number {
  let sum = -1;
  for (let i = at; i < at + 8; i += 1) {
    sum = (sum >>> 8) ^ (checksums[(sum ^ (bytes[i] ?? 0)) & 0xff] ?? 0);
  }
  return ~sum >>> 0;
}

function readHeaders(bytes: Buffer): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + (bytes[at] ?? 0);
    const type = bytes[nameEnd] ?? -1;
    const form = valueLengths[type];
    if (form === undefined) throw broken('header');
    const start = nameEnd + (form === 'sized' ? 3 : 1);
    if (start > bytes.length) throw broken('header');
    const end = start + (form === 'sized' ? bytes.readUInt16BE(nameEnd + 1) : form);
    if (end > bytes.length) throw broken('header');
    if (type === stringType) {
      headers.set(bytes.toString('utf8', at + 1, nameEnd), bytes.toString('utf8', start, end));
    }
    at = end;
  }
  return headers;
}

function broken(part: 'checksum' | 'length' | 'header', what?: string): GatewayError {
  const found = what ?? `an event whose ${part} is wrong`;
  return new GatewayError('upstream_invalid', `The upstream sent ${found}.`);
}
