/**
 * Relays answers. The bytes are passed on unchanged, except for the model name
 * (docs/decisions/0004). Requests: relay/request.ts.
 */
import type { AnswerContext, AnswerRelay, Frame } from '../../../core/dialect.ts';
import type { FinishReason, GenerationEvent, Usage } from '../../../core/generation.ts';
import { spliceAnswer, type WholeDocument } from '../../../core/client-body.ts';
import { tryParseObject } from '../../../json/parse.ts';
import { findMember } from '../../../json/scan.ts';
import { isObject, type JsonObject, textOf } from '../../../json/value.ts';
import { withBlankLine } from '../../shared/answers.ts';
import { eventFrame } from '../answer/stream-write.ts';
import { withEstimate } from '../answer/response.ts';
import { writeTotals, writeUsage } from '../answer/usage.ts';

const messageStop = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
const modelKey = Buffer.from('"model"');
const messageKey = Buffer.from('"message"');

/** Edits a relayed answer. State of one answer. */
export class MessagesAnswerRelay implements AnswerRelay {
  readonly #context: AnswerContext;
  #started = false;
  #ended = false;
  /** The event that began the open block. */
  #openBlock: string | undefined;

  constructor(context: AnswerContext) {
    this.#context = context;
  }

  get ended(): boolean {
    return this.#ended;
  }

  frame(frame: Frame, events: readonly GenerationEvent[], gap?: Usage): Buffer | undefined {
    if (this.#ended) return undefined;
    const { data } = frame;
    if (data === undefined || data === '') {
      // Clients fail on an event with a name and no data: they parse an empty text.
      return frame.event === undefined && data === undefined ? frame.bytes : undefined;
    }
    if (!this.#started) return this.#first(frame, data, events);
    // A block's number on the wire is in its first event only.
    for (const { type } of events) {
      if (type === 'part-start') this.#openBlock = data;
      else if (type === 'part-end') this.#openBlock = undefined;
    }
    const reason = finishOf(events);
    const bytes = mayNameModel(data, events)
      ? this.#named(frame, data)
      : withBlankLine(frame.bytes);
    if (reason === undefined || bytes === undefined) return bytes;
    this.#ended = true;
    return gap === undefined ? bytes : Buffer.concat([usageFrame(reason, gap), bytes]);
  }

  document(answer: WholeDocument, gap?: Usage): Buffer {
    const { bytes, body } = answer;
    const { model } = this.#context;
    if (gap !== undefined || !isObject(body['usage'])) {
      const usage = writeUsage(withEstimate(gap ?? countedOutput(body), this.#context));
      const members = { model: JSON.stringify(model), usage: JSON.stringify(usage) };
      return spliceAnswer(answer, members) ?? restated({ ...body, model, usage });
    }
    if (body['model'] === model) return bytes;
    return (
      replaceModel(bytes, bytes.indexOf(0x7b), model) ??
      spliceAnswer(answer, { model: JSON.stringify(model) }) ??
      restated({ ...body, model })
    );
  }

  ending(): string {
    return this.#ended ? '' : messageStop;
  }

  cutShort(usage: Usage): string {
    const index = tryParseObject(this.#openBlock ?? '')?.['index'];
    const stop = { type: 'content_block_stop', index };
    const open = index === undefined ? '' : eventFrame('content_block_stop', stop);
    return open + usageText({ kind: 'length', raw: 'max_tokens' }, usage) + messageStop;
  }

  /** The first frame is usually `message_start`: its model, and its usage where it has none. */
  #first(frame: Frame, data: string, events: readonly GenerationEvent[]): Buffer | undefined {
    const start = tryParseObject(data);
    const message = start?.['message'];
    if (start === undefined || !isObject(message)) return this.#named(frame, data);
    this.#started = true;
    const { model } = this.#context;
    const named = withModelName(start, model);
    const hasUsage = events.some((event) => event.type === 'usage');
    if (!hasUsage) {
      const usage = writeUsage(withEstimate({ outputTokens: 1 }, this.#context));
      return Buffer.from(
        eventFrame('message_start', { ...named, message: { ...message, model, usage } }),
      );
    }
    if (named === start) return withBlankLine(frame.bytes);
    const spliced = start['model'] === undefined ? withModel(frame, model) : undefined;
    return spliced ?? Buffer.from(eventFrame('message_start', named));
  }

  /**
   * A later frame, with the client's model name. A second start of the message is dropped:
   * the official client fails on it, and it has no new content.
   */
  #named(frame: Frame, data: string): Buffer | undefined {
    const event = tryParseObject(data);
    const type = event?.['type'] ?? frame.event;
    if (type === 'message_start' && this.#started) return undefined;
    const named = event === undefined ? event : withModelName(event, this.#context.model);
    if (named === undefined || named === event) return withBlankLine(frame.bytes);
    return Buffer.from(eventFrame(frame.event ?? textOf(type), named));
  }
}

/** Frames that continue a part never name a model. There is one for each token. */
function mayNameModel(data: string, events: readonly GenerationEvent[]): boolean {
  const continues = events.length === 1 && events[0]?.type === 'part-delta';
  return !continues && (data.includes('"model"') || data.includes('"message_start"'));
}

/** The event with this model name; the same object if it names none, or this one already. */
function withModelName(event: JsonObject, model: string): JsonObject {
  const { message } = event;
  const outer = typeof event['model'] === 'string' && event['model'] !== model;
  const inner = isObject(message) && message['model'] !== model;
  if (!outer && !inner) return event;
  return {
    ...event,
    ...(outer ? { model } : {}),
    ...(inner ? { message: { ...message, model } } : {}),
  };
}

/** The frame with another model name in its own bytes. Undefined if its data is split over lines. */
function withModel(frame: Frame, model: string): Buffer | undefined {
  const { bytes, data } = frame;
  if (data?.includes('\n') === true) return undefined;
  const message = findMember(bytes, 0, messageKey);
  return message === undefined
    ? undefined
    : replaceModel(withBlankLine(bytes), message.start, model);
}

function replaceModel(bytes: Buffer, object: number, model: string): Buffer | undefined {
  const span = findMember(bytes, object, modelKey);
  if (span === undefined) return undefined;
  return Buffer.concat([
    bytes.subarray(0, span.start),
    Buffer.from(JSON.stringify(model)),
    bytes.subarray(span.end),
  ]);
}

function finishOf(events: readonly GenerationEvent[]): FinishReason | undefined {
  for (const event of events) if (event.type === 'finish') return event.reason;
  return undefined;
}

function restated(body: JsonObject): Buffer {
  return Buffer.from(JSON.stringify(body));
}

/** A further `message_delta` with the usage; the client lets its fields replace earlier ones. */
function usageFrame(reason: FinishReason, usage: Usage): Buffer {
  // Unknown counts must be 0 here: null would retain the impossible counts of the start event.
  return Buffer.from(usageText(reason, { cacheReadTokens: 0, cacheWriteTokens: 0, ...usage }));
}

function usageText(reason: FinishReason, usage: Usage): string {
  const delta = {
    stop_reason: reason.raw ?? 'end_turn',
    stop_sequence: reason.sequence ?? null,
    stop_details: reason.details ?? null,
  };
  const data = { type: 'message_delta', delta, usage: writeTotals(usage) };
  return eventFrame('message_delta', data);
}

/** An estimate of the output of a document without usage: four characters a token (F55). */
function countedOutput(body: JsonObject): { readonly outputTokens: number } {
  const length = JSON.stringify(body['content'] ?? []).length;
  return { outputTokens: Math.max(1, Math.ceil(length / 4)) };
}
