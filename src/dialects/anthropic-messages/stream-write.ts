/**
 * Writes a messages stream (wire/messages.md §7, wire/translation.md §9.2). Blocks of this dialect are
 * strictly sequential, canonical parts are not: a part whose predecessor is still open waits, and is
 * replayed when that one has ended (B1, C1–C3).
 */
import type { AnswerContext, StreamWriter } from '../../core/dialect.ts';
import { GatewayError } from '../../core/errors.ts';
import {
  mergeUsage,
  type FinishReason,
  type GenerationEvent,
  type Usage,
} from '../../core/generation.ts';
import { AnswerBlocks } from './answer-blocks.ts';
import { writeStreamError } from './errors.ts';
import { eventFrame } from './event-frame.ts';
import { LiveBlock } from './stream-write-block.ts';
import { usedUp, withEstimate } from './response-write.ts';
import { writeStop } from './stop-reason.ts';
import { writeTotals, writeUsage } from './usage.ts';

type PartEvent = Extract<GenerationEvent, { readonly index: number }>;

/** A part that has to wait for its turn. */
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
  /** Canonical index of the part that is being written; undefined between parts. */
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

  /** @throws GatewayError `upstream_invalid` at the finish when a call's arguments are no object. */
  write(event: GenerationEvent): string {
    switch (event.type) {
      case 'part-delta':
        // The hottest line of a translated stream: text for the open block.
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

  /** `message_delta` waits until here, since usage may come behind the finish. */
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

  /** `message_start`, once something of the answer is known (F1: its input count is never zero). */
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

  /** Ends the current part and writes what waited for that, up to the next open part. */
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

  /** Ends all parts, also those that the upstream left open (F61). */
  #end(reason: FinishReason): string {
    this.#finish ??= reason;
    let text = '';
    while (this.#current !== undefined) text += this.#partEnd();
    const { brokenCall } = this.#live;
    if (brokenCall !== undefined && isNatural(reason) && usedUp(this.#usage, this.#context)) {
      // The token limit cut the call off, whatever the upstream calls it (B12).
      this.#finish = { ...reason, kind: 'length' };
    }
    const { kind } = this.#finish;
    const cut = kind === 'length' || kind === 'context-window';
    if (brokenCall !== undefined && !cut && kind !== 'content-filter') {
      throw new GatewayError(
        'upstream_invalid',
        `The model called the tool "${brokenCall}" with arguments that are not a JSON object.`,
      );
    }
    return text;
  }
}

function isNatural({ kind }: FinishReason): boolean {
  return kind === 'stop' || kind === 'tool-calls';
}
