/** Reads a stream. Each event is a response object with the new parts. The stream ends when the connection closes. */
import type { Frame, StreamReader } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent } from '../../../core/generation.ts';
import { tryParseAnswerEvent, tryParseExactEvent, tryParseInner } from '../../../json/parse.ts';
import type { JsonObject } from '../../../json/value.ts';
import { isPresent } from '../../shared/answers.ts';
import { looksLikeError, readErrorValue } from '../../shared/vendor-errors.ts';
import { AnswerReader } from './read.ts';

const none: readonly GenerationEvent[] = [];

export class GeminiStreamReader implements StreamReader {
  readonly #answer: AnswerReader;
  /** An error or the close was read. Later data is ignored. */
  #over = false;

  /** @param continues as of `AnswerReader` */
  constructor(continues: boolean) {
    this.#answer = new AnswerReader({ continues });
  }

  get finishPending(): boolean {
    return this.#answer.finished && !this.#over;
  }

  /** @throws GatewayError `upstream_invalid` for data that is no JSON object (F45). */
  read({ data }: Frame): readonly GenerationEvent[] {
    if (this.#over || data === undefined || data.trim() === '') return none;
    // Arguments of calls are JSON values. Their numbers must not lose digits.
    const isCall = data.includes('"functionCall"');
    const response = isCall ? tryParseExactEvent(data) : tryParseAnswerEvent(data);
    if (response === undefined) return this.#readOther(data);
    if (isError(response)) return this.#fail(readErrorValue(response));
    const events: GenerationEvent[] = [];
    this.#answer.read(response, events);
    return events;
  }

  end(): readonly GenerationEvent[] {
    if (this.#over) return none;
    this.#over = true;
    return this.#answer.end();
  }

  /** Some errors are inside a list. Any other data that is no object fails the stream, and is never skipped. */
  #readOther(data: string): readonly GenerationEvent[] {
    const value = tryParseInner(data);
    if (Array.isArray(value)) return this.#fail(readErrorValue(value));
    this.#over = true;
    throw new GatewayError('upstream_invalid', 'The upstream sent an event that is not JSON.');
  }

  #fail(error: GatewayError): readonly GenerationEvent[] {
    this.#over = true;
    return [{ type: 'error', error }];
  }
}

function isError(response: JsonObject): boolean {
  if (isPresent(response['error'])) return true;
  return response['candidates'] === undefined && looksLikeError(response);
}
