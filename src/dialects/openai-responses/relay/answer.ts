/**
 * Relays answers. The bytes are passed on unchanged, except for members of the response object that the gateway sets.
 * Requests: relay/request.ts.
 */
import type { AnswerContext, AnswerRelay, Frame } from '../../../core/dialect.ts';
import { spliceAnswer, type WholeDocument } from '../../../core/client-body.ts';
import type { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent, Usage } from '../../../core/generation.ts';
import { tryParseObject } from '../../../json/parse.ts';
import { isObject, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import { withBlankLine, withModel } from '../../shared/answers.ts';
import { repairedUsage } from '../../shared/usage-sums.ts';
import { callKindOf, isStableItemId, itemPrefix } from '../items.ts';
import { eventFrame, Lifecycle } from '../answer/lifecycle.ts';
import { RelayedItems } from './items.ts';
import type { ItemEvent } from '../replay.ts';
import { withEstimate } from '../answer/stream-write.ts';
import { readUsage, writeUsage } from '../answer/usage.ts';

const terminal: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
]);
const numbered = /"sequence_number"\s*:\s*(\d{1,15})/;

/**
 * Events on which the official client fails: events that some gateways and engines add, and a reasoning event of vLLM.
 * They have no content of the answer.
 */
function isForeign(type: string): boolean {
  if (type === 'error' || type === '') return false;
  return !type.startsWith('response.') || type.startsWith('response.reasoning_part.');
}

/**
 * Whether the event ends a call that was cut off. Some services send it, and clients run a call when they see its end. If the
 * answer ends as complete, `RelayedItems.settle` adds the event before the last one.
 */
function endsCutCall(type: string, { item }: JsonObject): boolean {
  if (type !== 'response.output_item.done' || !isObject(item)) return false;
  return item['status'] === 'incomplete' && callKindOf(item['type']) !== undefined;
}

/** Clients go by the event alone, so an answer that was cut off must not end as a complete one. */
function endingOf(type: string, { status }: JsonObject): string {
  return type === 'response.completed' && status === 'incomplete' ? 'response.incomplete' : type;
}

export class ResponsesAnswerRelay implements AnswerRelay {
  readonly #context: AnswerContext;
  readonly #life: Lifecycle;
  /** The client got a response id before the upstream began. */
  readonly #announced: boolean;
  #ended = false;
  /** Data of the latest piece of a text, until its sequence number is read. */
  #latest = '';
  /** The upstream's latest response object, as the client got it. */
  #response: JsonObject | undefined;
  readonly #items: RelayedItems;

  constructor(context: AnswerContext) {
    this.#context = context;
    this.#life = new Lifecycle(context, context.opening);
    this.#announced = this.#life.began;
    this.#items = new RelayedItems(context.mayBeCut === true, (item) => this.#ownItemId(item));
  }

  get ended(): boolean {
    return this.#ended;
  }

  plainFrame(frame: Frame): Buffer | undefined {
    if (this.#ended) return undefined;
    const { data = '' } = frame;
    this.#latest = data;
    this.#items.more(data);
    return this.#items.changing ? this.#steady(frame) : withBlankLine(frame.bytes);
  }

  frame(frame: Frame, _events: readonly GenerationEvent[], gap?: Usage): Buffer | undefined {
    const { data } = frame;
    if (this.#ended) return undefined;
    if (data === undefined || data === '') {
      return frame.event === undefined && data === undefined ? frame.bytes : undefined;
    }
    // Streams of this dialect have no `[DONE]`.
    if (data.startsWith('[DONE]')) return undefined;
    this.#seeNumber(data);
    const event = tryParseObject(data);
    const type = textOf(event?.['type']) || (frame.event ?? '');
    if (isForeign(type)) return undefined;
    const response = event?.['response'];
    if (event === undefined || !isObject(response)) {
      return this.#within(type, event ?? {}, frame);
    }
    return this.#lifecycle(type, event, { response, frame, gap });
  }

  document(answer: WholeDocument, gap?: Usage): Buffer {
    const { bytes, body } = answer;
    // The gateway sets no member of a compacted conversation.
    if (this.#context.compacts === true) return bytes;
    const wanted = { ...this.#own(body, gap), ...this.#ownId(body), ...this.#ownItemIds(body) };
    const own = Object.entries(wanted).filter(([key, value]) => body[key] !== value);
    const [first] = own;
    if (first === undefined) return bytes;
    const renamed = own.length === 1 && first[0] === 'model';
    const members = Object.fromEntries(own.map(([key, value]) => [key, JSON.stringify(value)]));
    return (
      (renamed ? withModel(bytes, body['model'], this.#context.model) : undefined) ??
      spliceAnswer(answer, members) ??
      Buffer.from(JSON.stringify({ ...body, ...Object.fromEntries(own) }))
    );
  }

  ending(gap?: Usage): string {
    this.#seeNumber();
    return this.#ended ? '' : this.#end('completed', {}, gap);
  }

  cutShort(usage: Usage): string {
    this.#seeNumber();
    const reason = { incomplete_details: { reason: 'max_output_tokens' } };
    const events = this.#items.cut()?.events ?? [];
    const text = events.map(([type, members]) => this.#life.event(type, members)).join('');
    return text + this.#end('incomplete', reason, usage);
  }

  fail(error: GatewayError, requestId: string, usage?: Usage): string {
    this.#seeNumber();
    return this.#life.fail(error, requestId, { output: this.#output(), usage });
  }

  keepAlive(): string {
    this.#seeNumber();
    const { sequence } = this.#life;
    const text = this.#silentEvent();
    // The upstream's sequence numbers continue after it.
    this.#life.sequence = sequence;
    return text;
  }

  #silentEvent(): string {
    if (!this.#life.began) return this.#life.keepAlive();
    const event = tryParseObject(this.#items.piece ?? '');
    if (event === undefined) return this.#life.progress(this.#output());
    const { obfuscation: _padding, ...rest } = this.#items.steady(event);
    const sequence_number = Math.max(0, this.#life.sequence - 1);
    return eventFrame(textOf(event['type']), { ...rest, sequence_number, delta: '' });
  }

  #end(status: 'completed' | 'incomplete', more: JsonObject, gap: Usage | undefined): string {
    this.#ended = true;
    const usage = writeUsage(withEstimate(gap, this.#context));
    const known = this.#response ?? this.#life.response([], { status });
    const response = { ...known, status, ...more, output: this.#output(), usage };
    return this.#life.event(`response.${status}`, { response });
  }

  #lifecycle(
    type: string,
    event: JsonObject,
    {
      response,
      frame,
      gap,
    }: { readonly response: JsonObject; readonly frame: Frame; readonly gap: Usage | undefined },
  ): Buffer | undefined {
    const first = type === 'response.created';
    if (first && this.#announced) return undefined;
    if (first) this.#life.announced(textOf(response['id']));
    if (terminal.has(type)) this.#ended = true;
    const ending = endingOf(type, response);
    const { events, output } = this.#settled(ending, response);
    const own = {
      ...this.#own(response, this.#ended ? gap : undefined),
      ...this.#ownId(response),
      ...(ending === 'response.incomplete' ? { status: 'incomplete' } : {}),
      ...(output === undefined ? {} : { output }),
    };
    this.#response = { ...response, ...own };
    const same =
      ending === type && Object.entries(own).every(([key, value]) => response[key] === value);
    const received = same
      ? withBlankLine(frame.bytes)
      : Buffer.from(eventFrame(ending, { ...event, type: ending, response: this.#response }));
    return events === '' ? received : Buffer.concat([Buffer.from(events), received]);
  }

  /** The members of a response object that the gateway sets, even if the upstream omits them. */
  #own(response: JsonObject, gap: Usage | undefined): JsonObject {
    const { state, model } = this.#context;
    const previous = state?.previousResponseId;
    const tellsPrevious = previous !== undefined || response['previous_response_id'] !== undefined;
    const usage = this.#ownUsage(response, gap);
    return {
      model,
      // A failed response is not stored. Without the member, clients take the response for a stored one.
      store: state?.store === true && response['status'] !== 'failed',
      ...(tellsPrevious ? { previous_response_id: previous ?? null } : {}),
      ...(usage === undefined ? {} : { usage }),
    };
  }

  /** Usage whose parts are within their sums, as clients expect. Undefined if the upstream's usage is correct. */
  #ownUsage(response: JsonObject, gap: Usage | undefined): JsonObject | undefined {
    const { usage: sent } = response;
    if (gap === undefined && isObject(sent)) {
      const read = readUsage(response);
      return read && repairedUsage(sent, writeUsage(read));
    }
    if (gap === undefined && !this.#ended) return undefined;
    return writeUsage(withEstimate(gap, this.#context));
  }

  /**
   * Repairs a last event that clients would take for an empty answer: one with items that no earlier event had, or one
   * without the items of earlier events.
   * @returns the events that must come before this one, and the items that replace the upstream's in it
   */
  #settled(
    type: string,
    { output }: JsonObject,
  ): { readonly events: string; readonly output?: readonly JsonObject[] } {
    if (!this.#ended || !isArray(output)) return { events: '' };
    const items = output.filter(isObject);
    if (items.length === 0) {
      const { done } = this.#items;
      return { events: '', ...(done.length === 0 ? {} : { output: done }) };
    }
    const settled = this.#items.settle(items, type !== 'response.completed');
    const events = this.#between(settled.events);
    return { events, ...(this.#items.changing ? { output: settled.output } : {}) };
  }

  /** Events of the gateway between those of the upstream. The upstream's later events are numbered after them. */
  #between(events: readonly ItemEvent[]): string {
    const sequence_number = Math.max(0, this.#life.sequence - 1);
    return events
      .map(([type, members]) => eventFrame(type, { type, sequence_number, ...members }))
      .join('');
  }

  /** The client's id of the response, if it differs from the upstream's. */
  #ownId(response: JsonObject): JsonObject {
    const theirs = !this.#life.named && textOf(response['id']) !== '';
    return theirs ? {} : { id: this.#life.id };
  }

  /** The gateway's id for an item of a stored response, so that a later request can refer to it. */
  #ownItemId({ id, type }: JsonObject): string | undefined {
    if (this.#context.state?.store !== true || isStableItemId(id)) return undefined;
    return this.#context.newId(itemPrefix(type));
  }

  #ownItemIds({ output }: JsonObject): JsonObject {
    if (!isArray(output)) return {};
    const items = output.map((item) => {
      const id = isObject(item) ? this.#ownItemId(item) : undefined;
      return id === undefined || !isObject(item) ? item : { ...item, id };
    });
    return items.every((item, i) => item === output[i]) ? {} : { output: items };
  }

  /** An event of an item. Some servers send only its end, on which the official client fails, so the start is added. */
  #within(type: string, received: JsonObject, { bytes, data = '' }: Frame): Buffer | undefined {
    const event = this.#items.steady(received);
    if (endsCutCall(type, event)) return undefined;
    const whole = event === received ? withBlankLine(bytes) : Buffer.from(eventFrame(type, event));
    const owed = this.#items.see(type, event, data);
    if (owed.length === 0) return whole;
    return Buffer.concat([Buffer.from(this.#between(owed)), whole]);
  }

  #steady({ bytes, data = '' }: Frame): Buffer {
    const received = tryParseObject(data) ?? {};
    const event = this.#items.steady(received);
    return event === received
      ? withBlankLine(bytes)
      : Buffer.from(eventFrame(textOf(event['type']), event));
  }

  /** Reads sequence numbers only where the gateway may write the next event, not of each piece of a text. */
  #seeNumber(data = ''): void {
    for (const each of [this.#latest, data]) {
      const found = numbered.exec(each.slice(0, 200)) ?? numbered.exec(each.slice(-200));
      if (found !== null) this.#life.sequence = Number(found[1]) + 1;
    }
    this.#latest = '';
  }

  #output(): readonly JsonObject[] {
    const seen = this.#items.done;
    const received = this.#response?.['output'];
    return seen.length === 0 && isArray(received) ? received.filter(isObject) : seen;
  }
}
