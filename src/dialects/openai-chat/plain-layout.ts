/**
 * What the frames of an answer have in common: from one piece of text to the next nothing changes but that text, as a
 * rule. Such a frame is told by what stands around its text, and only the text is read.
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { harmlessLength } from '../../core/json-answer.ts';
import { isObject, parseNumbers, tryParseEvent } from '../../core/json.ts';
import { isArray } from './fields.ts';
import { isPresent } from './response-read.ts';

const contentKey = /"content"\s*:\s*"/;
/** Servers that change something else with every frame are found out so soon. */
const mostMisses = 3;
/** Stands for a text while a layout is tried; no answer says it, or it is no layout. */
const probe = 'piece-of-text-in-its-place';

/** Of one stream. */
export class PlainLayout {
  /** Up to the opening quote of the text, and from its closing one on. */
  #head: string | undefined;
  #tail = '';
  /** Layouts that no frame had but the one that taught them. */
  #misses = 0;

  /**
   * The text of a frame that is like the one before; undefined for any other. It is what a parse of the frame would
   * find: all else is the same, to the letter, and this is one JSON string.
   */
  textOf(data: string): string | undefined {
    const head = this.#head;
    if (head === undefined || data.length > harmlessLength) return undefined;
    const start = head.length;
    const end = data.length - this.#tail.length;
    // A comparison of slices takes words at a time, `startsWith` letters.
    if (end <= start || data.slice(0, start) !== head || data.slice(end) !== this.#tail) {
      return undefined;
    }
    const text = stringOf(data.slice(start - 1, end + 1));
    if (text !== undefined) this.#misses = 0;
    return text;
  }

  /** A frame that was parsed, and holds a piece of text and nothing else. */
  learn(data: string): void {
    this.#head = undefined;
    if (this.#misses === mostMisses || data.length > harmlessLength) return;
    this.#misses += 1;
    const key = contentKey.exec(data);
    if (key === null || data.includes(probe)) return;
    const start = key.index + key[0].length;
    const head = data.slice(0, start);
    const tail = data.slice(stringEnd(data, start));
    // A quote behind a backslash begins no string. Without any the last quote of the head does, or the probe is no JSON.
    if (head.includes('\\') || tail.includes('\\')) return;
    const chunk = tryParseEvent(head + probe + tail);
    if (chunk === undefined || plainTextOf(chunk) !== probe) return;
    this.#head = head;
    this.#tail = tail;
  }
}

/** The text of a frame that goes on with it and says nothing else; undefined of any other frame. */
export function plainTextOf(chunk: JsonObject): string | undefined {
  if (isObject(chunk['usage']) || chunk['x_groq'] !== undefined) return undefined;
  const delta = onlyDelta(chunk['choices']);
  const content = delta?.['content'];
  if (delta === undefined || typeof content !== 'string' || content === '') return undefined;
  for (const key in delta) {
    if (key !== 'content' && key !== 'role' && isPresent(delta[key])) return undefined;
  }
  return content;
}

/** Of a choice that is alone, is the first and goes on. */
function onlyDelta(choices: Json | undefined): JsonObject | undefined {
  if (!isArray(choices) || choices.length !== 1) return undefined;
  const [choice] = choices;
  if (!isObject(choice) || (choice['index'] ?? 0) !== 0) return undefined;
  const { delta } = choice;
  return isObject(delta) && !isPresent(choice['finish_reason']) ? delta : undefined;
}

/** The text that is written with its quotes; undefined where that is more or less than one JSON string. */
function stringOf(written: string): string | undefined {
  try {
    const text = parseNumbers(written, false);
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Where the string ends that begins behind this quote. */
function stringEnd(text: string, from: number): number {
  let i = from;
  while (i < text.length && text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}
