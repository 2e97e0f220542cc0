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
import type { FieldPath } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { allowedToolName, nineCharacterToolId, ToolIdMap } from '../tool-ids.ts';
import { freeTextInput } from './answered-tools.ts';
import { isMarked, settleBreakpoints, writePartMark } from './cache-marks.ts';
import type { JsonMembers } from './fields.ts';
import { writeMedia } from './media-write.ts';
import { isPrefill } from './request-write-prefill.ts';
import { writeDetail } from './reasoning-write.ts';
import { maxToolName } from './request-write-tools.ts';
import { Attachments, writeToolResult } from './tool-results-write.ts';

export interface MessageWriting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
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
  readonly #ids: ToolIdMap;
  readonly #freeText: ReadonlySet<string>;

  constructor({ conversation, traits, notes }: MessageWriting) {
    this.#traits = traits;
    this.#notes = notes;
    this.#ids =
      traits.nineCharacterToolIds === true ? new ToolIdMap(nineCharacterToolId) : new ToolIdMap();
    const freeText = conversation.tools.filter((tool) => tool.freeText === true);
    this.#freeText = new Set(freeText.map((tool) => tool.name));
  }

  /** One leading message; its parts stay apart only where a cache mark needs them to. */
  system(parts: readonly Part[], instruction: string | undefined): void {
    const texts = this.#instructions(parts, ['system']);
    if (instruction !== undefined) texts.push({ type: 'text', text: instruction });
    if (texts.length === 0) return;
    this.written.push({ role: this.#traits.systemRole, content: instructionContent(texts) });
  }

  turns(turns: readonly Turn[]): void {
    let run: PlacedTurn[] = [];
    turns.forEach((turn, i) => {
      const path = ['messages', i];
      if (turn.role !== 'assistant') {
        run.push({ turn, path });
        return;
      }
      this.#writeRun(run);
      run = [];
      this.#writeAssistant(turn, path);
    });
    this.#writeRun(run);
    if (this.#traits.cacheBreakpoints === true) settleBreakpoints(this.written);
    if (isPrefill(this.written) && !this.#traits.prefill) {
      this.#notes.changed(
        ['messages', turns.length - 1],
        'the model answers the last assistant turn instead of continuing it',
      );
    }
  }

  /**
   * Everything between two assistant turns: all tool results first, whatever turn they came in, then
   * the rest in its order. Instructions never stand between a call and its result (A3, B5).
   */
  #writeRun(run: readonly PlacedTurn[]): void {
    const attachments = new Attachments();
    for (const { turn, path } of run) {
      turn.parts.forEach((part, j) => {
        if (part.type === 'tool-result') {
          this.written.push(this.#writeResult(part, [...path, 'content', j], attachments));
        }
      });
    }
    let waiting: JsonObject[] = [...attachments.parts];
    for (const { turn, path } of run) {
      if (turn.role === 'system') {
        waiting = this.#writeInstructions(turn, path, waiting);
        continue;
      }
      const content = [...waiting, ...this.#userContent(turn, path)];
      waiting = [];
      this.#pushUser(content, turn.name);
    }
    this.#pushUser(waiting, undefined);
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
    this.written.push({ role: this.#traits.systemRole, content: instructionContent(texts) });
    return [];
  }

  #instructions(parts: readonly Part[], path: FieldPath): JsonObject[] {
    const texts: JsonObject[] = [];
    parts.forEach((part, j) => {
      if (part.type === 'text') {
        if (part.text !== '') texts.push(this.#marked({ type: 'text', text: part.text }, part));
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
      const where = [...path, 'content', j];
      for (const written of this.#userPart(part, where)) content.push(this.#marked(written, part));
    });
    return content;
  }

  #userPart(part: Part, path: FieldPath): readonly JsonObject[] {
    switch (part.type) {
      case 'text':
        return part.text === '' ? [] : [{ type: 'text', text: part.text }];
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

  #writeResult(part: ToolResultPart, path: FieldPath, attachments: Attachments): JsonMembers {
    const mark = this.#mark(part.cacheUntilHere);
    return writeToolResult(part, {
      id: this.#ids.result(part.callId),
      path,
      attachments,
      mark,
      traits: this.#traits,
      notes: this.#notes,
    });
  }

  #writeAssistant(turn: Turn, path: FieldPath): void {
    const texts = this.#assistantTexts(turn.parts, path);
    const calls = turn.parts
      .filter((part): part is ToolCallPart => part.type === 'tool-call')
      .map((part) => this.#writeCall(part));
    const refusal = turn.parts.map((part) => (part.type === 'refusal' ? part.text : '')).join('');
    const reasoning = turn.parts.filter((part): part is ReasoningPart => part.type === 'reasoning');
    if (texts.length + calls.length + reasoning.length === 0 && refusal === '') return;
    const silent = calls.length > 0 || refusal !== '';
    this.written.push({
      role: 'assistant',
      content: texts.length === 0 ? (silent ? null : '') : assistantContent(texts),
      ...(refusal === '' ? {} : { refusal }),
      ...this.#replayedReasoning(reasoning),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
      ...(turn.name === undefined ? {} : { name: turn.name }),
    });
  }

  #assistantTexts(parts: readonly Part[], path: FieldPath): readonly JsonObject[] {
    const texts: JsonObject[] = [];
    parts.forEach((part, j) => {
      const where = [...path, 'content', j];
      if (part.type === 'text') {
        if (part.text !== '') texts.push(this.#marked({ type: 'text', text: part.text }, part));
      } else if (part.type === 'opaque' || part.type === 'media') {
        this.#notes.lost(where, 'assistant messages are text only');
      }
    });
    return texts;
  }

  #writeCall(part: ToolCallPart): JsonObject {
    const id = this.#ids.call(part.id);
    const name = allowedToolName(part.name, maxToolName);
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
      ...part.extras?.['openai-chat'],
    };
  }

  /**
   * Earlier reasoning never becomes text that the user seems to have seen (D7). Servers that want it
   * back want it on every assistant message, and some refuse the empty string there (D6); others want
   * what they sealed, as they sent it (D1).
   */
  #replayedReasoning(reasoning: readonly ReasoningPart[]): JsonMembers {
    if (this.#traits.reasoningDetails === true) {
      const sealed = reasoning.filter(isSealed);
      return sealed.length === 0 ? {} : { reasoning_details: sealed.map(writeDetail) };
    }
    if (!this.#traits.reasoningReplay) return {};
    const text = reasoning
      .map((part) => part.text)
      .filter((part) => part !== '')
      .join('\n\n');
    return { reasoning_content: text === '' ? ' ' : text };
  }

  #marked(written: JsonObject, part: Part): JsonObject {
    return { ...written, ...this.#mark(part.cacheUntilHere) };
  }

  #mark(mark: CacheMark | undefined): JsonObject {
    return writePartMark(mark, this.#traits);
  }
}

/** A string for one unmarked text, the parts otherwise. */
function plainOrParts(parts: readonly JsonObject[]): string | readonly JsonObject[] {
  const only = parts.length === 1 ? parts[0] : undefined;
  const plain = only?.['type'] === 'text' && !isMarked(only) ? only['text'] : undefined;
  return typeof plain === 'string' ? plain : parts;
}

/** Not every server takes a list of instructions; all take one text. */
function instructionContent(texts: readonly JsonObject[]): string | readonly JsonObject[] {
  return texts.some(isMarked) ? texts : texts.map((part) => String(part['text'])).join('\n\n');
}

/** Blocks of an assistant turn are splits of one text. */
function assistantContent(texts: readonly JsonObject[]): string | readonly JsonObject[] {
  return texts.some(isMarked) ? texts : texts.map((part) => String(part['text'])).join('');
}

function isSealed(part: ReasoningPart): boolean {
  return (
    part.signature !== undefined ||
    part.encrypted !== undefined ||
    part.extras?.['openai-chat'] !== undefined
  );
}
