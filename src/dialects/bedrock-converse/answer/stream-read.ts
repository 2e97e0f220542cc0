/** Reads a stream of named events. The stream ends when the connection closes. */
import type { Frame, StreamReader } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent } from '../../../core/generation.ts';
import { tryParseAnswerEvent, tryParseExactEvent } from '../../../json/parse.ts';
import type { JsonObject } from '../../../json/value.ts';
import { answerObject } from '../../shared/answers.ts';
import { AnswerReader } from './read.ts';

const none: readonly GenerationEvent[] = [];

export class ConverseStreamReader implements StreamReader {
  readonly #answer = new AnswerReader();
  /** The end was read. Later data is ignored. */
  #over = false;

  get finishPending(): boolean {
    return this.#answer.finished && !this.#over;
  }

  /** @throws GatewayError `upstream_invalid` for data that is no JSON object. */
  read({ event: type, data }: Frame): readonly GenerationEvent[] {
    if (this.#over || data === undefined || type === undefined || !known.has(type)) return none;
    // Arguments of calls are JSON values. Their numbers must not lose digits.
    const isCall = data.includes('"toolUse"');
    const event = isCall ? tryParseExactEvent(data) : tryParseAnswerEvent(data);
    if (event === undefined) {
      this.#over = true;
      throw new GatewayError('upstream_invalid', 'The upstream sent an event that is not JSON.');
    }
    const events: GenerationEvent[] = [];
    // Some streams have no `messageStart`.
    this.#answer.start(events);
    this.#read(type, event, events);
    // `metadata` is usually the last event. If it comes earlier or never, the close is the end.
    if (type === 'metadata' && this.#answer.finished) events.push(...this.end());
    return events;
  }

  end(): readonly GenerationEvent[] {
    if (this.#over) return none;
    this.#over = true;
    return this.#answer.end();
  }

  #read(type: string, event: JsonObject, events: GenerationEvent[]): void {
    const answer = this.#answer;
    const block = Number(event['contentBlockIndex'] ?? 0);
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

/** The events of an answer. Others are ignored. */
const known: ReadonlySet<string> = new Set([
  'messageStart',
  'contentBlockStart',
  'contentBlockDelta',
  'contentBlockStop',
  'messageStop',
  'metadata',
]);
