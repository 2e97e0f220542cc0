/** Writes turns as messages: order, roles, tool groups, instructions in between. */
import type {
  CacheMark,
  Conversation,
  MediaPart,
  Part,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../core/conversation.ts';
import { type FieldPath, invalidRequest, unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  isArray,
} from '../../../json/value.ts';
import { imageDetail } from '../../shared/request/responses-fields.ts';
import { sentToolName, ToolIdMap, toolIdMapFor } from '../../shared/tool-names.ts';
import {
  bridge,
  bridgeNote,
  freeTextInput,
  isKnownMember,
  isMarked,
  MessageBounds,
  settleBreakpoints,
  textContent,
  unknownMemberNote,
  writePartMark,
} from '../message-forms.ts';
import { taggedInstructions, taggedNote } from '../../shared/request/instructions.ts';
import { ReasoningReplay } from '../reasoning.ts';
import { maxToolName } from './write-tools.ts';
import { documentText } from '../../shared/request/message-turns.ts';

interface MessageWriting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** The provider of this request. */
  readonly provider?: string | undefined;
}

/** A result and its path, for notes. */
interface PositionedResult {
  readonly part: ToolResultPart;
  readonly path: FieldPath;
}

/** A turn and its path, for notes. */
interface PositionedTurn {
  readonly turn: Turn;
  readonly path: FieldPath;
}

export class MessageWriter {
  readonly written: JsonMembers[] = [];
  readonly #traits: UpstreamTraits;
  readonly #notes: Notes;
  readonly #replay: ReasoningReplay;
  readonly #ids: ToolIdMap;
  readonly #freeText: ReadonlySet<string>;
  /** Ids of the calls of the last assistant turn. */
  #calls: readonly string[] = [];
  readonly #tools: Conversation['tools'];
  /** Instructions of this run are sent in a user message. */
  #tagged = false;

  constructor({ conversation, traits, notes, provider }: MessageWriting) {
    this.#traits = traits;
    this.#notes = notes;
    this.#replay = new ReasoningReplay({ traits, notes, provider });
    this.#ids = toolIdMapFor(traits) ?? new ToolIdMap();
    this.#tools = conversation.tools;
    const custom = traits.customTools === true ? conversation.tools : [];
    const freeText = custom.filter((tool) => tool.freeText === true);
    this.#freeText = new Set(freeText.map((tool) => tool.name));
  }

  /** Writes the instructions as the first message. Its parts are joined unless a cache mark is on them. */
  system(parts: readonly Part[], instruction: string | undefined): void {
    const texts = this.#instructions(parts, ['system']);
    if (instruction !== undefined) texts.push({ type: 'text', text: instruction });
    if (texts.length === 0) return;
    this.written.push({ role: this.#traits.systemRole, content: this.#instructionText(texts) });
  }

  /** @throws GatewayError `invalid_request` when no turn has content for this upstream. */
  turns(turns: readonly Turn[]): void {
    const instructions = this.written.length;
    let run: PositionedTurn[] = [];
    for (const [i, turn] of turns.entries()) {
      const path = pathOf(turn, ['messages', i]);
      if (turn.role !== 'assistant') {
        run.push({ turn, path });
        continue;
      }
      this.#writeRun(run);
      run = [];
      this.#writeAssistant(turn, path);
    }
    this.#writeRun(run);
    if (this.written.length === instructions) {
      throw invalidRequest('At least one message must have content.', pathOf(turns, ['messages']));
    }
    if (this.#traits.cacheBreakpoints === true) settleBreakpoints(this.written);
    if (isPrefill(this.written) && !this.#traits.prefill) {
      this.#notes.changed(
        pathOf(turns.at(-1) ?? turns, ['messages', turns.length - 1]),
        'the model answers the last assistant turn instead of continuing it',
      );
    }
  }

  /**
   * Everything between two assistant turns: all tool results first, whatever turn they came in, then
   * the rest in its order. Instructions are never between a call and its result.
   */
  #writeRun(run: readonly PositionedTurn[]): void {
    const attachments = new Attachments();
    this.#tagged = false;
    for (const { part, path } of this.#resultsOf(run)) {
      const writing = this.#resultWriting(part, path, attachments);
      this.written.push(writeToolResult(part, writing));
    }
    let waiting: JsonObject[] = [...attachments.parts];
    let userPath = run[0]?.path ?? [];
    for (const { turn, path } of run) {
      if (turn.role === 'system') {
        waiting = this.#writeInstructions(turn, path, waiting);
        userPath = path;
        continue;
      }
      const content = [...waiting, ...this.#userContent(turn, path)];
      waiting = [];
      this.#pushUser(content, path, turn.name);
    }
    this.#pushUser(waiting, userPath);
  }

  /** Results in the order of their calls, since some servers pair them by order. */
  #resultsOf(run: readonly PositionedTurn[]): readonly PositionedResult[] {
    const results = run.flatMap(({ turn, path }) =>
      turn.parts.flatMap((part, j): readonly PositionedResult[] =>
        part.type === 'tool-result' ? [{ part, path: pathOf(part, [...path, 'content', j]) }] : [],
      ),
    );
    const indexes = new Map(this.#calls.map((id, index) => [id, index]));
    const order = (id: string): number => indexes.get(id) ?? -1;
    return results.sort((a, b) => order(a.part.callId) - order(b.part.callId));
  }

  #pushUser(content: readonly JsonObject[], path: FieldPath, name?: string): void {
    if (content.length === 0) return;
    const last = this.written.at(-1);
    if (last?.['role'] === 'tool' && this.#traits.assistantAfterTools === true) {
      this.#notes.changed(path, bridgeNote);
      this.written.push({ ...bridge });
    }
    // Where instructions must be in front, turns usually must alternate: these make no turn of their own.
    if (this.#tagged && last?.['role'] === 'user' && name === undefined) {
      last['content'] = plainOrParts([...partsOf(last['content']), ...content]);
      return;
    }
    const message = { role: 'user', content: plainOrParts(content), ...this.#author('user', name) };
    this.written.push(message);
  }

  #author(role: 'user' | 'assistant', name: string | undefined): JsonMembers {
    if (name === undefined) return {};
    if (isKnownMember('name', { role }, this.#traits)) return { name };
    this.#notes.lost(['messages', this.written.length, 'name'], unknownMemberNote);
    return {};
  }

  /** Instructions in mid-conversation: in place where allowed, else tagged in a user turn. */
  #writeInstructions(turn: Turn, path: FieldPath, waiting: readonly JsonObject[]): JsonObject[] {
    const texts = this.#instructions(turn.parts, path);
    if (texts.length === 0) return [...waiting];
    if (!this.#traits.systemAnywhere) {
      const text = taggedInstructions(texts.map((part) => String(part['text'])));
      this.#notes.changed(path, taggedNote);
      this.#tagged = true;
      return [...waiting, { type: 'text', text }];
    }
    this.#pushUser(waiting, path);
    this.written.push({ role: this.#traits.systemRole, content: this.#instructionText(texts) });
    return [];
  }

  #instructions(parts: readonly Part[], path: FieldPath): JsonObject[] {
    const texts: JsonObject[] = [];
    parts.forEach((part, j) => {
      if (part.type === 'text') {
        if (!isBlank(part.text)) texts.push(this.#marked({ type: 'text', text: part.text }, part));
      } else {
        this.#notes.lost([...path, j], 'instructions are text only');
      }
    });
    return texts;
  }

  #userContent(turn: Turn, path: FieldPath): readonly JsonObject[] {
    const content: JsonObject[] = [];
    turn.parts.forEach((part, j) => {
      if (part.type === 'tool-result') return;
      const where = pathOf(part, [...path, 'content', j]);
      for (const written of this.#userPart(part, where)) content.push(this.#marked(written, part));
    });
    return content;
  }

  #userPart(part: Part, path: FieldPath): readonly JsonObject[] {
    switch (part.type) {
      case 'text':
        return isBlank(part.text) ? [] : [{ type: 'text', text: part.text }];
      case 'media':
        return [writeMedia(part, this.#traits, path)];
      case 'opaque':
        if (part.dialect === 'openai-chat') return [part.value];
        this.#notes.lost(path, 'not known to chat completions');
        return [];
      default:
        this.#notes.lost(path, `a ${part.type} has no place in a user message`);
        return [];
    }
  }

  #resultWriting(part: ToolResultPart, path: FieldPath, attachments: Attachments): ResultWriting {
    return {
      id: this.#ids.result(part.callId),
      path,
      attachments,
      mark: this.#mark(part.cacheUntilHere),
      traits: this.#traits,
      notes: this.#notes,
    };
  }

  #writeAssistant(turn: Turn, path: FieldPath): void {
    const texts = this.#assistantTexts(turn.parts, path);
    const calls: JsonObject[] = [];
    for (const part of turn.parts) {
      if (part.type === 'tool-call') calls.push(this.#writeCall(part, path));
    }
    this.#calls = turn.parts.flatMap((part) => (part.type === 'tool-call' ? [part.id] : []));
    const refused = turn.parts.map((part) => (part.type === 'refusal' ? part.text : '')).join('');
    const refusal = isKnownMember('refusal', { role: 'assistant' }, this.#traits) ? refused : '';
    if (refused !== refusal) texts.push({ type: 'text', text: refused });
    const reasoning = turn.parts.filter((part): part is ReasoningPart => part.type === 'reasoning');
    if (texts.length + calls.length + reasoning.length === 0 && refusal === '') return;
    const silent = calls.length > 0 || refusal !== '';
    this.written.push({
      role: 'assistant',
      content: texts.length === 0 ? (silent ? null : '') : textContent(texts, '', this.#traits),
      ...(refusal === '' ? {} : { refusal }),
      ...this.#replay.members(reasoning, path),
      ...(calls.length === 0 ? {} : { tool_calls: this.#replay.signed(calls, path) }),
      ...this.#author('assistant', turn.name),
    });
  }

  #assistantTexts(parts: readonly Part[], path: FieldPath): JsonObject[] {
    const texts: JsonObject[] = [];
    const bounds = new MessageBounds();
    parts.forEach((part, j) => {
      const where = pathOf(part, [...path, 'content', j]);
      bounds.begin(part);
      if (part.type === 'text') {
        const text = bounds.before(part.text) + part.text;
        if (part.text !== '') texts.push(this.#marked({ type: 'text', text }, part));
      } else if (part.type === 'opaque' || part.type === 'media') {
        this.#notes.lost(where, 'assistant messages are text only');
      }
    });
    // White space counts as text only between other blocks.
    return texts.every((part) => isBlank(String(part['text']))) ? [] : texts;
  }

  #writeCall(part: ToolCallPart, path: FieldPath): JsonObject {
    const id = this.#ids.call(part.id);
    const name = sentToolName(part.name, maxToolName, this.#tools);
    const { argumentsJson } = part;
    if (this.#freeText.has(part.name)) {
      const custom = { name, input: freeTextInput(argumentsJson) };
      return { id, type: 'custom', custom, ...this.#mark(part.cacheUntilHere) };
    }
    return {
      id,
      type: 'function',
      function: { name, arguments: argumentsJson.trim() === '' ? '{}' : argumentsJson },
      ...this.#mark(part.cacheUntilHere),
      ...this.#replay.callMembers(part, path),
    };
  }

  #marked(written: JsonObject, part: Part): JsonObject {
    return { ...written, ...this.#mark(part.cacheUntilHere) };
  }

  /** Some servers refuse a list as instructions. All take one text. */
  #instructionText(texts: readonly JsonObject[]): string | readonly JsonObject[] {
    return textContent(texts, '\n\n', this.#traits);
  }

  #mark(mark: CacheMark | undefined): JsonObject {
    return writePartMark(mark, this.#traits);
  }
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

function partsOf(content: Json | undefined): readonly JsonObject[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return isArray(content) ? content.filter(isObject) : [];
}

/** A string for one unmarked text, the parts otherwise. */
function plainOrParts(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const only = parts.length === 1 ? parts[0] : undefined;
  const plain = only?.['type'] === 'text' && !isMarked(only) ? only['text'] : undefined;
  return typeof plain === 'string' ? plain : parts;
}

// The last assistant message as the beginning of the answer.

/** Whether the last message is the beginning of an answer, without calls. */
export function isPrefill(messages: readonly JsonMembers[]): boolean {
  const last = messages.at(-1);
  return last?.['role'] === 'assistant' && last['tool_calls'] === undefined;
}

/** The member by which the upstream continues, on the request or on the message; none where it continues anyway. */
export function writePrefill(
  messages: readonly JsonMembers[],
  { prefill, prefillSwitch }: UpstreamTraits,
): JsonMembers {
  const last = messages.at(-1);
  if (!prefill || last === undefined || !isPrefill(messages)) return {};
  if (prefillSwitch === 'continue_final_message') {
    return { continue_final_message: true, add_generation_prompt: false };
  }
  if (prefillSwitch === 'prefix') last['prefix'] = true;
  return {};
}

// Tool results as tool messages. These are text only, so images and documents follow in one user
// message after the whole group of results.

/** Media of the tool results of one group, with labels. Tool messages cannot contain them. */
class Attachments {
  readonly parts: JsonObject[] = [];
  readonly #counts = new Map<MediaPart['kind'], number>();

  /** Takes the media and returns how the tool message refers to it. */
  add(kind: MediaPart['kind'], written: JsonObject, callId: string): string {
    const number = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, number);
    const title = `${kind[0]?.toUpperCase()}${kind.slice(1)}`;
    this.parts.push(
      { type: 'text', text: `${title} ${number} from tool result ${callId}:` },
      written,
    );
    return `[${kind} ${number} attached below]`;
  }
}

interface ResultWriting {
  /** The outgoing id of the call. */
  readonly id: string;
  readonly path: FieldPath;
  readonly attachments: Attachments;
  /** A cache mark in the upstream's spelling, or nothing. */
  readonly mark: JsonObject;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** Exactly one tool message, however many parts the result has. */
function writeToolResult(result: ToolResultPart, writing: ResultWriting): JsonMembers {
  const pieces = result.parts.flatMap((part, k) =>
    writePart(part, pathOf(part, [...writing.path, 'content', k]), writing),
  );
  if (result.failed) markFailed(pieces);
  return { role: 'tool', tool_call_id: writing.id, content: resultContent(pieces, writing) };
}

/** Chat has no flag for a failed call. */
function markFailed(pieces: JsonObject[]): void {
  const first = pieces.findIndex((piece) => piece['type'] === 'text');
  const text = String(pieces[first]?.['text'] ?? '');
  if (/^error\b/i.test(text)) return;
  const failed = { ...pieces[first], type: 'text', text: `Error: ${text}` };
  if (first === -1) pieces.unshift(failed);
  else pieces[first] = failed;
}

function resultContent(
  pieces: readonly JsonObject[],
  { mark, traits }: ResultWriting,
): string | readonly JsonObject[] {
  const last = { ...(pieces.at(-1) ?? { type: 'text', text: '' }), ...mark };
  const parts = [...pieces.slice(0, -1), last];
  return parts.every((piece) => piece['type'] === 'text')
    ? textContent(parts, '\n', traits)
    : parts;
}

function writePart(part: Part, path: FieldPath, writing: ResultWriting): readonly JsonObject[] {
  switch (part.type) {
    case 'text':
      return [{ ...textPiece(part.text), ...writePartMark(part.cacheUntilHere, writing.traits) }];
    case 'media': {
      const mark = writePartMark(part.cacheUntilHere, writing.traits);
      return [{ ...writeResultMedia(part, path, writing), ...mark }];
    }
    default:
      writing.notes.lost(path, 'not known to chat completions');
      return [];
  }
}

function writeResultMedia(part: MediaPart, path: FieldPath, writing: ResultWriting): JsonObject {
  const { traits, notes, attachments, id } = writing;
  if ('text' in part.source) return textPiece(documentText(part, part.source.text));
  const written = tryWriteMedia(part, traits);
  if (written === undefined) {
    // Agents send screenshots of their own accord. A refusal would end their session.
    const reason = traits.imageInput === 'none' ? 'model has no vision' : 'model cannot take it';
    notes.lost(path, `the ${part.kind} is left out, ${reason}`);
    return textPiece(`[${part.kind} omitted: ${reason}]`);
  }
  return traits.toolResultMedia ? written : textPiece(attachments.add(part.kind, written, id));
}

function textPiece(text: string): JsonObject {
  return { type: 'text', text };
}

// Images, documents and audio as content parts, if the upstream takes them.

/**
 * A media part as a content part.
 * @throws GatewayError `invalid_request` for a medium that the upstream cannot read.
 */
function writeMedia(part: MediaPart, traits: UpstreamTraits, path: FieldPath): JsonObject {
  const written = tryWriteMedia(part, traits);
  if (written !== undefined) return written;
  throw unsupported(path, `This model does not take this kind of ${part.kind}.`);
}

/** The same. Undefined for a medium that the upstream cannot read. */
function tryWriteMedia(part: MediaPart, traits: UpstreamTraits): JsonObject | undefined {
  switch (part.kind) {
    case 'image':
      return writeImage(part, traits);
    case 'document':
      return writeDocument(part, traits);
    case 'audio':
      return 'base64' in part.source
        ? {
            type: 'input_audio',
            input_audio: { data: part.source.base64, format: audioFormat(part.mediaType) },
          }
        : undefined;
    default:
      return part.kind satisfies never;
  }
}

function writeImage(part: MediaPart, { imageInput }: UpstreamTraits): JsonObject | undefined {
  const { source, mediaType } = part;
  if (imageInput === 'none') return undefined;
  const wanted = imageDetail(part);
  const detail = wanted === undefined ? {} : { detail: wanted === 'original' ? 'high' : wanted };
  if ('base64' in source) {
    const url = `data:${mediaType === '' ? 'image/png' : mediaType};base64,${source.base64}`;
    return { type: 'image_url', image_url: { url, ...detail } };
  }
  if (imageInput === 'base64' || !('url' in source)) return undefined;
  return { type: 'image_url', image_url: { url: source.url, ...detail } };
}

function writeDocument(part: MediaPart, { fileInput }: UpstreamTraits): JsonObject | undefined {
  const { source, mediaType, name } = part;
  if ('text' in source) return { type: 'text', text: documentText(part, source.text) };
  if (!fileInput || !('base64' in source)) return undefined;
  const type = mediaType === '' ? 'application/pdf' : mediaType;
  return {
    type: 'file',
    file: {
      filename: name ?? 'document.pdf',
      file_data: `data:${type};base64,${source.base64}`,
    },
  };
}

function audioFormat(mediaType: string): string {
  return mediaType.endsWith('wav') || mediaType === '' ? 'wav' : 'mp3';
}
