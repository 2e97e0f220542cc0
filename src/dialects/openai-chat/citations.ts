/** `annotations` of an answer and canonical citations (wire/translation.md §7.1). */
import type { Citation, Json, JsonObject } from '../../core/conversation.ts';
import type { Notes } from '../../core/notes.ts';
import { isObject } from '../../core/json.ts';
import { isArray } from './fields.ts';

/** The `url_citation` annotations among the given ones. */
export function readCitations(annotations: Json | undefined): readonly Citation[] {
  if (!isArray(annotations)) return [];
  const citations: Citation[] = [];
  for (const annotation of annotations) {
    if (!isObject(annotation) || !isObject(annotation['url_citation'])) continue;
    const { url, title } = annotation['url_citation'];
    // The index is a device of streams, not a property of the citation.
    const { index: _index, ...value } = annotation;
    citations.push({
      ...(typeof url === 'string' ? { url } : {}),
      ...(typeof title === 'string' ? { title } : {}),
      native: { dialect: 'openai-chat', value },
    });
  }
  return citations;
}

/** The span of the citing text in the whole content, in UTF-16 code units. */
export interface CitedSpan {
  readonly start: number;
  readonly end: number;
}

/** Undefined, with a note, for a source that has no address: chat cannot name it. */
export function writeCitation(
  citation: Citation,
  span: CitedSpan,
  notes: Notes,
): JsonObject | undefined {
  if (citation.native.dialect === 'openai-chat') return citation.native.value;
  if (citation.url === undefined) {
    notes.lost(['citations'], 'a source without an address has no place in chat completions');
    return undefined;
  }
  return {
    type: 'url_citation',
    url_citation: {
      start_index: span.start,
      end_index: span.end,
      url: citation.url,
      title: citation.title ?? '',
    },
  };
}
