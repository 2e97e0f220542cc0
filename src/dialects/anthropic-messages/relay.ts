/**
 * Same-dialect calls: the bytes of request and answer travel as they are, apart from the model name
 * (wire/translation.md principle 6; C4, F52, F53; docs/decisions/0004).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { AnswerContext, AnswerRelay, Ask, Frame } from '../../core/dialect.ts';
import type { FinishReason, GenerationEvent, Usage } from '../../core/generation.ts';
import { spliceAnswer, type WholeDocument } from '../../core/json-answer.ts';
import { isObject, spliceMembers, tryParseObject, type JsonSource } from '../../core/json.ts';
import type { Notes } from '../../core/notes.ts';
import type { Pieces } from '../../core/pieces.ts';
import { isSealed } from '../../core/sealer.ts';
import { withBlankLine } from '../blank-line.ts';
import { eventFrame } from './event-frame.ts';
import { isArray, textOf } from './fields.ts';
import { memberSpan } from './member-span.ts';
import { withEstimate } from './response-write.ts';
import { writeTotals, writeUsage } from './usage.ts';

const messageStop = 'event: message_stop\ndata: {"type":"message_stop"}\n\n';
const modelKey = Buffer.from('"model"');
const messageKey = Buffer.from('"message"');
const billingLine = 'x-anthropic-billing-header:';

/** The client's bytes, asking for this target's model. */
export function relayRequest(source: JsonSource, ask: Ask, notes?: Notes): Pieces {
  const model = source.outline['model'] === ask.model ? undefined : JSON.stringify(ask.model);
  const history = source.holds('sealed') ? withoutSealed(source.value) : {};
  const system =
    ask.traits.dropsBillingHeader === true ? withoutBilling(source.outline) : undefined;
  const cap = ask.maxOutputTokens;
  const edits = {
    model,
    system,
    max_tokens: cap === undefined ? undefined : String(cap),
    stream: forcedStream(source.outline, ask),
    ...history,
  };
  const same = Object.values(edits).every((edit) => edit === undefined);
  if (same && source.unambiguous) return source.pieces;
  if (history.messages !== undefined) {
    notes?.lost(['messages'], 'reasoning of another provider is not shown to this one');
  }
  if (history.thinking !== undefined) {
    notes?.changed(
      ['thinking'],
      'it is off: the open tool turn does not begin with signed thinking',
    );
  }
  return spliceMembers(source, edits);
}

/** Where documents are refused a stream is asked for that the client did not want (E11). */
function forcedStream(value: JsonObject, ask: Ask): string | undefined {
  return ask.traits.streams === 'only' && value['stream'] !== true ? 'true' : undefined;
}

/**
 * Instructions without the line that Claude Code puts first, as JSON text: it changes with each call
 * and means nothing to servers that are not Anthropic's, whose caches it would defeat (A6).
 */
function withoutBilling({ system }: JsonObject): string | undefined {
  const first = isArray(system) ? system[0] : undefined;
  if (!isArray(system) || !isObject(first)) return undefined;
  if (!textOf(first['text']).startsWith(billingLine)) return undefined;
  return JSON.stringify(system.slice(1));
}

interface CleanHistory {
  /** JSON text; undefined when nothing had to go. */
  readonly messages?: string;
  readonly thinking?: string;
}

/**
 * Reasoning of other upstreams must not reach a messages server, which would refuse it (§5.4). An
 * open tool turn that is left without thinking is refused too while a budget is set (D3).
 */
function withoutSealed({ messages, thinking }: JsonObject): CleanHistory {
  if (!isArray(messages)) return {};
  const cleaned = messages.map(cleanMessage);
  if (cleaned.every((message, i) => message === messages[i])) return {};
  const kept = JSON.stringify(cleaned.filter((message) => message !== undefined));
  const open = messages.findLastIndex((each) => isObject(each) && each['role'] === 'assistant');
  const budget = isObject(thinking) && thinking['type'] === 'enabled';
  const mustStop = budget && cleaned[open] !== messages[open] && hasCalls(cleaned[open]);
  return mustStop ? { messages: kept, thinking: '{"type":"disabled"}' } : { messages: kept };
}

/** The message without sealed reasoning, the same value if it has none, undefined if nothing is left. */
function cleanMessage(message: Json): Json | undefined {
  if (!isObject(message) || !isArray(message['content'])) return message;
  const { content } = message;
  const kept = content.filter((block) => !isSealedBlock(block));
  if (kept.length === content.length) return message;
  return kept.length === 0 ? undefined : { ...message, content: kept };
}

function hasCalls(message: Json | undefined): boolean {
  const content = isObject(message) ? message['content'] : undefined;
  return isArray(content) && content.some((each) => isObject(each) && each['type'] === 'tool_use');
}

function isSealedBlock(block: Json): boolean {
  if (!isObject(block)) return false;
  if (block['type'] === 'thinking') return isSealed(textOf(block['signature']));
  return block['type'] === 'redacted_thinking' && isSealed(textOf(block['data']));
}

/** Edits a relayed answer. State of one answer. */
export class MessagesAnswerRelay implements AnswerRelay {
  readonly #context: AnswerContext;
  #started = false;
  #ended = false;
  /** The event that began the block that is open. */
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
      // An event with a name and no data makes the clients parse an empty text.
      return frame.event === undefined && data === undefined ? frame.bytes : undefined;
    }
    if (!this.#started) return this.#first(frame, data, events);
    this.#watchBlock(data, events);
    const reason = finishOf(events);
    const bytes = withBlankLine(frame.bytes);
    if (reason === undefined) return bytes;
    this.#ended = true;
    return gap === undefined ? bytes : Buffer.concat([usageFrame(reason, gap), bytes]);
  }

  document(answer: WholeDocument, counted?: Usage): Buffer {
    const { bytes, body } = answer;
    const { model } = this.#context;
    if (!isObject(body['usage'])) {
      const usage = writeUsage(withEstimate(counted ?? countedOutput(body), this.#context));
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

  /** A block's number on the wire is in its first event only. */
  #watchBlock(data: string, events: readonly GenerationEvent[]): void {
    for (const { type } of events) {
      if (type === 'part-start') this.#openBlock = data;
      else if (type === 'part-end') this.#openBlock = undefined;
    }
  }

  /** The first frame is `message_start` as a rule: its model, and its usage where it has none. */
  #first(frame: Frame, data: string, events: readonly GenerationEvent[]): Buffer {
    const start = tryParseObject(data);
    const message = start?.['message'];
    if (start === undefined || !isObject(message)) return withBlankLine(frame.bytes);
    this.#started = true;
    const { model } = this.#context;
    const hasUsage = events.some((event) => event.type === 'usage');
    if (!hasUsage) {
      const usage = writeUsage(withEstimate({ outputTokens: 1 }, this.#context));
      return Buffer.from(
        eventFrame('message_start', { ...start, message: { ...message, model, usage } }),
      );
    }
    if (message['model'] === model) return withBlankLine(frame.bytes);
    return (
      withModel(frame, model) ??
      Buffer.from(eventFrame('message_start', { ...start, message: { ...message, model } }))
    );
  }
}

/** The frame with another model, in its own bytes; undefined when its data is split over lines. */
function withModel(frame: Frame, model: string): Buffer | undefined {
  const { bytes, data } = frame;
  if (data?.includes('\n') === true) return undefined;
  const object = bytes.indexOf(0x7b);
  const message = memberSpan(bytes, object, messageKey);
  return message === undefined
    ? undefined
    : replaceModel(withBlankLine(bytes), message.start, model);
}

function replaceModel(bytes: Buffer, object: number, model: string): Buffer | undefined {
  const span = memberSpan(bytes, object, modelKey);
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

/** A further `message_delta` that tells the usage; the client lets its fields replace earlier ones. */
function usageFrame(reason: FinishReason, usage: Usage): Buffer {
  return Buffer.from(usageText(reason, usage));
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

/** An estimate of the output of a document without usage: four characters a token (§11, F55). */
function countedOutput(body: JsonObject): { readonly outputTokens: number } {
  const length = JSON.stringify(body['content'] ?? []).length;
  return { outputTokens: Math.max(1, Math.ceil(length / 4)) };
}
