/** Sources of an answer: what a search found (`groundingMetadata`), as citations of the text that rests on it. */
import type { Citation, TextSpan } from '../../core/conversation.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../json/value.ts';
import { dialectId } from './fields.ts';

/** The citations of a text. Those of passages that are not in it are left out. */
export function citationsOf(grounding: JsonObject, text: string): readonly Citation[] {
  const sources = objects(grounding['groundingChunks']).map(sourceOf);
  const cited = new Set<number>();
  const citations: Citation[] = [];
  for (const support of objects(grounding['groundingSupports'])) {
    const segment = isObject(support['segment']) ? support['segment'] : {};
    const span = spanOf(segment, text);
    if (span === undefined) continue;
    for (const index of numbers(support['groundingChunkIndices'])) {
      const source = sources[index];
      if (source === undefined) continue;
      cited.add(index);
      const words = text.slice(span.start, span.end);
      citations.push({ ...source, citedText: words, span });
    }
  }
  const uncited = sources.filter((source, i) => source !== undefined && !cited.has(i));
  return [...citations, ...uncited.filter((source) => source !== undefined)];
}

/** How many searches an answer took: models before Gemini 3 are charged for one a request, later ones for each query. */
export function searchesOf(grounding: JsonObject, model: string): number {
  const queries = grounding['webSearchQueries'];
  const asked = Array.isArray(queries) ? queries.length : 0;
  return /gemini-[12]\b/.test(model) ? Math.min(1, asked) : asked;
}

/** Undefined for a source without an address. */
function sourceOf(chunk: JsonObject): Citation | undefined {
  const kinds = [chunk['web'], chunk['retrievedContext'], chunk['maps'], chunk['image']];
  const place = kinds.find(isObject);
  const url = textOf(place?.['uri'] ?? place?.['sourceUri']);
  if (place === undefined || url === '') return undefined;
  const title = textOf(place['title']);
  return {
    url,
    ...(title === '' ? {} : { title }),
    native: { dialect: dialectId, value: chunk },
  };
}

/**
 * Offsets count bytes of UTF-8, here units of UTF-16. Where the words at the offsets are others than the segment says, the
 * words decide.
 */
function spanOf(segment: JsonObject, text: string): TextSpan | undefined {
  const { startIndex = 0, endIndex } = segment;
  const words = textOf(segment['text']);
  if (typeof startIndex === 'number' && typeof endIndex === 'number' && endIndex >= startIndex) {
    const bytes = Buffer.from(text);
    const start = bytes.toString('utf8', 0, startIndex).length;
    const end = bytes.toString('utf8', 0, endIndex).length;
    if (words === '' || text.slice(start, end) === words) return { start, end };
  }
  const at = words === '' ? -1 : text.indexOf(words);
  return at === -1 ? undefined : { start: at, end: at + words.length };
}

function objects(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function numbers(value: Json | undefined): readonly number[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'number') : [];
}
