/**
 * Numbers the tool calls of a relayed stream whose server leaves the numbers out (Mistral): both
 * official clients fail on a call without an index (wire/chat-completions.md §8.3).
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { isObject, tryParseObject } from '../../core/json.ts';
import { isArray } from './fields.ts';

const callsKey = '"tool_calls"';

/** State of one stream. */
export class CallIndexes {
  /** Ids of the calls so far; a place without an id holds `''`. */
  readonly #ids: string[] = [];
  /** A call had its index: this server numbers them. */
  #numbered = false;

  /** The frame with its calls numbered, or undefined when it is fine as it is. */
  apply(data: string): Buffer | undefined {
    if (this.#numbered || !data.includes(callsKey)) return undefined;
    const chunk = tryParseObject(data);
    const choices = chunk?.['choices'];
    const choice = isArray(choices) ? choices[0] : undefined;
    const delta = isObject(choice) ? choice['delta'] : undefined;
    const calls = isObject(delta) ? delta['tool_calls'] : undefined;
    if (!isObject(choice) || !isObject(delta) || !isArray(calls) || calls.length === 0) {
      return undefined;
    }
    if (calls.some((call) => isObject(call) && typeof call['index'] === 'number')) {
      this.#numbered = true;
      return undefined;
    }
    const numbered = { ...delta, tool_calls: calls.map((call) => this.#number(call)) };
    const edited = { ...chunk, choices: [{ ...choice, delta: numbered }] };
    return Buffer.from(`data: ${JSON.stringify(edited)}\n\n`);
  }

  #number(call: Json): Json {
    if (!isObject(call)) return call;
    const index = this.#indexOf(call);
    const isNew = index === this.#ids.length;
    if (isNew) this.#ids.push(typeof call['id'] === 'string' ? call['id'] : '');
    return { index, ...(isNew ? { type: 'function' } : {}), ...call };
  }

  /** By id, else a call with a name is a new one, and a fragment belongs to the latest. */
  #indexOf(call: JsonObject): number {
    const { id, function: called } = call;
    if (typeof id === 'string' && id !== '') {
      const known = this.#ids.indexOf(id);
      return known === -1 ? this.#ids.length : known;
    }
    const named = isObject(called) && typeof called['name'] === 'string' && called['name'] !== '';
    return named || this.#ids.length === 0 ? this.#ids.length : this.#ids.length - 1;
  }
}
