/** Recorded answers of the Responses API (../shared/recordings), one entry for each answer of a file. */
import type { Frame } from '../../../src/core/dialect.ts';
import type { GenerationEvent } from '../../../src/core/generation.ts';
import { ResponsesStreamReader } from '../../../src/dialects/openai-responses/answer/stream-read.ts';
import { isObject, type JsonObject } from '../../../src/json/value.ts';
import { SseSplitter } from '../../../src/wire/sse.ts';
import {
  recordedDocuments as documentsOf,
  recordedStreams as streamsOf,
  whyOmitted,
  type RecordedDocument,
  type RecordedStream,
} from '../../recordings/recorded.ts';

/** Why the tests on recordings are left out, or false where they can run. */
export const leftOut = whyOmitted ?? false;

export const recordedDocuments = (): readonly RecordedDocument[] => documentsOf(['responses']);

export const recordedStreams = (): readonly RecordedStream[] => streamsOf(['responses']);

export function recordedStream(name: string): RecordedStream {
  const found = recordedStreams().find((recorded) => recorded.name === name);
  if (found === undefined) throw new Error(`there is no recording ${name}`);
  return found;
}

/** An event as the service frames it. */
export function framed(event: JsonObject): string {
  return `event: ${String(event['type'])}\ndata: ${JSON.stringify(event)}\n\n`;
}

export function wire(events: readonly JsonObject[]): string {
  return events.map(framed).join('');
}

/** All frames of a stream's bytes, in pieces of this size. */
export function framesOf(bytes: Buffer, size = bytes.length): readonly Frame[] {
  const splitter = new SseSplitter();
  const frames: Frame[] = [];
  for (let i = 0; i < bytes.length; i += size) {
    frames.push(...splitter.push(bytes.subarray(i, i + size)));
  }
  const last = splitter.end();
  return last === undefined ? frames : [...frames, last];
}

/** Everything that a reader yields for this text and the close behind it. */
export function readText(text: string, size?: number): readonly GenerationEvent[] {
  const reader = new ResponsesStreamReader();
  const events = framesOf(Buffer.from(text), size).flatMap((frame) => [...reader.read(frame)]);
  return [...events, ...reader.end()];
}

export function read(events: readonly JsonObject[]): readonly GenerationEvent[] {
  return readText(wire(events));
}

/** The items of an answer as its events told them complete. */
export function doneItems(events: readonly JsonObject[]): readonly JsonObject[] {
  return events
    .filter((event) => event['type'] === 'response.output_item.done')
    .map((event) => event['item'])
    .filter(isObject);
}

/** The response of the terminal event. */
export function lastResponse(events: readonly JsonObject[]): JsonObject {
  const last = events.at(-1)?.['response'];
  return isObject(last) ? last : {};
}
