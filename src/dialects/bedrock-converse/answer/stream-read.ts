/** Reads a stream of named events. The stream ends when the connection closes. */
import type { Frame, StreamReader } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import { AnswerStrangers } from '../../../core/shape.ts';
import { tryParseAnswerEvent, tryParseExactEvent } from '../../../json/parse.ts';
import { isObject, type JsonObject } from '../../../json/value.ts';
import { answerObject } from '../../shared/answers.ts';
import { type LayoutRules, PlainLayout } from '../../shared/plain-layout.ts';
import { AnswerReader } from './read.ts';
import { eventShapes } from './shape.ts';

const none: readonly GenerationEvent[] = [];

/** An event that continues a text. `p` pads against analysis of lengths. */
const plainDelta: LayoutRules = {
  text: /"text"\s*:\s*"/,
  passing: [/"p"\s*:\s*"/],
  textOf: ({ delta }) => {
    if (!isObject(delta) || Object.keys(delta).length !== 1) return undefined;
    const { text } = delta;
    return typeof text === 'string' && text !== '' ? text : undefined;
  },
};

export class ConverseStreamReader implements StreamReader {
  readonly #answer = new AnswerReader();
  readonly #strangers: AnswerStrangers | undefined;
  /** The end was read. Later data is ignored. */
  #over = false;
  readonly #layout = new PlainLayout(plainDelta);
  /** The block of the event from which the layout was learned. */
  #block = 0;

  /** @param notes absent where the upstream's own bytes go to the client */
  constructor(notes?: Notes) {
    this.#strangers = notes && new AnswerStrangers(notes);
  }

  get finishPending(): boolean {
    return this.#answer.finished && !this.#over;
  }

  /** @throws GatewayError `upstream_invalid` for data that is no JSON object. */
  read({ event: type, data }: Frame): readonly GenerationEvent[] {
    if (this.#over || data === undefined || type === undefined) return none;
    const shape = eventShapes.get(type);
    if (shape === undefined) {
      this.#strangers?.type([], type);
      return none;
    }
    const again = type === 'contentBlockDelta' ? this.#continueText(data) : undefined;
    if (again !== undefined) return again;
    // Arguments of calls are JSON values. Their numbers must not lose digits.
    const isCall = data.includes('"toolUse"');
    const event = isCall ? tryParseExactEvent(data) : tryParseAnswerEvent(data);
    if (event === undefined) {
      this.#over = true;
      throw new GatewayError('upstream_invalid', 'The upstream sent an event that is not JSON.');
    }
    this.#strangers?.see(event, shape, type);
    const events: GenerationEvent[] = [];
    // Some streams have no `messageStart`.
    this.#answer.start(events);
    this.#read(type, event, events);
    if (type === 'contentBlockDelta' && plainDelta.textOf(event) !== undefined) {
      this.#layout.learn(data);
      this.#block = blockOf(event);
    }
    // `metadata` is usually the last event. If it comes earlier or never, the close is the end.
    if (type === 'metadata' && this.#answer.finished) events.push(...this.end());
    return events;
  }

  /** The event of a frame with the learned layout. Undefined for any other frame. */
  #continueText(data: string): readonly GenerationEvent[] | undefined {
    const text = this.#layout.textOf(data);
    return text === undefined ? undefined : this.#answer.continueText(this.#block, text);
  }

  end(): readonly GenerationEvent[] {
    if (this.#over) return none;
    this.#over = true;
    return this.#answer.end();
  }

  #read(type: string, event: JsonObject, events: GenerationEvent[]): void {
    const answer = this.#answer;
    const block = blockOf(event);
    switch (type) {
      case 'contentBlockStart':
        return answer.blockStart(block, answerObject(event['start'], 'a start') ?? {}, events);
      case 'contentBlockDelta':
        return answer.delta(block, answerObject(event['delta'], 'a delta') ?? {}, events);
      case 'contentBlockStop':
        return answer.blockStop(block, events);
      case 'messageStop':
        return answer.stop(event);
      case 'metadata':
        return answer.usage(event, events);
      default:
    }
  }
}

function blockOf(event: JsonObject): number {
  return Number(event['contentBlockIndex'] ?? 0);
}
