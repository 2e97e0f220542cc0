/**
 * Reads the spellings of reasoning in this dialect as entries of one form.
 * Structured lists win over plain strings, and no text is counted twice when both are sent.
 */
import type { Origin, ReasoningPart, ToolCallPart } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import type { PositionedReasoning } from '../../core/recall.ts';
import type { Notes } from '../../core/notes.ts';
import type { Sealer } from '../../core/secret.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  isArray,
} from '../../json/value.ts';
import { answerObjects, answerText } from '../shared/answers.ts';
import { readCall } from './message-forms.ts';
import { fillerNote } from '../shared/request/message-turns.ts';

/** One piece of reasoning, whole or an increment. */
export interface ReasoningEntry {
  /** The index of the increment's block, if the server sends one. */
  readonly index: number | undefined;
  readonly text: string;
  readonly signature: string | undefined;
  readonly encrypted: string | undefined;
  /** The server announced a format with signed blocks. */
  readonly signed: boolean;
  /** Fields that only this dialect knows: `format`, `id`, `summary: true`. */
  readonly extras: JsonObject | undefined;
}

/** Anthropic's signatures belong to the messages dialect, where the format has no name. */
export const nativeFormat = 'anthropic-claude-v1';
/** OpenRouter's name for reasoning that a Responses server encrypted. */
export const responsesFormat = 'openai-responses-v1';

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
  // The list has the signature of the text in the plain string.
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

/** Entries of a whole message as parts. Increments of one block are joined. */
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

/** The part that this entry begins. */
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
  // The first increment of a summary says that it is one; the mark and the format are in the last one.
  const members = { ...entry.extras, ...part.extras?.['openai-chat'] };
  const extras =
    Object.keys(members).length === 0 ? part.extras : { ...part.extras, 'openai-chat': members };
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
  const { thinking } = part;
  const said = isArray(thinking) ? thinking : [thinking];
  return said.map((piece) => textOf(isObject(piece) ? piece['text'] : piece) ?? '').join('');
}

/**
 * The reasoning of an answer, in which a missing field is an error.
 * @throws GatewayError `upstream_invalid` for a member that is of a wrong type.
 */
export function readAnswerReasoning(answer: JsonObject): readonly ReasoningEntry[] {
  for (const name of plainMembers) answerText(answer[name], name);
  for (const name of listMembers) {
    for (const entry of answerObjects(answer[name], name)) {
      for (const member of entryMembers) answerText(entry[member], `${name}.${member}`);
    }
  }
  return readReasoning(answer);
}

const plainMembers = ['reasoning_content', 'reasoning', 'reasoning_signature'] as const;
const listMembers = ['reasoning_details', 'thinking_blocks'] as const;
const entryMembers = ['text', 'summary', 'thinking', 'signature', 'data'] as const;

/** The same of a content part. @throws GatewayError `upstream_invalid` */
export function answerThinking(part: JsonObject): string {
  const { thinking } = part;
  if (!isArray(thinking)) return answerText(thinking, 'thinking');
  for (const piece of thinking) answerText(isObject(piece) ? piece['text'] : piece, 'thinking');
  return thinkingText(part);
}

function textOf(value: Json | undefined): string | undefined {
  if (typeof value === 'number' || value === true) return String(value);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

// Marks on entries of `reasoning_details` that show whether they came back whole, without any state.
// The helpers of the official SDKs keep the last piece of each entry only, or nothing but the last
// entry; a signature without its text would be a 400 on the next turn. The entry with the
// signature therefore carries a digest of the text, with the position of the entry in its turn.

/** Where an entry is: its number among the entries, and the calls before it. */
interface DetailPosition {
  readonly entry: number;
  readonly callsBefore: number;
}

const markForm = /^gwr_(\d{1,6})_(\d{1,6})_([\w-]{22})$/;

/** Whether the `id` of an entry says that the gateway wrote it. */
export function isDetailMark(id: Json | undefined): boolean {
  return typeof id === 'string' && markForm.test(id);
}

/** The `id` of an entry whose text is complete. */
export function detailMark(part: ReasoningPart, position: DetailPosition, sealer: Sealer): string {
  const { entry, callsBefore } = position;
  return `gwr_${entry}_${callsBefore}_${sealer.digest(marked(part, position))}`;
}

function marked(part: ReasoningPart, { entry, callsBefore }: DetailPosition): string {
  const secret = part.encrypted === undefined ? 'text' : 'encrypted';
  return `${entry}_${callsBefore}_${secret}_${part.encrypted ?? part.text}`;
}

/**
 * The reasoning of a message at its positions in the turn. Where one marked entry is missing or differs,
 * all are broken: a provider wants all of a turn or none.
 */
export function checkReasoning(
  parts: readonly ReasoningPart[],
  sealer: Sealer | undefined,
): readonly PositionedReasoning[] {
  let whole = true;
  const placed = parts.map((part, i): PositionedReasoning => {
    const id = part.extras?.['openai-chat']?.['id'];
    const mark = typeof id === 'string' ? markForm.exec(id) : null;
    if (mark === null) return { callsBefore: 0, part };
    const position = { entry: Number(mark[1]), callsBefore: Number(mark[2]) };
    if (position.entry !== i || sealer?.digest(marked(part, position)) !== mark[3]) whole = false;
    return { callsBefore: position.callsBefore, part: withoutMark(part) };
  });
  if (whole) return placed;
  return placed.map(({ callsBefore, part }) => ({ callsBefore, part: { ...part, broken: true } }));
}

function withoutMark(part: ReasoningPart): ReasoningPart {
  const { extras, ...rest } = part;
  const { id: _mark, ...members } = extras?.['openai-chat'] ?? {};
  return Object.keys(members).length === 0
    ? rest
    : { ...rest, extras: { ...extras, 'openai-chat': members } };
}

// Reasoning as entries of `reasoning_details`.

/** The whole entry of a part, with its index in the list. */
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

/** The same of an answer. Words that nobody sealed are in no maker's form; in a stream they have none, either. */
export function writeAnswerDetail(part: ReasoningPart, index: number): JsonObject {
  const entry = writeDetail(part, index);
  if (hasProof(part) || entry['format'] !== nativeFormat) return entry;
  const { format: _, ...unnamed } = entry;
  return unnamed;
}

export function isSummary(part: ReasoningPart): boolean {
  const ofResponses = part.extras?.['openai-responses'];
  if (ofResponses !== undefined) return ofResponses['raw'] !== true;
  return part.extras?.['openai-chat']?.['summary'] === true;
}

export function detailType(part: ReasoningPart): string {
  if (part.encrypted !== undefined) return 'reasoning.encrypted';
  return isSummary(part) ? 'reasoning.summary' : 'reasoning.text';
}

/** The members that may occur once in an entry. A stream may repeat only `index` and `type`. */
export function detailConstants(part: ReasoningPart): JsonObject {
  const { format, id } = part.extras?.['openai-chat'] ?? {};
  const usual = part.extras?.['openai-responses'] === undefined ? nativeFormat : responsesFormat;
  return {
    ...(typeof id === 'string' ? { id } : {}),
    format: typeof format === 'string' ? format : usual,
  };
}

/** Whether its provider signed or encrypted it. */
export function hasProof(part: ReasoningPart): boolean {
  return part.signature !== undefined || part.encrypted !== undefined;
}

// Signatures of calls, for the server that refuses a history without them (Gemini).

interface SignedCall {
  readonly id: string;
  readonly extras: JsonObject | undefined;
}

/** The members to add to each call of a turn, and whether they are the vendor's placeholder for a missing signature. */
export interface CallSignatures {
  readonly members: readonly JsonObject[];
  readonly filled: boolean;
}

/**
 * Undefined when nothing is missing or nothing is known. Only the first of parallel calls carries a
 * signature. A turn that never had one (another model wrote it) gets the vendor's own word for that,
 * where there is one; no signature is ever made up.
 * @param kept what the server said of calls of this turn, by id.
 */
export function missingSignatures(
  calls: readonly SignedCall[],
  traits: UpstreamTraits,
  kept?: ReadonlyMap<string, JsonObject>,
): CallSignatures | undefined {
  if (traits.callSignatures !== true || calls.length === 0) return undefined;
  if (calls.some(({ extras }) => isSigned(extras))) return undefined;
  if (kept !== undefined && calls.some(({ id }) => kept.has(id))) {
    return { members: calls.map(({ id }) => kept.get(id) ?? {}), filled: false };
  }
  const filler = traits.callSignatureFiller;
  if (filler === undefined) return undefined;
  const signature = { extra_content: { google: { thought_signature: filler } } };
  return { members: calls.map((_, i) => (i === 0 ? signature : {})), filled: true };
}

function isSigned(extras: JsonObject | undefined): boolean {
  const content = extras?.['extra_content'];
  const google = isObject(content) ? content['google'] : undefined;
  return isObject(google) && typeof google['thought_signature'] === 'string';
}

// Reasoning of earlier turns on its way back. It never becomes text that the
// user seems to have seen, and no provider is sent what another one sealed.

interface Replaying {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** The provider of this request; undefined = the one that made the reasoning. */
  readonly provider: string | undefined;
}

/** Writes the reasoning that the turns of a request send back. The state is the notes so far. */
export class ReasoningReplay {
  readonly #replaying: Replaying;
  #noted = false;
  #notedFiller = false;

  constructor(replaying: Replaying) {
    this.#replaying = replaying;
  }

  /**
   * Some servers want text back on every assistant message, and have a word for none; others want
   * what they sealed, as they sent it.
   */
  members(reasoning: readonly ReasoningPart[], path: FieldPath): JsonMembers {
    const { traits } = this.#replaying;
    const kept = reasoning.filter((part) => this.#mayBeSent(part, path));
    if (traits.reasoningDetails === true) {
      const sealed = kept.filter((part) => this.#isOwn(part.origin) && isSealedPart(part));
      if (sealed.length > 0) return { reasoning_details: sealed.map(writeDetail) };
    }
    if (traits.reasoningReplay) {
      const text = joinedText(kept) || traits.reasoningFiller;
      return text === undefined ? {} : { reasoning_content: text };
    }
    if (traits.reasoningField === undefined) return {};
    const text = joinedText(kept.filter((part) => part.origin !== undefined));
    return text === '' ? {} : { [traits.reasoningField]: text };
  }

  /** The extras of a call from its own provider. */
  callMembers(part: ToolCallPart, path: FieldPath): JsonObject {
    const extras = part.extras?.['openai-chat'];
    if (extras === undefined) return {};
    if (part.origin !== undefined && !this.#isOwn(part.origin)) {
      this.#note(path, 'what another provider sealed is not sent to this one');
      return {};
    }
    return extras;
  }

  /** The calls of a turn, with signatures if the server requires them. */
  signed(calls: readonly JsonObject[], path: FieldPath): readonly JsonObject[] {
    const { traits, notes } = this.#replaying;
    const missing = missingSignatures(calls.map(readCall), traits);
    if (missing === undefined) return calls;
    if (!this.#notedFiller) notes.changed(path, fillerNote);
    this.#notedFiller = true;
    return calls.map((call, i) => ({ ...call, ...missing.members[i] }));
  }

  /** Reasoning without an origin may be the client's own. Sealed reasoning has an origin. */
  #mayBeSent(part: ReasoningPart, path: FieldPath): boolean {
    if (part.broken === true) {
      this.#note(path, 'reasoning came back changed or incomplete');
      return false;
    }
    const isReadable = part.origin === undefined || this.#isOwn(part.origin);
    if (isReadable && (!isSealedPart(part) || isSealReadable(part, this.#replaying.traits))) {
      return true;
    }
    this.#note(path, foreign);
    return false;
  }

  #isOwn(origin: Origin | undefined): boolean {
    const { provider } = this.#replaying;
    if (origin === undefined) return true;
    return (
      origin.dialect === 'openai-chat' && (provider === undefined || origin.provider === provider)
    );
  }

  /** Noted once a request, since a history may have hundreds of them. */
  #note(path: FieldPath, why: string): void {
    if (this.#noted) return;
    this.#noted = true;
    this.#replaying.notes.lost(path, why);
  }
}

const foreign = 'reasoning of another provider is not shown to this one';

/** Whether the model's maker sealed it, whichever provider passed it on. Other servers accept only their own. */
function isSealReadable(part: ReasoningPart, traits: UpstreamTraits): boolean {
  if (traits.reasoningDetails !== true) return part.origin !== undefined;
  const format = part.extras?.['openai-chat']?.['format'];
  return (typeof format === 'string' ? format : nativeFormat) === traits.reasoningFormat;
}

function joinedText(reasoning: readonly ReasoningPart[]): string {
  return reasoning
    .map((part) => part.text)
    .filter((text) => text !== '')
    .join('\n\n');
}

/** Whether it has more than text: data that only its maker understands. */
function isSealedPart(part: ReasoningPart): boolean {
  return hasProof(part) || part.extras?.['openai-chat'] !== undefined;
}
