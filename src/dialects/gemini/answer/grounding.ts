/** Sources of an answer: what a search found (`groundingMetadata`), as citations of the text that rests on it. */
import type { Citation, TextSpan } from '../../../core/conversation.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import { dialectId } from '../fields.ts';

/** A text of the answer. */
export interface AnswerText {
  /** Of its part. */
  readonly index: number;
  text: string;
}

export interface CitedText {
  /** Of the part that rests on it. */
  readonly index: number;
  readonly citation: Citation;
}

/**
 * The sources of an answer, each with the text that rests on it. One that belongs to no passage, or to a passage that no
 * text has, is a source of the last text as a whole.
 * @param texts in their order, at least one
 */
export function citationsOf(
  grounding: JsonObject,
  texts: readonly AnswerText[],
): readonly CitedText[] {
  const sources = objects(grounding['groundingChunks']).map(sourceOf);
  const cited = new Set<number>();
  const citations: CitedText[] = [];
  for (const support of objects(grounding['groundingSupports'])) {
    const segment = isObject(support['segment']) ? support['segment'] : {};
    const passage = passageOf(segment, texts);
    if (passage === undefined) continue;
    const { index, span, words } = passage;
    for (const at of numbers(support['groundingChunkIndices'])) {
      const source = sources[at];
      if (source === undefined) continue;
      cited.add(at);
      citations.push({ index, citation: { ...source, citedText: words, span } });
    }
  }
  const last = texts.at(-1)?.index ?? 0;
  sources.forEach((source, at) => {
    if (source !== undefined && !cited.has(at)) citations.push({ index: last, citation: source });
  });
  return citations;
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

interface Passage {
  readonly index: number;
  readonly span: TextSpan;
  readonly words: string;
}

/**
 * Where a passage stands. Offsets count from the beginning of its text, in bytes of UTF-8; here in units of UTF-16. Where
 * the words at the offsets are others than the segment says, the words decide.
 */
function passageOf(segment: JsonObject, texts: readonly AnswerText[]): Passage | undefined {
  const words = textOf(segment['text']);
  for (const each of texts.toReversed()) {
    const span = spanAt(segment, each.text);
    if (span === undefined) continue;
    const there = each.text.slice(span.start, span.end);
    if (words === '' || there === words) return { index: each.index, span, words: there };
  }
  const holding = words === '' ? undefined : texts.findLast(({ text }) => text.includes(words));
  if (holding === undefined) return undefined;
  const start = holding.text.indexOf(words);
  return { index: holding.index, span: { start, end: start + words.length }, words };
}

/** Undefined where the text ends before that. */
function spanAt({ startIndex = 0, endIndex }: JsonObject, text: string): TextSpan | undefined {
  if (typeof startIndex !== 'number' || typeof endIndex !== 'number') return undefined;
  const bytes = Buffer.from(text);
  if (endIndex < startIndex || endIndex > bytes.length) return undefined;
  const start = bytes.toString('utf8', 0, startIndex).length;
  return { start, end: bytes.toString('utf8', 0, endIndex).length };
}

function objects(value: Json | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function numbers(value: Json | undefined): readonly number[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'number') : [];
}
