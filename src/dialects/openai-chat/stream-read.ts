/**
 * Reads a chat-completions stream into events (wire/chat-completions.md §5, wire/upstreams.md §6,
 * wire/translation.md §9.2). The hottest code of the gateway: one JSON parse a frame, and nothing
 * else for the frames that only carry a piece of text.
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { Frame, StreamReader } from '../../core/dialect.ts';
import { GatewayError } from '../../core/errors.ts';
import type { GenerationEvent } from '../../core/generation.ts';
import { tryParseAnswerEvent } from '../../core/json-answer.ts';
import { isObject, tryParseObject } from '../../core/json.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { readErrorValue } from './error-read.ts';
import { isArray } from './fields.ts';
import { isCut, readFailedFinish, readFinish } from './finish.ts';
import { PlainLayout, plainTextOf } from './plain-layout.ts';
import { isPresent, looksLikeError } from './response-read.ts';
import { StreamParts } from './stream-parts.ts';
import { findUsage } from './usage.ts';

const none: readonly GenerationEvent[] = [];

export class ChatStreamReader implements StreamReader {
  readonly #traits: UpstreamTraits;
  readonly #parts: StreamParts;
  #started = false;
  /** The choice that finished; later finish reasons are ignored (F60). */
  #finish: JsonObject | undefined;
  /** Other choices than the first that have not finished (`n > 1` exists in relay only). */
  readonly #openChoices = new Set<number>();
  #besideLength = 0;
  /** `[DONE]`, an error or the close was read: nothing after it counts (F53). */
  #over = false;
  readonly #layout = new PlainLayout();
  #plain = false;

  constructor(traits: UpstreamTraits) {
    this.#traits = traits;
    this.#parts = new StreamParts(traits);
  }

  /**
   * A finish was read and the stream has not ended yet: usage reports may follow, of which the last
   * one counts (F56, F58). A server that neither ends nor closes must not keep the client waiting.
   */
  get finishPending(): boolean {
    return this.#finish !== undefined && this.#openChoices.size === 0 && !this.#over;
  }

  get plain(): boolean {
    return this.#plain;
  }

  get besideLength(): number {
    return this.#besideLength;
  }

  /** @throws GatewayError `upstream_invalid` for data that is no JSON object (F45). */
  read(frame: Frame): readonly GenerationEvent[] {
    const { data } = frame;
    this.#plain = false;
    if (this.#over || data === undefined || data === '') return none;
    const text = frame.event !== 'error' ? this.#layout.textOf(data) : undefined;
    const again = text === undefined ? undefined : this.#goOn(text);
    if (again !== undefined) return [again];
    const chunk = tryParseAnswerEvent(data);
    if (frame.event === 'error') return this.#fail(readErrorValue(chunk ?? data));
    if (chunk === undefined) return this.#readOther(data);
    const failure = findError(chunk);
    if (failure !== undefined) return this.#fail(readErrorValue(failure));
    return this.#readChunk(chunk, data);
  }

  end(): readonly GenerationEvent[] {
    if (this.#over) return none;
    this.#over = true;
    if (this.#finish !== undefined && this.#openChoices.size === 0) return this.#finishEvents();
    const error = this.#started
      ? new GatewayError('stream_interrupted', 'The upstream closed the stream before its end.')
      : new GatewayError('upstream_invalid', 'The upstream sent an empty stream.');
    return [{ type: 'error', error }];
  }

  /** `[DONE]`; anything else is not JSON and fails the stream: nothing is skipped silently. */
  #readOther(data: string): readonly GenerationEvent[] {
    const text = data.trim();
    if (text === '') return none;
    if (!text.startsWith('[DONE]')) {
      this.#over = true;
      throw new GatewayError('upstream_invalid', 'The upstream sent an event that is not JSON.');
    }
    if (this.#finish === undefined) {
      return this.#fail(
        new GatewayError(
          'stream_interrupted',
          'The upstream ended the stream without saying why the answer ended.',
        ),
      );
    }
    this.#over = true;
    return this.#finishEvents();
  }

  #readChunk(chunk: JsonObject, data: string): readonly GenerationEvent[] {
    const text = plainTextOf(chunk);
    const only = text === undefined ? undefined : this.#goOn(text);
    if (only !== undefined) {
      this.#layout.learn(data);
      return [only];
    }
    const choice = firstChoice(chunk['choices']);
    this.#watchChoices(chunk['choices']);
    const usage = findUsage(chunk, this.#traits);
    if (choice === undefined && usage === undefined) return none;
    const events: GenerationEvent[] = [];
    this.#start(chunk, events);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    if (choice !== undefined) this.#readChoice(withExactArguments(choice, data), events);
    return events;
  }

  #watchChoices(choices: Json | undefined): void {
    if (!isArray(choices)) return;
    for (const choice of choices) {
      const index = isObject(choice) ? choice['index'] : undefined;
      if (!isObject(choice) || typeof index !== 'number' || index === 0) continue;
      this.#besideLength += textLength(choice['delta']);
      if (isPresent(choice['finish_reason'])) this.#openChoices.delete(index);
      else this.#openChoices.add(index);
    }
  }

  #start(chunk: JsonObject, events: GenerationEvent[]): void {
    if (this.#started) return;
    this.#started = true;
    this.#parts.answer = { id: chunk['id'], created: chunk['created'] };
    events.push({ type: 'start', id: textOf(chunk['id']), model: textOf(chunk['model']) });
  }

  /** The one event of a frame that goes on with an open text; undefined where none is open. */
  #goOn(text: string): GenerationEvent | undefined {
    if (!this.#started || this.#finish !== undefined) return undefined;
    const event = this.#parts.continueText(text);
    this.#plain = event !== undefined;
    return event;
  }

  #readChoice(choice: JsonObject, events: GenerationEvent[]): void {
    const { delta } = choice;
    if (isObject(delta)) this.#parts.read(delta, events);
    const reason = choice['finish_reason'];
    // What was said behind the finish counts all the same; another reason does not (F60).
    if (typeof reason !== 'string' || reason === '' || this.#finish !== undefined) return;
    const failure = readFailedFinish(reason);
    if (failure === undefined) this.#finish = choice;
    else {
      this.#over = true;
      events.push({ type: 'error', error: failure });
    }
  }

  #finishEvents(): readonly GenerationEvent[] {
    const events: GenerationEvent[] = [];
    this.#parts.close(events, isCut(this.#finish?.['finish_reason']));
    if (this.#parts.onlyBrokenCalls) {
      this.#over = true;
      const error = new GatewayError(
        'upstream_invalid',
        'The upstream sent a call without a name.',
      );
      return [{ type: 'error', error }];
    }
    const reason = readFinish({
      raw: this.#finish?.['finish_reason'],
      stopReason: this.#finish?.['stop_reason'],
      hasToolCalls: this.#parts.hasToolCalls,
    });
    events.push({ type: 'finish', reason });
    return events;
  }

  #fail(error: GatewayError): readonly GenerationEvent[] {
    this.#over = true;
    return [{ type: 'error', error }];
  }
}

/** Choice 0; others are leftovers of `n > 1` (F62). A missing index means the only one. */
function firstChoice(choices: Json | undefined): JsonObject | undefined {
  if (!isArray(choices)) return undefined;
  for (const choice of choices) {
    if (!isObject(choice)) continue;
    const { index } = choice;
    if (index === 0 || index === undefined || index === null) return choice;
  }
  return undefined;
}

/** Arguments that came as an object, not as text (B10), hold numbers of which no digit may be lost. */
function withExactArguments(choice: JsonObject, data: string): JsonObject {
  const { delta } = choice;
  const calls = isObject(delta) ? delta['tool_calls'] : undefined;
  if (!isArray(calls) || !calls.some(hasObjectArguments)) return choice;
  return firstChoice(tryParseObject(data)?.['choices']) ?? choice;
}

function hasObjectArguments(call: Json): boolean {
  const called = isObject(call) ? call['function'] : undefined;
  return isObject(called) && isObject(called['arguments']);
}

/** The error that a chunk carries, in any of the shapes that servers use (E5). */
function findError(chunk: JsonObject): Json | undefined {
  if (isPresent(chunk['error'])) return chunk;
  const { choices } = chunk;
  if (isArray(choices)) {
    const first = choices[0];
    if (isObject(first) && isPresent(first['error'])) return first['error'];
  } else if (!isObject(chunk['usage']) && looksLikeError(chunk)) {
    return chunk;
  }
  const groq = chunk['x_groq'];
  if (isObject(groq) && isPresent(groq['error'])) return groq['error'];
  return undefined;
}

/** Characters of all that a delta says, whatever it is. */
function textLength(value: Json | undefined): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  let length = 0;
  for (const [key, member] of Object.entries(value)) {
    if (!wordless.has(key)) length += textLength(member);
  }
  return length;
}

/** Members of a delta that name something and say nothing. */
const wordless: ReadonlySet<string> = new Set(['role', 'id', 'type', 'signature']);

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
