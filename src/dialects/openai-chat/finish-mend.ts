/**
 * The finish of relayed answers: agents stop in silence over a call that ends in `stop`, and hang over
 * `tool_calls` without a call (B11). A cut-off or filtered answer keeps its word (B12).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import type { GenerationEvent } from '../../core/generation.ts';
import { isObject, tryParseObject } from '../../core/json.ts';
import { isArray } from './fields.ts';

const told = /"finish_reason"(\s*):(\s*)"(stop|tool_calls)"/;

/** Calls whose name or id is still to come make no event yet. */
const someCall = /"tool_calls"\s*:\s*\[\s*\{/;

/** State of one stream. */
export class FinishMend {
  #called = false;
  /** The deprecated form has a finish of its own. */
  #legacy = false;

  /** The frame with the word that fits, or undefined when it has no other. */
  apply(data: string, bytes: Buffer, events: readonly GenerationEvent[]): Buffer | undefined {
    // A frame that only goes on with a text is not searched: there is one for each token.
    if (!this.#called && events.length === 1 && events[0]?.type === 'part-delta') return undefined;
    if (!this.#called) this.#look(data, events);
    return this.#legacy ? undefined : this.#mend(data, bytes);
  }

  #look(data: string, events: readonly GenerationEvent[]): void {
    const isCall = (event: GenerationEvent): boolean =>
      event.type === 'part-start' && event.part.type === 'tool-call';
    const named = someCall.test(data);
    this.#called = named || events.some(isCall);
    this.#legacy = this.#called && !named;
  }

  #mend(data: string, bytes: Buffer): Buffer | undefined {
    const word = told.exec(data)?.[3];
    if (word === undefined || word === wordFor(this.#called)) return undefined;
    // Other choices than the first exist in relay alone; nobody knows what they called.
    if (onlyChoice(tryParseObject(data)) === undefined) return undefined;
    const fit = `"finish_reason"$1:$2"${wordFor(this.#called)}"`;
    return Buffer.from(bytes.toString().replace(told, fit));
  }
}

/** The same for a whole answer. */
export function mendedDocument(body: JsonObject): JsonObject | undefined {
  const choice = onlyChoice(body);
  const word = choice?.['finish_reason'];
  if (choice === undefined || (word !== 'stop' && word !== 'tool_calls')) return undefined;
  const message = isObject(choice['message']) ? choice['message'] : {};
  const calls = message['tool_calls'];
  const called = isArray(calls) && calls.length > 0;
  if (word === wordFor(called) || isObject(message['function_call'])) return undefined;
  return { ...body, choices: [{ ...choice, finish_reason: wordFor(called) }] };
}

function wordFor(called: boolean): string {
  return called ? 'tool_calls' : 'stop';
}

function onlyChoice(answer: JsonObject | undefined): JsonObject | undefined {
  const choices: Json | undefined = answer?.['choices'];
  if (!isArray(choices) || choices.length !== 1) return undefined;
  const [choice] = choices;
  return isObject(choice) && (choice['index'] ?? 0) === 0 ? choice : undefined;
}
