/** Citations of a text block (wire/messages.md §4.3). They stay in their own words underneath. */
import type { Citation, Json, JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import { isArray } from './fields.ts';

/** The citations of a text block; empty when there are none. */
export function readCitations(citations: Json | undefined): readonly Citation[] {
  return isArray(citations) ? citations.filter(isObject).map(readCitation) : [];
}

export function readCitation(value: JsonObject): Citation {
  const { url, source, title, document_title: documentTitle, cited_text: citedText } = value;
  const address = typeof url === 'string' ? url : webAddress(source);
  const named = typeof title === 'string' ? title : documentTitle;
  return {
    ...(address === undefined ? {} : { url: address }),
    ...(typeof named === 'string' ? { title: named } : {}),
    ...(typeof citedText === 'string' ? { citedText } : {}),
    native: { dialect: 'anthropic-messages', value },
  };
}

/** Undefined for a citation of another dialect: it lacks the index that this one demands. */
export function writeCitation(citation: Citation): JsonObject | undefined {
  return citation.native.dialect === 'anthropic-messages' ? citation.native.value : undefined;
}

function webAddress(source: Json | undefined): string | undefined {
  return typeof source === 'string' && /^https?:\/\//.test(source) ? source : undefined;
}
