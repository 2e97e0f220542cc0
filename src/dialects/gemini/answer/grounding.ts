/** Sources that a search found (`groundingMetadata`), as citations on the text that they support. */
import type { Citation, TextSpan } from '../../../core/conversation.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import { dialectId } from '../fields.ts';

/** A text of the answer. */
export interface AnswerText {
  /** Index of its part. */
  readonly index: number;
  text: string;
}

export interface CitedText {
  /** Index of the part that the source supports. */
  readonly index: number;
  readonly citation: Citation;
}

/**
 * The sources of an answer, each with the text that it supports. A source without a passage, or with a passage that no
 * text contains, is a source of the whole last text.
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

/** The number of charged searches: one a request for models before Gemini 3, one a query for later models. */
export function searchesOf(grounding: JsonObject, model: string): number {
  const queries = grounding['webSearchQueries'];
  const asked = Array.isArray(queries) ? queries.length : 0;
  return /gemini-[12]\b/.test(model) ? Math.min(1, asked) : asked;
}

/** Undefined for a source without an address. */
function sourceOf(chunk: JsonObject): Citation | undefined {
  const kinds = [chunk['web'], chunk['retrievedContext'], chunk['maps'], chunk['image']];
  const source = kinds.find(isObject);
  const url = textOf(source?.['uri'] ?? source?.['sourceUri']);
  if (source === undefined || url === '') return undefined;
  const title = textOf(source['title']);
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
 * The position of a passage. The API counts offsets in bytes of UTF-8 from the beginning of the text; the result is in
 * units of UTF-16. If the text at the offsets differs from the segment's text, the segment's text is searched.
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

/** Undefined if the text ends before the offset. */
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
