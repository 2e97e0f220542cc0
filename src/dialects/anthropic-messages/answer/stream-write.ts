/**
 * Writes a messages stream. Blocks of this dialect are
 * strictly sequential, canonical parts are not. A part whose predecessor is still open waits, and is
 * replayed when that one has ended.
 */
import type { Citation, Part, ReasoningPart } from '../../../core/conversation.ts';
import type { AnswerContext, StreamWriter } from '../../../core/dialect.ts';
import {
  type FinishReason,
  type GenerationEvent,
  mergeUsage,
  type Usage,
} from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import { tryParseInnerObject } from '../../../json/parse.ts';
import type { JsonObject } from '../../../json/value.ts';
import { beginsObject, brokenArguments, toolInput } from '../../shared/request/tools.ts';
import { AnswerBlocks, isEmptyReasoning, isRedacted, usedUp, withEstimate } from './response.ts';
import { writeStreamError } from '../errors.ts';
import { writeStop, writeTotals, writeUsage } from './usage.ts';

type PartEvent = Extract<GenerationEvent, { readonly index: number }>;

/** A part that waits until the parts before it have ended. */
interface WaitingPart {
  readonly index: number;
  readonly events: PartEvent[];
}

const ping = 'event: ping\ndata: {"type": "ping"}\n\n';
const messageStop = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';

export class MessagesStreamWriter implements StreamWriter {
  readonly #context: AnswerContext;
  readonly #blocks: AnswerBlocks;
  readonly #live: LiveBlock;
  /** Canonical index of the current part; undefined between parts. */
  #current: number | undefined;
  #waiting: WaitingPart[] = [];
  #upstreamId = '';
  #usage: Usage | undefined;
  #started = false;
  #finish: FinishReason | undefined;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#blocks = new AnswerBlocks(context);
    this.#live = new LiveBlock(this.#blocks, context.notes);
  }

  /** @throws GatewayError `upstream_invalid` at the finish when a call's arguments are not an object. */
  write(event: GenerationEvent): string {
    switch (event.type) {
      case 'part-delta':
        // The hottest line of a translated stream: a text for the open block.
        if (event.index === this.#current) return this.#live.delta(event.field, event.delta);
        return this.#later(event);
      case 'part-start':
        return this.#begin() + this.#partStart(event);
      case 'part-citation':
        if (event.index === this.#current) return this.#live.citation(event.citation);
        return this.#later(event);
      case 'part-end':
        return event.index === this.#current ? this.#partEnd() : this.#later(event);
      case 'start':
        this.#upstreamId = event.id;
        return '';
      case 'usage':
        this.#usage = mergeUsage(this.#usage, event.usage);
        return '';
      case 'finish':
        return this.#begin() + this.#end(event.reason);
      case 'error':
        return writeStreamError(event.error, this.#context.requestId);
      default:
        return event satisfies never;
    }
  }

  /** Writes `message_delta`, which waits for usage after the finish. */
  end(): string {
    const usage = withEstimate(this.#usage, this.#context);
    const ending = {
      reason: this.#finish ?? { kind: 'other' as const },
      hasToolCalls: this.#live.toolCalls > 0,
      refusal: this.#live.refusal,
    };
    const delta = { ...writeStop(ending, this.#context.notes), container: null };
    const last = { type: 'message_delta', delta, usage: writeTotals(usage) };
    return eventFrame('message_delta', last) + messageStop;
  }

  /**
   * Writes `message_start` with the first content. Its input count is never zero: agents would show no context use and
   * no cost.
   */
  #begin(): string {
    if (this.#started) return '';
    this.#started = true;
    const usage = withEstimate(this.#usage, this.#context);
    const message = {
      id: this.#blocks.messageId(this.#upstreamId),
      type: 'message',
      role: 'assistant',
      model: this.#context.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      container: null,
      usage: writeUsage({ ...usage, outputTokens: usage.outputTokens ?? 1 }),
    };
    return eventFrame('message_start', { type: 'message_start', message }) + ping;
  }

  #partStart(event: Extract<PartEvent, { type: 'part-start' }>): string {
    if (this.#current === undefined) {
      this.#current = event.index;
      return this.#live.open(event.part);
    }
    this.#waiting.push({ index: event.index, events: [event] });
    return '';
  }

  /** Ends the current part and writes the waiting parts, up to the next open one. */
  #partEnd(): string {
    let text = this.#close();
    while (this.#current === undefined) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      for (const event of next.events) {
        text += event.type === 'part-end' ? this.#close() : this.write(event);
      }
    }
    return text;
  }

  #close(): string {
    this.#current = undefined;
    return this.#live.close();
  }

  #later(event: PartEvent): string {
    this.#waiting.find((part) => part.index === event.index)?.events.push(event);
    return '';
  }

  /** Ends all parts, also those that the upstream left open. */
  #end(reason: FinishReason): string {
    this.#finish ??= reason;
    let text = '';
    while (this.#current !== undefined) text += this.#partEnd();
    const { brokenCall } = this.#live;
    if (
      brokenCall !== undefined &&
      (reason.kind === 'stop' || reason.kind === 'tool-calls') &&
      usedUp(this.#usage, this.#context)
    ) {
      // The token limit cut the call off, whatever finish reason the upstream sent. Clients must not run it.
      this.#finish = { ...reason, kind: 'length' };
    }
    const { kind } = this.#finish;
    const cut = kind === 'length' || kind === 'context-window';
    if (brokenCall !== undefined && !cut && kind !== 'content-filter') {
      throw brokenArguments(brokenCall);
    }
    return text;
  }
}

// The current content block. It opens with its first content, so that an empty part
// leaves no block behind, and every delta has the type of its block.

/** The kind of the current part; `none` between parts and for parts without a block. */
type Kind = 'none' | 'text' | 'thinking' | 'tool';

class LiveBlock {
  readonly #blocks: AnswerBlocks;
  readonly #notes: Notes;
  #kind: Kind = 'none';
  /** Index of the open block, or of the next one. */
  #index = 0;
  #opened = false;
  /** The block is open, and its text needs only its frame. */
  #plain = false;
  /** Everything of a delta frame before its text. */
  #head = '';
  /** The reasoning part while it is written, without its text. */
  #reasoning: ReasoningPart = { type: 'reasoning', text: '' };
  /** Its text so far, for the record of the reasoning or its digest. */
  #thought = '';
  #isRefusal = false;
  /** White space after a call, which is not a block unless text follows it. */
  #blank = '';
  #call = '';
  /** The arguments so far. */
  #arguments = '';
  /** Arguments other than white space were written. */
  #begun = false;
  /** Arguments that do not begin like an object wait. When they are complete, they can be wrapped. */
  #held = false;

  /** The model's refusal text so far. */
  refusal = '';
  toolCalls = 0;
  /** Name of a streamed call whose arguments turned out not to be an object. */
  brokenCall: string | undefined;

  constructor(blocks: AnswerBlocks, notes: Notes) {
    this.#blocks = blocks;
    this.#notes = notes;
  }

  /** Begins a part, and writes the content that it already has. */
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
      case 'tool-call': {
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
    const value = this.#blocks.citation(citation);
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

  /** Models write line breaks between calls. The service would refuse a block of them in the history. */
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

  #argumentsDelta(delta: string): string {
    if (delta === '') return '';
    // Earlier pieces are not examined again: megabytes arrive in pieces of a few bytes.
    this.#arguments += delta;
    if (!this.#begun) {
      if (delta.trim() === '') return '';
      this.#begun = true;
      this.#held = !beginsObject(delta);
      return this.#held ? '' : `${this.#head}${JSON.stringify(this.#arguments)}}}\n\n`;
    }
    return this.#held ? '' : `${this.#head}${JSON.stringify(delta)}}}\n\n`;
  }

  #endArguments(): string {
    if (this.#held) {
      const { input, wrapped } = toolInput(this.#arguments);
      if (!wrapped) return '';
      this.#notes.changed(['content'], 'tool arguments that are not a JSON object were wrapped');
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

// One event of a messages stream. The official client dispatches on the `event:` line.

export function eventFrame(name: string, data: JsonObject): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
