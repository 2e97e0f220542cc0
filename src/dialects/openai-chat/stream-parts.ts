/**
 * The parts of a streamed answer. State is kept by what the deltas say of themselves (kind, tool
 * index, id, reasoning index), never as one "current block": calls may come interleaved (B1).
 */
import type { Json, JsonObject, Part } from '../../core/conversation.ts';
import type { GenerationEvent } from '../../core/generation.ts';
import { isObject } from '../../core/json.ts';
import { readCitations } from './citations.ts';
import { isArray } from './fields.ts';
import {
  emptyEntry,
  readReasoning,
  reasoningPart,
  thinkingText,
  type ReasoningEntry,
} from './reasoning-read.ts';
import { StreamCalls, type CallTraits } from './stream-calls.ts';
import type { AnswerIdentity } from './tool-call-read.ts';

/** Numbers the parts of one answer. */
export interface PartCounter {
  next: number;
}

interface OpenReasoning {
  readonly part: number;
  readonly index: number | undefined;
  /** Signed reasoning may get its signature after the text has begun (D4). */
  awaitsSignature: boolean;
}

export class StreamParts {
  readonly #counter: PartCounter = { next: 0 };
  readonly #calls: StreamCalls;
  #text: number | undefined;
  #refusal: number | undefined;
  #reasoning: OpenReasoning | undefined;

  constructor(traits: CallTraits) {
    this.#calls = new StreamCalls(this.#counter, traits);
  }

  set answer(identity: AnswerIdentity) {
    this.#calls.answer = identity;
  }

  get hasToolCalls(): boolean {
    return this.#calls.started > 0;
  }

  /** Calls came, none of them with a name, and nothing else: there is no answer. */
  get onlyBrokenCalls(): boolean {
    return this.#calls.dropped > 0 && this.#counter.next === 0;
  }

  /** The delta for an already open text part; undefined when another part is open or must close. */
  continueText(delta: string): GenerationEvent | undefined {
    if (this.#text === undefined) return undefined;
    return { type: 'part-delta', index: this.#text, field: 'text', delta };
  }

  /** Everything that one delta says, in the order reasoning, text, refusal, calls. */
  read(delta: JsonObject, events: GenerationEvent[]): void {
    for (const entry of readReasoning(delta)) this.#readReasoning(entry, events);
    this.#readContent(delta, events);
    const { refusal } = delta;
    if (typeof refusal === 'string' && refusal !== '') this.#addRefusal(refusal, events);
    const calls = delta['tool_calls'];
    if (isArray(calls) && calls.length > 0) {
      this.#endSpoken(events);
      for (const call of calls) if (isObject(call)) this.#calls.read(call, events);
    }
    const legacy = delta['function_call'];
    if (isObject(legacy)) {
      this.#endSpoken(events);
      this.#calls.read({ index: 0, function: legacy }, events);
    }
    if (isPresentList(delta['annotations'])) this.#readCitations(delta['annotations'], events);
  }

  /**
   * Ends whatever is open, in the order of appearance.
   * @param cut the token limit ended the answer.
   */
  close(events: GenerationEvent[], cut: boolean): void {
    const open: number[] = [];
    if (this.#text !== undefined) open.push(this.#text);
    if (this.#refusal !== undefined) open.push(this.#refusal);
    if (this.#reasoning !== undefined) open.push(this.#reasoning.part);
    this.#text = undefined;
    this.#refusal = undefined;
    this.#reasoning = undefined;
    for (const index of open.sort((a, b) => a - b)) events.push({ type: 'part-end', index });
    this.#calls.close(events, cut);
  }

  #readContent(delta: JsonObject, events: GenerationEvent[]): void {
    const { content, audio } = delta;
    if (typeof content === 'string') {
      if (content !== '') this.#addText(content, events);
    } else if (isArray(content)) {
      for (const piece of content) if (isObject(piece)) this.#readPiece(piece, events);
    } else if (isObject(audio) && typeof audio['transcript'] === 'string') {
      if (audio['transcript'] !== '') this.#addText(audio['transcript'], events);
    }
  }

  /** A Mistral content part. */
  #readPiece(piece: JsonObject, events: GenerationEvent[]): void {
    if (piece['type'] === 'thinking') {
      const text = thinkingText(piece);
      if (text !== '') this.#readReasoning({ ...emptyEntry, text }, events);
    } else if (piece['type'] === 'text' && typeof piece['text'] === 'string') {
      if (piece['text'] !== '') this.#addText(piece['text'], events);
    }
  }

  #addText(delta: string, events: GenerationEvent[]): void {
    if (this.#text === undefined) {
      if (this.#reasoning?.awaitsSignature !== true) this.#endReasoning(events);
      this.#endRefusal(events);
      this.#calls.closeComplete(events);
      this.#text = this.#start({ type: 'text', text: '' }, events);
    }
    events.push({ type: 'part-delta', index: this.#text, field: 'text', delta });
  }

  #addRefusal(delta: string, events: GenerationEvent[]): void {
    if (this.#refusal === undefined) {
      this.#endSpoken(events);
      this.#calls.closeComplete(events);
      this.#refusal = this.#start({ type: 'refusal', text: '' }, events);
    }
    events.push({ type: 'part-delta', index: this.#refusal, field: 'text', delta });
  }

  #readReasoning(entry: ReasoningEntry, events: GenerationEvent[]): void {
    if (entry.text === '' && entry.signature === undefined && entry.encrypted === undefined) return;
    const open = this.#reasoning;
    const other =
      open === undefined ||
      entry.encrypted !== undefined ||
      (entry.index !== undefined && open.index !== undefined && entry.index !== open.index);
    if (other) this.#startReasoning(entry, events);
    else this.#continueReasoning(open, entry, events);
  }

  #startReasoning(entry: ReasoningEntry, events: GenerationEvent[]): void {
    this.#endSpoken(events);
    this.#calls.closeComplete(events);
    const part = this.#start(reasoningPart(entry), events);
    this.#reasoning = {
      part,
      index: entry.index,
      awaitsSignature: entry.signed && entry.signature === undefined,
    };
    // Encrypted reasoning comes in one piece.
    if (entry.encrypted !== undefined) this.#endReasoning(events);
  }

  #continueReasoning(open: OpenReasoning, entry: ReasoningEntry, events: GenerationEvent[]): void {
    const { part: index } = open;
    if (entry.text !== '') {
      events.push({ type: 'part-delta', index, field: 'text', delta: entry.text });
    }
    if (entry.signature !== undefined) {
      events.push({ type: 'part-delta', index, field: 'signature', delta: entry.signature });
      open.awaitsSignature = false;
      if (this.#text !== undefined) this.#endReasoning(events);
    }
  }

  #readCitations(annotations: Json | undefined, events: GenerationEvent[]): void {
    if (this.#text === undefined) return;
    for (const citation of readCitations(annotations)) {
      events.push({ type: 'part-citation', index: this.#text, citation });
    }
  }

  #start(part: Part, events: GenerationEvent[]): number {
    const index = this.#counter.next++;
    events.push({ type: 'part-start', index, part });
    return index;
  }

  /** Ends whatever of text, refusal and reasoning is open. */
  #endSpoken(events: GenerationEvent[]): void {
    this.#endReasoning(events);
    this.#endText(events);
    this.#endRefusal(events);
  }

  #endText(events: GenerationEvent[]): void {
    if (this.#text === undefined) return;
    events.push({ type: 'part-end', index: this.#text });
    this.#text = undefined;
  }

  #endRefusal(events: GenerationEvent[]): void {
    if (this.#refusal === undefined) return;
    events.push({ type: 'part-end', index: this.#refusal });
    this.#refusal = undefined;
  }

  #endReasoning(events: GenerationEvent[]): void {
    if (this.#reasoning === undefined) return;
    events.push({ type: 'part-end', index: this.#reasoning.part });
    this.#reasoning = undefined;
  }
}

function isPresentList(value: Json | undefined): boolean {
  return isArray(value) && value.length > 0;
}
