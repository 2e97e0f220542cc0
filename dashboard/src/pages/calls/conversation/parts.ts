/** What a message is made of, in no dialect: the parts of chat, messages and responses bodies, for reading. */
import { isRecord, textOf, type JsonRecord } from '../../playground/formats/request.ts';

export type Part =
  | { readonly kind: 'text'; readonly text: string }
  /** An empty text: the model sent it hidden or encrypted. */
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string; readonly input: string }
  | {
      readonly kind: 'result';
      readonly id: string;
      readonly isError: boolean;
      readonly parts: readonly Part[];
    }
  /** A picture, document or sound; its data are not stored. */
  | { readonly kind: 'media'; readonly type: string; readonly about: string }
  /** A part of no kind above, as JSON. */
  | { readonly kind: 'other'; readonly type: string; readonly json: string };

export interface Message {
  /** `system`, `user`, `assistant`, `tool`, or the word of the body. */
  readonly role: string;
  readonly parts: readonly Part[];
}

/** Parts of a content, which is one text or a list of parts. */
export function partsOf(content: unknown): readonly Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }];
  if (Array.isArray(content)) return (content as readonly unknown[]).flatMap(partOf);
  return isRecord(content) ? [partOf(content)] : [];
}

function partOf(part: unknown): Part {
  if (typeof part === 'string') return { kind: 'text', text: part };
  if (!isRecord(part)) return other('', part);
  const type = textOf(part['type']);
  return readers[type]?.(part) ?? (isResult(part) ? resultOf(part) : other(type, part));
}

type PartReader = (part: JsonRecord) => Part;

const text: PartReader = (part) => ({ kind: 'text', text: textOf(part['text']) });
const summary: PartReader = (part) => ({ kind: 'reasoning', text: textOf(part['text']) });
const media: PartReader = (part) => ({
  kind: 'media',
  type: textOf(part['type']),
  about: aboutMedia(part).join(', '),
});

/** By the type of the part. */
const readers: { readonly [type: string]: PartReader } = {
  text,
  input_text: text,
  output_text: text,
  refusal: (part) => ({ kind: 'text', text: textOf(part['refusal']) }),
  summary_text: summary,
  reasoning_text: summary,
  thinking: (part) => ({ kind: 'reasoning', text: textOf(part['thinking']) }),
  redacted_thinking: () => ({ kind: 'reasoning', text: '' }),
  tool_use: blockCall,
  server_tool_use: blockCall,
  mcp_tool_use: blockCall,
  image: media,
  image_url: media,
  input_image: media,
  document: media,
  file: media,
  input_file: media,
  input_audio: media,
};

function blockCall(block: JsonRecord): Part {
  const { id, name, input } = block;
  return callPart(id, name, input);
}

/** @param input JSON text, or the value itself */
export function callPart(id: unknown, name: unknown, input: unknown): Part {
  return { kind: 'call', id: textOf(id), name: textOf(name), input: readable(input) };
}

/** `tool_result`, `web_search_tool_result` and their kind. */
function isResult({ type }: JsonRecord): boolean {
  return textOf(type).endsWith('tool_result');
}

function resultOf(block: JsonRecord): Part {
  const { tool_use_id: id, content, is_error: isError } = block;
  return resultPart(id, content, isError === true);
}

export function resultPart(id: unknown, content: unknown, isError = false): Part {
  return { kind: 'result', id: textOf(id), isError, parts: partsOf(content) };
}

export function other(type: string, value: unknown): Part {
  return { kind: 'other', type, json: JSON.stringify(value, null, 2) };
}

/** The short texts in it, such as the address, the name, and the mark in the place of the data. */
function aboutMedia(value: unknown, name = ''): readonly string[] {
  if (typeof value === 'string') return hiddenMembers.has(name) ? [] : [value];
  if (Array.isArray(value))
    return (value as readonly unknown[]).flatMap((each) => aboutMedia(each));
  if (!isRecord(value)) return [];
  return Object.entries(value).flatMap(([member, inner]) => aboutMedia(inner, member));
}

/** Words of the wire that say nothing to a reader. */
const hiddenMembers: ReadonlySet<string> = new Set(['type', 'detail', 'media_type', 'format']);

function readable(input: unknown): string {
  if (typeof input !== 'string') return JSON.stringify(input ?? {}, null, 2);
  try {
    return JSON.stringify(JSON.parse(input), null, 2);
  } catch {
    return input;
  }
}
