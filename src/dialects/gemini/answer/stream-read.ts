/** Reads a stream. Each event is a response object with the new parts. The stream ends when the connection closes. */
import type { Frame, StreamReader } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import { AnswerStrangers } from '../../../core/shape.ts';
import { tryParseAnswerEvent, tryParseExactEvent, tryParseInner } from '../../../json/parse.ts';
import { isObject, type JsonObject } from '../../../json/value.ts';
import { isPresent } from '../../shared/answers.ts';
import { type LayoutRules, PlainLayout } from '../../shared/plain-layout.ts';
import { looksLikeError, readErrorValue } from '../../shared/vendor-errors.ts';
import { AnswerReader } from './read.ts';
import { answerShape } from './shape.ts';

const none: readonly GenerationEvent[] = [];

/** A response object that only continues a text. */
const plainChunk: LayoutRules = { text: /"text"\s*:\s*"/, textOf: plainTextOf };
/** Quotes in a text have a backslash, so this is always a member. */
const usageKey = '"usageMetadata":';

export class GeminiStreamReader implements StreamReader {
  readonly #answer: AnswerReader;
  readonly #strangers: AnswerStrangers | undefined;
  readonly #layout = new PlainLayout(plainChunk);
  /** What is after the counts in the frame from which the layout was learned; `''` = the frame had no counts. */
  #afterUsage = '';
  /** The counts that were reported last, as they were sent. */
  #usageText = '';
  /** An error or the close was read. Later data is ignored. */
  #over = false;

  /**
   * @param continues as of `AnswerReader`
   * @param notes absent where the upstream's own bytes go to the client
   */
  constructor(continues: boolean, notes?: Notes) {
    this.#answer = new AnswerReader({ continues });
    this.#strangers = notes && new AnswerStrangers(notes);
  }

  get finishPending(): boolean {
    return this.#answer.finished && !this.#over;
  }

  /** @throws GatewayError `upstream_invalid` for data that is no JSON object (F45). */
  read({ data }: Frame): readonly GenerationEvent[] {
    if (this.#over || data === undefined) return none;
    const again = this.#continueText(data);
    if (again !== undefined) return again;
    if (data.trim() === '') return none;
    // Arguments of calls are JSON values. Their numbers must not lose digits.
    const isCall = data.includes('"functionCall"');
    const response = isCall ? tryParseExactEvent(data) : tryParseAnswerEvent(data);
    if (response === undefined) return this.#readOther(data);
    if (isError(response)) return this.#fail(readErrorValue(response));
    this.#strangers?.see(response, answerShape);
    const events: GenerationEvent[] = [];
    this.#answer.read(response, events);
    this.#learn(response, data);
    return events;
  }

  /** The events of a frame with the learned layout. Undefined for any other frame. */
  #continueText(data: string): readonly GenerationEvent[] | undefined {
    const after = this.#afterUsage;
    if (after === '') return this.#continued(this.#layout.textOf(data));
    const start = data.indexOf(usageKey) + usageKey.length;
    const end = data.length - after.length;
    if (start < usageKey.length || end <= start) return undefined;
    const text = this.#layout.textOf(`${data.slice(0, start)}{}${data.slice(end)}`);
    if (text === undefined) return undefined;
    const counts = data.slice(start, end);
    if (counts === this.#usageText) return this.#continued(text);
    const usageMetadata = tryParseAnswerEvent(counts);
    if (usageMetadata === undefined) return undefined;
    const event = this.#answer.continueText(text);
    if (event === undefined) return undefined;
    this.#usageText = counts;
    const usage = this.#answer.usage(usageMetadata);
    return usage === undefined ? [event] : [event, { type: 'usage', usage }];
  }

  #continued(text: string | undefined): readonly GenerationEvent[] | undefined {
    const event = text === undefined ? undefined : this.#answer.continueText(text);
    return event === undefined ? undefined : [event];
  }

  /** Learns the layout of a response object that only continues a text. Its counts may differ from one to the next. */
  #learn(response: JsonObject, data: string): void {
    this.#usageText = '';
    if (plainTextOf(response) === undefined) return;
    const { usageMetadata } = response;
    if (usageMetadata === undefined) {
      this.#afterUsage = '';
      return this.#layout.learn(data);
    }
    const counts = JSON.stringify(usageMetadata);
    const start = data.indexOf(usageKey) + usageKey.length;
    if (!isObject(usageMetadata) || !data.startsWith(counts, start)) return;
    this.#usageText = counts;
    this.#afterUsage = data.slice(start + counts.length);
    this.#layout.learn(`${data.slice(0, start)}{}${this.#afterUsage}`);
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

/** The text of a response object that only continues a text. Undefined for any other. */
function plainTextOf(response: JsonObject): string | undefined {
  const { candidates, promptFeedback, error } = response;
  if (promptFeedback !== undefined || error !== undefined) return undefined;
  if (!Array.isArray(candidates) || candidates.length !== 1) return undefined;
  const [candidate] = candidates;
  if (!isObject(candidate) || !isUnfinished(candidate)) return undefined;
  const { content } = candidate;
  const parts = isObject(content) ? content['parts'] : undefined;
  if (!Array.isArray(parts) || parts.length !== 1) return undefined;
  const [part] = parts;
  if (!isObject(part) || Object.keys(part).length !== 1) return undefined;
  const { text } = part;
  return typeof text === 'string' && text !== '' ? text : undefined;
}

/** Whether the candidate is the first one, and has nothing but content. */
function isUnfinished(candidate: JsonObject): boolean {
  const { index, finishReason, groundingMetadata, continuationToken } = candidate;
  if (index !== undefined && index !== 0) return false;
  return [finishReason, groundingMetadata, continuationToken].every((each) => each === undefined);
}

function isError(response: JsonObject): boolean {
  if (isPresent(response['error'])) return true;
  return response['candidates'] === undefined && looksLikeError(response);
}
