/**
 * Members of answers whose type is not what it should be. Nothing of an answer vanishes in silence: what can be read as a
 * text is one, and anything else is not an answer.
 */
import type { Citation, TextSpan } from '../../core/conversation.ts';
import { GatewayError } from '../../core/errors.ts';
import type { FinishReason } from '../../core/generation.ts';
import { findMember } from '../../json/scan.ts';
import { isObject, type Json, type JsonObject } from '../../json/value.ts';

/**
 * The text of a member; `''` where it is absent. A number is the text that the model wrote, which a server took for one.
 * @throws GatewayError `upstream_invalid`
 */
export function answerText(value: Json | undefined, name: string): string {
  if (typeof value === 'string') return value;
  if (isAbsent(value)) return '';
  if (typeof value === 'number' || value === true) return String(value);
  throw wrongType(name);
}

/** The objects of a list; none where it is absent. @throws GatewayError `upstream_invalid` */
export function answerObjects(value: Json | undefined, name: string): readonly JsonObject[] {
  if (isAbsent(value) || (isObject(value) && Object.keys(value).length === 0)) return none;
  if (!Array.isArray(value) || !value.every(isObject)) throw wrongType(name);
  return value;
}

/** The object, or undefined where it is absent. @throws GatewayError `upstream_invalid` */
export function answerObject(value: Json | undefined, name: string): JsonObject | undefined {
  if (isAbsent(value)) return undefined;
  if (!isObject(value)) throw wrongType(name);
  return value;
}

export function isPresent(value: Json | undefined): boolean {
  return !isAbsent(value);
}

/** What servers write for nothing. */
function isAbsent(value: Json | undefined): value is undefined | null | '' | false {
  return value === undefined || value === null || value === '' || value === false;
}

export function wrongType(name: string): GatewayError {
  return new GatewayError('upstream_invalid', `The upstream sent ${name} of a wrong type.`);
}

const none: readonly JsonObject[] = [];

const modelKey = Buffer.from('"model"');

/**
 * The document with another `model`, its other bytes as they are; undefined where the member does not stand as `from` is
 * usually written.
 */
export function withModel(bytes: Buffer, from: Json | undefined, to: string): Buffer | undefined {
  const span = findMember(bytes, 0, modelKey);
  if (span === undefined) return undefined;
  const { start, end } = span;
  if (bytes.toString('utf8', start, end) !== JSON.stringify(from)) return undefined;
  const model = JSON.stringify(to);
  const whole = Buffer.allocUnsafe(bytes.length - (end - start) + Buffer.byteLength(model));
  bytes.copy(whole, 0, 0, start);
  bytes.copy(whole, start + whole.write(model, start), end);
  return whole;
}

// The end of a server-sent event.

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/**
 * A frame with the blank line that makes clients read it, which the last frame of a closed stream may
 * lack. The same buffer when it is there.
 */
export function withBlankLine(bytes: Buffer): Buffer {
  const last = bytes.length - 1;
  if (bytes[last] === lineFeed && bytes[last - 1] === lineFeed) return bytes;
  let lineEnds = 0;
  for (let i = last; i >= 0; i--) {
    const byte = bytes[i];
    if (byte === lineFeed) {
      lineEnds += 1;
      if (bytes[i - 1] === carriageReturn) i -= 1;
    } else if (byte === carriageReturn) lineEnds += 1;
    else break;
  }
  if (lineEnds >= 2) return bytes;
  // A line feed after a carriage return only completes its line end.
  const hasLineEnd = lineEnds === 1 && bytes[last] === lineFeed;
  return Buffer.concat([bytes, Buffer.from(hasLineEnd ? '\n' : '\n\n')]);
}

// Names of the headers with the state of a limit.

export interface LimitNames {
  readonly limit: string;
  readonly remaining: string;
  readonly reset: string;
}

/** Made once for each limit: every answer to a call with limits has them. */
export function limitNames(nameOf: (part: keyof LimitNames) => string): LimitNames {
  return { limit: nameOf('limit'), remaining: nameOf('remaining'), reset: nameOf('reset') };
}

/** Where a citation says that it belongs; nothing where it does not name a piece of a text. */
export function citedSpan({ start_index: start, end_index: end }: JsonObject): {
  readonly span?: TextSpan;
} {
  if (typeof start !== 'number' || typeof end !== 'number') return {};
  return Number.isInteger(start) && start >= 0 && end >= start ? { span: { start, end } } : {};
}

/** The span of a citation in a longer text. @param part the span of its own text part there. */
export function spanOf({ span }: Citation, part: TextSpan): TextSpan {
  return span === undefined ? part : { start: part.start + span.start, end: part.start + span.end };
}

/** Finish reasons of an answer that was cut, so that its last call may lack a part of its arguments. */
const cuts: ReadonlySet<FinishReason['kind']> = new Set([
  'length',
  'context-window',
  'content-filter',
]);

export function isCutBy({ kind }: FinishReason): boolean {
  return cuts.has(kind);
}

/**
 * The arguments of a call that a document shows as an object, although the answer was cut within them: the service
 * omits the member that was not finished, so the object seems to be whole. Without its end no client runs the call;
 * the comma stands for the missing member, so that the members before it count as finished.
 */
export function cutArguments(input: JsonObject): string {
  const json = JSON.stringify(input);
  return json === '{}' ? '' : `${json.slice(0, -1)},`;
}

/** The note of an answer whose end clients are shown as a natural one. Undefined for a compaction, whose text is the answer. */
export function endNote({ raw }: FinishReason): string | undefined {
  if (raw === 'compaction') return undefined;
  return raw === undefined
    ? 'the provider did not say why the answer ended'
    : `the provider ended the answer with a reason that is not known here (${raw.slice(0, 40)})`;
}
