/**
 * The many spellings of reasoning in this dialect (wire/translation.md §5.1), as entries of one form.
 * Structured lists win over plain strings, and no text is counted twice when both are sent.
 */
import type { Json, JsonObject, ReasoningPart } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';
import { isArray, type JsonMembers } from './fields.ts';

/** One piece of reasoning, whole or an increment. */
export interface ReasoningEntry {
  /** The number of the block that an increment belongs to, where the server counts them. */
  readonly index: number | undefined;
  readonly text: string;
  readonly signature: string | undefined;
  readonly encrypted: string | undefined;
  /** The server announced a format whose blocks are sealed by a signature. */
  readonly signed: boolean;
  /** Fields that only this dialect knows: `format`, `id`, `summary: true`. */
  readonly extras: JsonObject | undefined;
}

/** Anthropic's signatures are native to the messages dialect: their format needs no mention. */
export const nativeFormat = 'anthropic-claude-v1';

/** All reasoning of a message or delta, in order; empty when there is none. */
export function readReasoning(message: JsonObject): readonly ReasoningEntry[] {
  const entries =
    readDetails(message['reasoning_details']) ?? readBlocks(message['thinking_blocks']);
  const signature = textOf(message['reasoning_signature']);
  const plain = textOf(message['reasoning_content']) ?? textOf(message['reasoning']);
  if (entries === undefined) {
    if (plain === undefined && signature === undefined) return [];
    return [{ ...emptyEntry, text: plain ?? '', signature }];
  }
  if (plain === undefined || entries.some((entry) => entry.text !== '')) return entries;
  // The list seals what the plain string says.
  const first = entries[0] ?? emptyEntry;
  if (first.encrypted === undefined) return [{ ...first, text: plain }, ...entries.slice(1)];
  return [{ ...emptyEntry, text: plain }, ...entries];
}

export const emptyEntry: ReasoningEntry = {
  signed: false,
  index: undefined,
  text: '',
  signature: undefined,
  encrypted: undefined,
  extras: undefined,
};

/** Entries of a whole message as parts; increments of one block are put together. */
export function reasoningParts(entries: readonly ReasoningEntry[]): readonly ReasoningPart[] {
  const parts: ReasoningPart[] = [];
  let lastIndex: number | undefined;
  for (const entry of entries) {
    const last = parts.at(-1);
    const continues = last !== undefined && entry.index !== undefined && entry.index === lastIndex;
    if (continues) parts[parts.length - 1] = joined(last, entry);
    else parts.push(reasoningPart(entry));
    lastIndex = entry.index;
  }
  return parts;
}

/** A part that begins with this entry. */
export function reasoningPart({
  text,
  signature,
  encrypted,
  extras,
}: ReasoningEntry): ReasoningPart {
  return {
    type: 'reasoning',
    text,
    ...(signature === undefined ? {} : { signature }),
    ...(encrypted === undefined ? {} : { encrypted }),
    ...(extras === undefined ? {} : { extras: { 'openai-chat': extras } }),
  };
}

function joined(part: ReasoningPart, entry: ReasoningEntry): ReasoningPart {
  const signature = (part.signature ?? '') + (entry.signature ?? '');
  const encrypted = (part.encrypted ?? '') + (entry.encrypted ?? '');
  const extras = part.extras ?? (entry.extras && { 'openai-chat': entry.extras });
  return {
    type: 'reasoning',
    text: part.text + entry.text,
    ...(signature === '' ? {} : { signature }),
    ...(encrypted === '' ? {} : { encrypted }),
    ...(extras === undefined ? {} : { extras }),
  };
}

/** OpenRouter's `reasoning_details`. */
function readDetails(value: Json | undefined): readonly ReasoningEntry[] | undefined {
  if (!isArray(value) || value.length === 0) return undefined;
  const entries: ReasoningEntry[] = [];
  for (const detail of value) if (isObject(detail)) entries.push(readDetail(detail));
  return entries.length === 0 ? undefined : entries;
}

function readDetail(detail: JsonObject): ReasoningEntry {
  const { index, format, id } = detail;
  const summary = detail['type'] === 'reasoning.summary';
  const extras: JsonMembers = {};
  if (typeof format === 'string' && format !== nativeFormat) extras['format'] = format;
  if (typeof id === 'string') extras['id'] = id;
  if (summary) extras['summary'] = true;
  return {
    index: typeof index === 'number' ? index : undefined,
    text: textOf(detail[summary ? 'summary' : 'text']) ?? '',
    signature: textOf(detail['signature']),
    encrypted: textOf(detail['data']),
    signed: format === nativeFormat,
    extras: Object.keys(extras).length === 0 ? undefined : extras,
  };
}

/** LiteLLM's `thinking_blocks`. */
function readBlocks(value: Json | undefined): readonly ReasoningEntry[] | undefined {
  if (!isArray(value) || value.length === 0) return undefined;
  const entries: ReasoningEntry[] = [];
  for (const block of value) {
    if (!isObject(block)) continue;
    entries.push({
      ...emptyEntry,
      text: textOf(block['thinking']) ?? '',
      signature: textOf(block['signature']),
      encrypted: textOf(block['data']),
    });
  }
  return entries.length === 0 ? undefined : entries;
}

/** Text of a Mistral content part `{type: "thinking", thinking: string | text parts}`. */
export function thinkingText(part: JsonObject): string {
  const thinking = part['thinking'];
  if (typeof thinking === 'string') return thinking;
  if (!isArray(thinking)) return '';
  return thinking.map((piece) => (isObject(piece) ? (textOf(piece['text']) ?? '') : '')).join('');
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
