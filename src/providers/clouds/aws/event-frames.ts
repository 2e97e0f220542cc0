/**
 * Event streams of AWS as the server-sent events that dialects read. InvokeModel wraps the events of the model's own
 * dialect; Converse names its events in a header. Exceptions and broken frames end the stream in failure.
 */
import { isUtf8 } from 'node:buffer';
import type { Frame, FrameSplitter } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import { tryParseObject } from '../../../json/parse.ts';
import { textOf } from '../../../json/value.ts';
import { type EventMessage, EventStreamSplitter } from '../../../wire/event-stream.ts';

export const eventStreamType = 'application/vnd.amazon.eventstream';

/** Reads an exception in a stream. @param type `throttlingException` @param body its payload */
export type ReadException = (type: string, body: string) => GatewayError;

const nothing = Buffer.alloc(0);
/** The metrics that AWS adds to the last event. They are no part of the model's answer. */
const measured = 'amazon-bedrock-invocationMetrics';
const typeOfEvent = /^\{"type":"([a-z_]{1,40})"/;

export class EventFrames implements FrameSplitter {
  readonly #splitter = new EventStreamSplitter();
  readonly #readException: ReadException;
  /** The type of the last event that was wrapped. The next one usually has the same. */
  #type = '';
  #failed = false;

  constructor(readException: ReadException) {
    this.#readException = readException;
  }

  push(chunk: Buffer): readonly Frame[] {
    if (this.#failed) return [];
    const frames: Frame[] = [];
    for (const message of this.#splitter.push(chunk)) {
      const frame = this.#frameOf(message);
      frames.push(frame);
      if (frame.failure !== undefined) {
        this.#failed = true;
        return frames;
      }
    }
    const { failure } = this.#splitter;
    if (failure === undefined) return frames;
    this.#failed = true;
    return [...frames, failedFrame(failure)];
  }

  /** A stream that ends within a message was cut, even after the stop reason: its counts are missing. */
  end(): Frame | undefined {
    if (this.#failed || !this.#splitter.isWithinMessage) return undefined;
    const message = 'The upstream closed the stream before its end.';
    return failedFrame(new GatewayError('stream_interrupted', message));
  }

  #frameOf({ headers, payload }: EventMessage): Frame {
    const kind = headers.get(':message-type') ?? 'event';
    if (kind === 'event') {
      const type = headers.get(':event-type') ?? '';
      if (type !== 'chunk') return frame(type, payload);
      const usual = unwrappedAs(this.#type, payload);
      if (usual !== undefined) return usual;
      const found = unwrapped(payload);
      this.#type = plainType.test(found.event ?? '') ? (found.event ?? '') : '';
      return found;
    }
    const type = headers.get(':exception-type') ?? headers.get(':error-code') ?? '';
    const said = headers.get(':error-message');
    const body = said === undefined ? payload.toString('utf8') : JSON.stringify({ message: said });
    return failedFrame(this.#readException(type, body));
  }
}

function failedFrame(failure: GatewayError): Frame {
  return { bytes: nothing, event: undefined, data: undefined, failure };
}

/** An event of Converse. It is never relayed, so its bytes need not be those of a server-sent event. */
function frame(event: string, payload: Buffer): Frame {
  if (!isUtf8(payload)) return failedFrame(notReadable('bytes that are not UTF-8'));
  return {
    bytes: payload,
    event: event === '' ? undefined : event,
    data: payload.toString('utf8'),
  };
}

const lineFeed = 0x0a;
const plainType = /^[a-z_]{1,40}$/;
const wrapping = '{"bytes":"';
/** All that AWS writes after the bytes. */
const afterBytes = /^"(?:,"p":"\w*")?\}$/;

/**
 * The event where it is wrapped in the usual form and has this type: it is decoded into the bytes of its frame. Undefined
 * for any other.
 */
function unwrappedAs(type: string, payload: Buffer): Frame | undefined {
  if (type === '') return undefined;
  const text = payload.toString('latin1');
  const end = text.indexOf('"', wrapping.length);
  if (end === -1 || text.slice(0, wrapping.length) !== wrapping) return undefined;
  if (!afterBytes.test(text.slice(end))) return undefined;
  const encoded = text.slice(wrapping.length, end);
  if (encoded.length % 4 !== 0) return undefined;
  const line = `event: ${type}\ndata: `;
  const length = decodedLength(encoded);
  const bytes = Buffer.allocUnsafe(line.length + length + 2);
  bytes.write(line, 'latin1');
  // Characters that are no base64 are skipped.
  if (bytes.write(encoded, line.length, length, 'base64') !== length) return undefined;
  const dataEnd = line.length + length;
  if (!isUtf8(bytes.subarray(line.length, dataEnd))) return undefined;
  const data = bytes.toString('utf8', line.length, dataEnd);
  const begin = `{"type":"${type}"`;
  if (data.slice(0, begin.length) !== begin || data.includes(measured)) return undefined;
  if (data.includes('\n') || data.includes('\r')) return undefined;
  bytes[dataEnd] = lineFeed;
  bytes[dataEnd + 1] = lineFeed;
  return { bytes, event: type, data };
}

/** The number of bytes in base64 with its padding. */
function decodedLength(encoded: string): number {
  const padding = encoded.endsWith('==') ? 2 : encoded.endsWith('=') ? 1 : 0;
  return (encoded.length / 4) * 3 - padding;
}

/** The event in `{"bytes":"BASE64","p":"…"}`; `p` pads against analysis of lengths. */
function unwrapped(payload: Buffer): Frame {
  const wrapped = tryParseObject(payload.toString('utf8'))?.['bytes'];
  if (typeof wrapped !== 'string') return failedFrame(notReadable('a chunk without bytes'));
  const bytes = Buffer.from(wrapped, 'base64');
  if (!isUtf8(bytes)) return failedFrame(notReadable('bytes that are not UTF-8'));
  const text = bytes.toString('utf8');
  const named = text.includes(measured) ? undefined : typeOfEvent.exec(text)?.[1];
  if (named !== undefined) return sse(named, text);
  const event = tryParseObject(text);
  const type = textOf(event?.['type']);
  // An answer may quote the name of the member.
  if (event?.[measured] === undefined) return sse(type, text);
  const { [measured]: _, ...own } = event;
  return sse(type, JSON.stringify(own));
}

function sse(event: string, text: string): Frame {
  // A line break within the JSON would end the data line.
  const data = /[\r\n]/.test(text) ? text.replace(/\r\n?|\n/g, ' ') : text;
  const named = event === '' ? '' : `event: ${event}\n`;
  return {
    bytes: Buffer.from(`${named}data: ${data}\n\n`),
    event: event === '' ? undefined : event,
    data,
  };
}

function notReadable(what: string): GatewayError {
  return new GatewayError('upstream_invalid', `The upstream sent ${what}.`);
}
