/**
 * Reads a Responses stream into events. The state is by `output_index`, never by `item_id`: some servers write another
 * id in each event of an item, others none.
 */
import type { Frame, StreamReader } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import { AnswerStrangers } from '../../../core/shape.ts';
import { tryParseAnswerEvent, tryParseExactEvent } from '../../../json/parse.ts';
import { type Json, type JsonObject, textOf } from '../../../json/value.ts';
import {
  answerObject,
  answerObjects,
  answerText,
  isPresent,
  wrongType,
} from '../../shared/answers.ts';
import { type LayoutRules, PlainLayout } from '../../shared/plain-layout.ts';
import { readErrorValue } from '../../shared/vendor-errors.ts';
import { StreamItems } from './stream-items.ts';
import { declaredNames, failureOf, noAnswer, readFinish } from './response.ts';
import { eventShape, isDecided, isRepeated } from './shape.ts';
import { readUsage } from './usage.ts';

const none: readonly GenerationEvent[] = [];

/** Events with the whole response. */
const lifecycle: ReadonlySet<string> = new Set([
  'response.created',
  'response.in_progress',
  'response.queued',
  'response.completed',
  'response.incomplete',
  'response.failed',
  'response.cancelled',
]);
const textDelta = 'response.output_text.delta';
/** How most servers write an event that continues a text. `obfuscation` is padding. */
const plainDelta: LayoutRules = {
  text: /"delta"\s*:\s*"/,
  passing: [/"sequence_number"\s*:\s*/, /"obfuscation"\s*:\s*"/],
  textOf: ({ type, delta }) =>
    type === textDelta && typeof delta === 'string' ? delta : undefined,
};

export class ResponsesStreamReader implements StreamReader {
  readonly #items = new StreamItems();
  readonly #notes: Notes | undefined;
  readonly #strangers: AnswerStrangers | undefined;
  /** Id of the response; undefined before its start. */
  #response: string | undefined;
  /** The terminal event, an error or the close was read. Later data is ignored (F53). */
  #over = false;
  #plain = false;
  readonly #layout = new PlainLayout(plainDelta);
  /** The event from which the layout was learned. Others with this layout differ only in their text. */
  #taught: JsonObject = {};

  /** @param notes absent where the upstream's own bytes go to the client */
  constructor(notes?: Notes) {
    this.#notes = notes;
    this.#strangers = notes && new AnswerStrangers(notes);
  }

  /** The terminal event has the usage, so no event is expected after it. */
  get finishPending(): boolean {
    return false;
  }

  get plain(): boolean {
    return this.#plain;
  }

  /** @throws GatewayError `upstream_invalid` for data that is no JSON object (F45). */
  read(frame: Frame): readonly GenerationEvent[] {
    const { data, event: name } = frame;
    this.#plain = false;
    if (this.#over || data === undefined || data === '') return none;
    const again = this.#response === undefined ? undefined : this.#continueText(data);
    if (again !== undefined) return again;
    // Items have arguments as JSON values, whose numbers must not lose digits. Deltas have texts.
    const isDelta = name?.endsWith('.delta') === true;
    const event = isDelta ? tryParseAnswerEvent(data) : tryParseExactEvent(data);
    if (event === undefined) return this.#readOther(data, name);
    const type = answerText(event['type'], 'a type') || (name ?? '');
    if (this.#strangers !== undefined) this.#noteStrangers(type, event, this.#strangers);
    if (type === textDelta && this.#response !== undefined) {
      const { event: told, continues } = this.#items.text(event);
      this.#plain = continues;
      if (continues) {
        this.#layout.learn(data);
        this.#taught = event;
      }
      return told;
    }
    const events: GenerationEvent[] = [];
    this.#readEvent(type, event, events);
    return events;
  }

  /** The events of a frame with the learned layout. Undefined for any other frame. */
  #continueText(data: string): readonly GenerationEvent[] | undefined {
    const text = this.#layout.textOf(data);
    const told = text === undefined ? undefined : this.#items.continueText(this.#taught, text);
    this.#plain = told?.continues === true;
    return told?.event;
  }

  end(): readonly GenerationEvent[] {
    if (this.#over) return none;
    const error =
      this.#response === undefined
        ? new GatewayError('upstream_invalid', 'The upstream sent an empty stream.')
        : new GatewayError('stream_interrupted', 'The upstream closed the stream before its end.');
    return this.#fail(error);
  }

  /** The end mark of chat servers ends the stream. An event with an unknown name is noted. */
  #readOther(data: string, name: string | undefined): readonly GenerationEvent[] {
    if (data.trim() === '') return none;
    if (data.trim() === '[DONE]') return this.end();
    if (name === 'error') return this.#fail(readErrorValue(data));
    if (name !== undefined && !name.startsWith('response.')) {
      this.#strangers?.type([], name);
      return none;
    }
    this.#over = true;
    throw new GatewayError('upstream_invalid', 'The upstream sent an event that is not JSON.');
  }

  #readEvent(type: string, event: JsonObject, events: GenerationEvent[]): void {
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        return this.#start(answerObject(event['response'], 'a response') ?? {}, events);
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#finish(type, event['response'], events);
      case 'error':
        events.push(...this.#fail(readErrorValue(event)));
        return;
      default:
        if (type === '') return this.#readNameless(event, events);
        if (!this.#items.knows(type)) return;
        this.#start({}, events);
        this.#items.read(type, event, events);
    }
  }

  #noteStrangers(type: string, event: JsonObject, strangers: AnswerStrangers): void {
    if (type === '' || type === 'error') return;
    if (lifecycle.has(type) || this.#items.knows(type) || isRepeated(type)) {
      strangers.see(event, eventShape, type);
    } else if (!isDecided(type)) strangers.type([], type);
  }

  /** An event without a type: an error in another form, or another dialect. */
  #readNameless(event: JsonObject, events: GenerationEvent[]): void {
    const error = isPresent(event['error']) ? readErrorValue(event) : noAnswer(event);
    events.push(...this.#fail(error));
  }

  /** A start of another response means two half answers, which cannot be joined. */
  #start(response: JsonObject, events: GenerationEvent[]): void {
    const id = textOf(response['id']);
    for (const name of declaredNames(response)) this.#items.declared.add(name);
    if (this.#response === undefined) {
      this.#response = id;
      events.push({ type: 'start', id, model: textOf(response['model']) });
    } else if (id !== '' && this.#response !== '' && id !== this.#response) {
      // Some servers encrypt the id anew for each event, so different ids may mean the same response.
      if (id.startsWith('resp_') && this.#response.startsWith('resp_')) {
        events.push(...this.#fail(secondAnswer()));
      }
    }
  }

  #finish(type: string, value: Json | undefined, events: GenerationEvent[]): void {
    const response = answerObject(value, 'a response');
    if (response === undefined) throw wrongType('a response');
    const failure = failureOf(response);
    if (failure !== undefined || type === 'response.failed' || type === 'response.cancelled') {
      const used = readUsage(response, this.#items.searches);
      if (used !== undefined) events.push({ type: 'usage', usage: used });
      events.push(...this.#fail(failure ?? gaveUp()));
      return;
    }
    this.#start(response, events);
    if (this.#over) return;
    this.#over = true;
    const ended = type === 'response.incomplete' ? { ...response, status: 'incomplete' } : response;
    const cut = ended['status'] === 'incomplete';
    this.#items.settle(answerObjects(response['output'], 'output'), cut, events);
    const usage = readUsage(response, this.#items.searches);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    events.push({ type: 'finish', reason: readFinish(ended, this.#items.hasCalls, this.#notes) });
  }

  #fail(error: GatewayError): readonly GenerationEvent[] {
    this.#over = true;
    return [{ type: 'error', error }];
  }
}

function gaveUp(): GatewayError {
  return new GatewayError('upstream_unavailable', 'The provider gave up on the answer.');
}

function secondAnswer(): GatewayError {
  return new GatewayError('upstream_invalid', 'The upstream began a second answer in the first.');
}
