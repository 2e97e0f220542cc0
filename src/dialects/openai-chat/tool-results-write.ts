/**
 * Tool results as tool messages. These are text only, so images and documents follow in one user
 * message after the whole group of results (wire/translation.md §3.8; B2).
 */
import type { JsonObject, MediaPart, Part, ToolResultPart } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import { perStep } from '../../core/steps.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { textContent, writePartMark } from './cache-marks.ts';
import type { JsonMembers } from './fields.ts';
import { documentText, tryWriteMedia } from './media-write.ts';

/** What the tool messages of one group could not hold, with labels. */
export class Attachments {
  readonly parts: JsonObject[] = [];
  readonly #counts = new Map<MediaPart['kind'], number>();

  /** Takes the media and returns how the tool message refers to it. */
  add(kind: MediaPart['kind'], written: JsonObject, callId: string): string {
    const number = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, number);
    const title = `${kind[0]?.toUpperCase()}${kind.slice(1)}`;
    this.parts.push(
      { type: 'text', text: `${title} ${number} from tool result ${callId}:` },
      written,
    );
    return `[${kind} ${number} attached below]`;
  }
}

export interface ResultWriting {
  /** The outgoing id of the call. */
  readonly id: string;
  readonly path: FieldPath;
  readonly attachments: Attachments;
  /** A cache mark in the upstream's spelling, or nothing. */
  readonly mark: JsonObject;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** Of so many parts of a result as are a step, from one of them on. */
export function resultPieces(
  { parts }: ToolResultPart,
  from: number,
  writing: ResultWriting,
): readonly JsonObject[] {
  return parts
    .slice(from, from + perStep)
    .flatMap((part, k) => writePart(part, [...writing.path, 'content', from + k], writing));
}

/** Exactly one tool message, however many parts the result has (B4). */
export function writeToolResult(
  result: ToolResultPart,
  pieces: JsonObject[],
  writing: ResultWriting,
): JsonMembers {
  if (result.failed) markFailed(pieces);
  return { role: 'tool', tool_call_id: writing.id, content: resultContent(pieces, writing) };
}

/** Chat has no flag for a failed call. */
function markFailed(pieces: JsonObject[]): void {
  const first = pieces.findIndex((piece) => piece['type'] === 'text');
  const text = String(pieces[first]?.['text'] ?? '');
  if (/^error\b/i.test(text)) return;
  const failed = { ...pieces[first], type: 'text', text: `Error: ${text}` };
  if (first === -1) pieces.unshift(failed);
  else pieces[first] = failed;
}

function resultContent(
  pieces: readonly JsonObject[],
  { mark, traits }: ResultWriting,
): string | readonly JsonObject[] {
  const last = { ...(pieces.at(-1) ?? { type: 'text', text: '' }), ...mark };
  const parts = [...pieces.slice(0, -1), last];
  return parts.every((piece) => piece['type'] === 'text')
    ? textContent(parts, '\n', traits)
    : parts;
}

function writePart(part: Part, path: FieldPath, writing: ResultWriting): readonly JsonObject[] {
  switch (part.type) {
    case 'text':
      return [{ ...textPiece(part.text), ...writePartMark(part.cacheUntilHere, writing.traits) }];
    case 'media': {
      const mark = writePartMark(part.cacheUntilHere, writing.traits);
      return [{ ...writeResultMedia(part, path, writing), ...mark }];
    }
    default:
      writing.notes.lost(path, 'not known to chat completions');
      return [];
  }
}

function writeResultMedia(part: MediaPart, path: FieldPath, writing: ResultWriting): JsonObject {
  const { traits, notes, attachments, id } = writing;
  if ('text' in part.source) return textPiece(documentText(part, part.source.text));
  const written = tryWriteMedia(part, traits);
  if (written === undefined) {
    // Agents send screenshots unasked: a refusal would end their session.
    const reason = traits.imageInput === 'none' ? 'model has no vision' : 'model cannot take it';
    notes.lost(path, `the ${part.kind} is left out, ${reason}`);
    return textPiece(`[${part.kind} omitted: ${reason}]`);
  }
  return traits.toolResultMedia ? written : textPiece(attachments.add(part.kind, written, id));
}

function textPiece(text: string): JsonObject {
  return { type: 'text', text };
}
