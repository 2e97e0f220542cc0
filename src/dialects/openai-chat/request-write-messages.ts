/** Turns to messages (wire/translation.md §3): order, roles, tool groups, instructions in between. */
import type {
  CacheMark,
  Conversation,
  JsonObject,
  Part,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../core/conversation.ts';
import { type FieldPath, invalidRequest } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import { placeOf } from '../../core/places.ts';
import { Pace, perStep, type Steps } from '../../core/steps.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { nineCharacterToolId, sentToolName, ToolIdMap } from '../tool-ids.ts';
import { freeTextInput } from './answered-tools.ts';
import { isMarked, settleBreakpoints, textContent, writePartMark } from './cache-marks.ts';
import type { JsonMembers } from './fields.ts';
import { writeMedia } from './media-write.ts';
import { isPrefill } from './request-write-prefill.ts';
import { ReasoningReplay } from './reasoning-replay.ts';
import { maxToolName } from './request-write-tools.ts';
import {
  Attachments,
  resultPieces,
  writeToolResult,
  type ResultWriting,
} from './tool-results-write.ts';

export interface MessageWriting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** Who is asked. */
  readonly provider?: string | undefined;
}

/** A result and where it stands, for notes. */
interface PlacedResult {
  readonly part: ToolResultPart;
  readonly path: FieldPath;
}

/** A turn and where it stands, for notes. */
interface PlacedTurn {
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
  readonly #pace = new Pace();

  constructor({ conversation, traits, notes, provider }: MessageWriting) {
    this.#traits = traits;
    this.#notes = notes;
    this.#replay = new ReasoningReplay({ traits, notes, provider });
    this.#ids =
      traits.nineCharacterToolIds === true ? new ToolIdMap(nineCharacterToolId) : new ToolIdMap();
    this.#tools = conversation.tools;
    const freeText = conversation.tools.filter((tool) => tool.freeText === true);
    this.#freeText = new Set(freeText.map((tool) => tool.name));
  }

  /** One leading message; its parts stay apart only where a cache mark needs them to. */
  system(parts: readonly Part[], instruction: string | undefined): void {
    const texts = this.#instructions(parts, ['system']);
    if (instruction !== undefined) texts.push({ type: 'text', text: instruction });
    if (texts.length === 0) return;
    this.written.push({ role: this.#traits.systemRole, content: this.#instructionText(texts) });
  }

  /** @throws GatewayError `invalid_request` when nothing of the turns is left to send (§3.3). */
  *turns(turns: readonly Turn[]): Steps<void> {
    const instructions = this.written.length;
    let run: PlacedTurn[] = [];
    for (const [i, turn] of turns.entries()) {
      if (this.#pace.due) yield;
      const path = placeOf(turn, ['messages', i]);
      if (turn.role !== 'assistant') {
        run.push({ turn, path });
        continue;
      }
      yield* this.#writeRun(run);
      run = [];
      yield* this.#writeAssistant(turn, path);
    }
    yield* this.#writeRun(run);
    if (this.written.length === instructions) {
      throw invalidRequest('At least one message must have content.', ['messages']);
    }
    if (this.#traits.cacheBreakpoints === true) settleBreakpoints(this.written);
    if (isPrefill(this.written) && !this.#traits.prefill) {
      this.#notes.changed(
        placeOf(turns.at(-1) ?? turns, ['messages', turns.length - 1]),
        'the model answers the last assistant turn instead of continuing it',
      );
    }
  }

  /**
   * Everything between two assistant turns: all tool results first, whatever turn they came in, then
   * the rest in its order. Instructions never stand between a call and its result (A3, B5).
   */
  *#writeRun(run: readonly PlacedTurn[]): Steps<void> {
    const attachments = new Attachments();
    for (const { part, path } of this.#resultsOf(run)) {
      if (this.#pace.dueWith(1 + part.parts.length)) yield;
      const writing = this.#resultWriting(part, path, attachments);
      const pieces: JsonObject[] = [];
      for (let from = 0; from < part.parts.length; from += perStep) {
        if (from > 0) yield;
        pieces.push(...resultPieces(part, from, writing));
      }
      this.written.push(writeToolResult(part, pieces, writing));
    }
    let waiting: JsonObject[] = [...attachments.parts];
    for (const { turn, path } of run) {
      if (turn.role === 'system') {
        waiting = this.#writeInstructions(turn, path, waiting);
        continue;
      }
      const content = [...waiting];
      for (let from = 0; from < turn.parts.length; from += perStep) {
        if (from > 0) yield;
        content.push(...this.#userContent(turn, path, from));
      }
      waiting = [];
      this.#pushUser(content, turn.name);
    }
    this.#pushUser(waiting, undefined);
  }

  /** In the order of their calls: some servers pair them by it (B5). */
  #resultsOf(run: readonly PlacedTurn[]): readonly PlacedResult[] {
    const results = run.flatMap(({ turn, path }) =>
      turn.parts.flatMap((part, j): readonly PlacedResult[] =>
        part.type === 'tool-result' ? [{ part, path: placeOf(part, [...path, 'content', j]) }] : [],
      ),
    );
    const places = new Map(this.#calls.map((id, place) => [id, place]));
    const order = (id: string): number => places.get(id) ?? -1;
    return results.sort((a, b) => order(a.part.callId) - order(b.part.callId));
  }

  #pushUser(content: readonly JsonObject[], name: string | undefined): void {
    if (content.length === 0) return;
    this.written.push({
      role: 'user',
      content: plainOrParts(content),
      ...(name === undefined ? {} : { name }),
    });
  }

  /** Instructions in mid-conversation: in place where allowed, else tagged in a user turn. */
  #writeInstructions(turn: Turn, path: FieldPath, waiting: readonly JsonObject[]): JsonObject[] {
    const texts = this.#instructions(turn.parts, path);
    if (texts.length === 0) return [...waiting];
    if (!this.#traits.systemAnywhere) {
      const text = texts.map((part) => String(part['text'])).join('\n\n');
      return [...waiting, { type: 'text', text: `<system>\n${text}\n</system>` }];
    }
    this.#pushUser(waiting, undefined);
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

  /** Of so many parts as are a step, from one of them on. */
  #userContent(turn: Turn, path: FieldPath, from: number): readonly JsonObject[] {
    const content: JsonObject[] = [];
    turn.parts.slice(from, from + perStep).forEach((part, j) => {
      if (part.type === 'tool-result') return;
      const where = placeOf(part, [...path, 'content', from + j]);
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

  *#writeAssistant(turn: Turn, path: FieldPath): Steps<void> {
    const texts = this.#assistantTexts(turn.parts, path);
    const calls: JsonObject[] = [];
    for (const part of turn.parts) {
      if (this.#pace.due) yield;
      if (part.type === 'tool-call') calls.push(this.#writeCall(part, path));
    }
    this.#calls = turn.parts.flatMap((part) => (part.type === 'tool-call' ? [part.id] : []));
    const refusal = turn.parts.map((part) => (part.type === 'refusal' ? part.text : '')).join('');
    const reasoning = turn.parts.filter((part): part is ReasoningPart => part.type === 'reasoning');
    if (texts.length + calls.length + reasoning.length === 0 && refusal === '') return;
    const silent = calls.length > 0 || refusal !== '';
    this.written.push({
      role: 'assistant',
      content: texts.length === 0 ? (silent ? null : '') : textContent(texts, '', this.#traits),
      ...(refusal === '' ? {} : { refusal }),
      ...this.#replay.members(reasoning, path),
      ...(calls.length === 0 ? {} : { tool_calls: this.#replay.signed(calls, path) }),
      ...(turn.name === undefined ? {} : { name: turn.name }),
    });
  }

  #assistantTexts(parts: readonly Part[], path: FieldPath): readonly JsonObject[] {
    const texts: JsonObject[] = [];
    parts.forEach((part, j) => {
      const where = placeOf(part, [...path, 'content', j]);
      if (part.type === 'text') {
        if (part.text !== '') texts.push(this.#marked({ type: 'text', text: part.text }, part));
      } else if (part.type === 'opaque' || part.type === 'media') {
        this.#notes.lost(where, 'assistant messages are text only');
      }
    });
    // White space between blocks is text, on its own it is none (B3).
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

  /** Not every server takes a list of instructions; all take one text. */
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

/** A string for one unmarked text, the parts otherwise. */
function plainOrParts(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const only = parts.length === 1 ? parts[0] : undefined;
  const plain = only?.['type'] === 'text' && !isMarked(only) ? only['text'] : undefined;
  return typeof plain === 'string' ? plain : parts;
}
