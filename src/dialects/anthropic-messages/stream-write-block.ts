/**
 * The content block that is being streamed. It opens with its first content, so that an empty part
 * leaves no block behind, and every delta has the type of its block (C1–C3).
 */
import type {
  Citation,
  JsonObject,
  Part,
  ReasoningPart,
  ToolCallPart,
} from '../../core/conversation.ts';
import { tryParseInnerObject } from '../../core/json-inner.ts';
import type { Notes } from '../../core/notes.ts';
import { isEmptyReasoning, isRedacted, type AnswerBlocks } from './answer-blocks.ts';
import { writeCitation } from './citations.ts';
import { eventFrame } from './event-frame.ts';
import { toolInput } from '../tool-arguments.ts';

/** Which part is written; `none` between parts and for parts that have no block. */
type Kind = 'none' | 'text' | 'thinking' | 'tool';

export class LiveBlock {
  readonly #blocks: AnswerBlocks;
  readonly #notes: Notes;
  #kind: Kind = 'none';
  /** Index of the open block, or of the next one. */
  #index = 0;
  #opened = false;
  /** The block is open and its text needs nothing but its frame. */
  #plain = false;
  /** Everything of a delta frame before its text. */
  #head = '';
  /** The reasoning part while it is written, without its text. */
  #reasoning: ReasoningPart = { type: 'reasoning', text: '' };
  /** Its text so far: a record holds it, or a digest of it. */
  #thought = '';
  #isRefusal = false;
  /** White space behind a call, which is no block unless text follows it. */
  #blank = '';
  #call = '';
  /** The arguments so far. */
  #arguments = '';
  /** Something of the arguments besides white space came. */
  #begun = false;
  /** Arguments that do not begin like an object are held back: whole, they can still be wrapped. */
  #held = false;

  /** The model's own words of refusal so far. */
  refusal = '';
  toolCalls = 0;
  /** Name of a streamed call whose arguments turned out not to be an object. */
  brokenCall: string | undefined;

  constructor(blocks: AnswerBlocks, notes: Notes) {
    this.#blocks = blocks;
    this.#notes = notes;
  }

  /** Begins a part; what it holds already is written at once. */
  open(part: Part): string {
    switch (part.type) {
      case 'text':
        this.#kind = 'text';
        return (
          (part.citations ?? []).map((citation) => this.citation(citation)).join('') +
          this.#text(part.text)
        );
      case 'refusal':
        this.#kind = 'text';
        this.#isRefusal = true;
        return this.#text(part.text);
      case 'reasoning':
        this.#kind = 'thinking';
        this.#reasoning = { ...part, text: '' };
        this.#thought = '';
        return this.#text(part.text);
      case 'tool-call':
        return this.#openCall(part);
      case 'opaque': {
        const value = this.#blocks.opaque(part);
        return value === undefined ? '' : this.#whole(value);
      }
      case 'media':
      case 'tool-result':
        this.#blocks.lost(part.type === 'media' ? 'generated media' : 'a tool result');
        return '';
      default:
        return part satisfies never;
    }
  }

  delta(field: 'text' | 'arguments' | 'signature', delta: string): string {
    if (field === 'text') return this.#text(delta);
    if (field === 'arguments') return this.#kind === 'tool' ? this.#argumentsDelta(delta) : '';
    if (this.#kind === 'thinking') {
      this.#reasoning = {
        ...this.#reasoning,
        signature: (this.#reasoning.signature ?? '') + delta,
      };
    }
    return '';
  }

  citation(citation: Citation): string {
    const value = writeCitation(citation);
    if (value === undefined || this.#kind !== 'text') {
      this.#notes.lost(
        ['citations'],
        'sources of this provider have no place in a messages answer',
      );
      return '';
    }
    const start = this.#start({ type: 'text', text: '', citations: [] }, 'text_delta","text');
    return start + this.#deltaFrame({ type: 'citations_delta', citation: value });
  }

  /** Ends the part and its block. */
  close(): string {
    const kind = this.#kind;
    let text = '';
    if (kind === 'thinking') text = this.#sign();
    else if (kind === 'tool') text = this.#endArguments();
    text += this.#stop();
    this.#kind = 'none';
    this.#plain = false;
    this.#isRefusal = false;
    this.#blank = '';
    return text;
  }

  #stop(): string {
    if (!this.#opened) return '';
    this.#opened = false;
    const index = this.#index++;
    return `event: content_block_stop\ndata: {"type":"content_block_stop","index":${index}}\n\n`;
  }

  #text(delta: string): string {
    if (delta === '') return '';
    if (this.#plain) return `${this.#head}${JSON.stringify(delta)}}}\n\n`;
    if (this.#kind === 'text') return this.#firstText(delta);
    if (this.#kind !== 'thinking') return '';
    this.#thought += delta;
    const start = this.#start(emptyThinking, thinkingDelta);
    if (this.#blocks.hidesReasoning) return start;
    return `${start}${this.#head}${JSON.stringify(delta)}}}\n\n`;
  }

  /** Models write line breaks between calls: a block of them would be refused in the history (C2). */
  #firstText(delta: string): string {
    if (this.#isRefusal) this.refusal += delta;
    const text = this.#blank + delta;
    this.#blank = '';
    if (!this.#opened && this.toolCalls > 0 && text.trim() === '') {
      this.#blank = text;
      return '';
    }
    const start = this.#start(emptyText, 'text_delta","text');
    this.#plain = !this.#isRefusal;
    return `${start}${this.#head}${JSON.stringify(text)}}}\n\n`;
  }

  #openCall(part: ToolCallPart): string {
    this.#kind = 'tool';
    this.#call = part.name;
    this.#arguments = '';
    this.#begun = false;
    this.#held = false;
    this.toolCalls += 1;
    const { companion, block } = this.#blocks.toolUse(part);
    const before = companion === undefined ? '' : this.#start(companion, '') + this.#stop();
    const start = this.#start(block, 'input_json_delta","partial_json');
    return before + start + this.#argumentsDelta(part.argumentsJson);
  }

  #argumentsDelta(delta: string): string {
    if (delta === '') return '';
    // What came before is not looked at again: megabytes come in pieces of a few bytes.
    this.#arguments += delta;
    if (!this.#begun) {
      const start = delta.trimStart();
      if (start === '') return '';
      this.#begun = true;
      this.#held = !start.startsWith('{');
      return this.#held ? '' : `${this.#head}${JSON.stringify(this.#arguments)}}}\n\n`;
    }
    return this.#held ? '' : `${this.#head}${JSON.stringify(delta)}}}\n\n`;
  }

  #endArguments(): string {
    if (this.#held) {
      const { input, wrapped } = toolInput(this.#arguments);
      if (!wrapped) return '';
      this.#notes.changed(['content'], 'tool arguments that are no JSON object were wrapped');
      return `${this.#head}${JSON.stringify(JSON.stringify(input))}}}\n\n`;
    }
    if (this.#arguments !== '' && tryParseInnerObject(this.#arguments) === undefined) {
      this.brokenCall ??= this.#call;
    }
    return '';
  }

  /** One signature right before the stop; encrypted reasoning without text is a block of its own. */
  #sign(): string {
    const part = { ...this.#reasoning, text: this.#thought };
    if (!this.#opened) {
      if (isEmptyReasoning(part)) return '';
      if (isRedacted(part)) return this.#whole(this.#blocks.redacted(part));
    }
    const start = this.#start(emptyThinking, thinkingDelta);
    const signature = this.#blocks.signature(part);
    if (signature === '') return start;
    return start + this.#deltaFrame({ type: 'signature_delta', signature });
  }

  /** A block that is complete at its start, or has one delta. */
  #whole(value: JsonObject): string {
    const { input, content } = value;
    if (value['type'] === 'compaction' && typeof content === 'string') {
      const { type: _type, ...delta } = value;
      const start = this.#start({ ...value, content: null }, '');
      return start + this.#deltaFrame({ ...delta, type: 'compaction_delta' });
    }
    if (input === undefined) return this.#start(value, '');
    const start = this.#start({ ...value, input: {} }, '');
    const partialJson = JSON.stringify(input);
    return start + this.#deltaFrame({ type: 'input_json_delta', partial_json: partialJson });
  }

  /** Opens the block unless it is open. @param delta type and text key of its deltas. */
  #start(block: JsonObject, delta: string): string {
    if (this.#opened) return '';
    this.#opened = true;
    const index = this.#index;
    this.#head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${delta}":`;
    const event = { type: 'content_block_start', index, content_block: block };
    return eventFrame('content_block_start', event);
  }

  #deltaFrame(delta: JsonObject): string {
    const event = { type: 'content_block_delta', index: this.#index, delta };
    return eventFrame('content_block_delta', event);
  }
}

const emptyText: JsonObject = { type: 'text', text: '' };
const emptyThinking: JsonObject = { type: 'thinking', thinking: '', signature: '' };
const thinkingDelta = 'thinking_delta","thinking';
