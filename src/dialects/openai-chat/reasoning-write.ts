/** Reasoning as entries of `reasoning_details` (wire/translation.md §5.2). */
import type { JsonObject, ReasoningPart } from '../../core/conversation.ts';
import { nativeFormat } from './reasoning-read.ts';

/** The whole entry of a part at its place in the list. */
export function writeDetail(part: ReasoningPart, index: number): JsonObject {
  const constants = detailConstants(part);
  if (part.encrypted !== undefined) {
    return { type: 'reasoning.encrypted', data: part.encrypted, ...constants, index };
  }
  const text = isSummary(part) ? { summary: part.text } : { text: part.text };
  return {
    type: detailType(part),
    ...text,
    ...(part.signature === undefined ? {} : { signature: part.signature }),
    ...constants,
    index,
  };
}

export function isSummary(part: ReasoningPart): boolean {
  return part.extras?.['openai-chat']?.['summary'] === true;
}

export function detailType(part: ReasoningPart): string {
  if (part.encrypted !== undefined) return 'reasoning.encrypted';
  return isSummary(part) ? 'reasoning.summary' : 'reasoning.text';
}

/** What stands once in an entry: a stream may repeat only `index` and `type`. */
export function detailConstants(part: ReasoningPart): JsonObject {
  const { format, id } = part.extras?.['openai-chat'] ?? {};
  return {
    ...(typeof id === 'string' ? { id } : {}),
    format: typeof format === 'string' ? format : nativeFormat,
  };
}

/** Somebody vouched for it, or only somebody can read it. */
export function hasProof(part: ReasoningPart): boolean {
  return part.signature !== undefined || part.encrypted !== undefined;
}
