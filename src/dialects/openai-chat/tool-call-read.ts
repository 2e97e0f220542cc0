/** One tool call of a message or delta, in the spellings that servers use. */
import { createHash } from 'node:crypto';
import type { Json, JsonObject } from '../../core/conversation.ts';
import { isObject } from '../../core/json.ts';

export interface SeenCall {
  readonly index: number | undefined;
  /** `''` when the server sends none (here). */
  readonly id: string;
  readonly name: string;
  /** The arguments, or a fragment of them. */
  readonly arguments: string;
  /** A `custom` call: `arguments` is free text, not JSON. */
  readonly freeText: boolean;
  /** Fields that only this dialect knows: Gemini keeps its thought signature here. */
  readonly extras: JsonObject | undefined;
}

export function readCall(value: JsonObject): SeenCall {
  const { index, id, custom } = value;
  const freeText = isObject(custom);
  const called = freeText ? custom : value['function'];
  const name = isObject(called) ? called['name'] : undefined;
  const given = isObject(called) ? called[freeText ? 'input' : 'arguments'] : undefined;
  const extra = value['extra_content'];
  return {
    index: typeof index === 'number' && Number.isInteger(index) ? index : undefined,
    id: typeof id === 'string' ? id : '',
    name: typeof name === 'string' ? name : '',
    arguments: readArguments(given),
    freeText,
    extras: isObject(extra) ? { extra_content: extra } : undefined,
  };
}

/** Some engines send the arguments as an object or another value (B10). */
export function readArguments(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** What makes an answer's calls different from those of other answers. */
export interface AnswerIdentity {
  readonly id: Json | undefined;
  readonly created: Json | undefined;
}

/**
 * An id for a call that came without one: the same for the same answer, another for every other
 * answer and place (B6).
 */
export function derivedCallId(answer: AnswerIdentity, place: number): string {
  const seed = JSON.stringify([answer.id ?? null, answer.created ?? null, place]);
  return `call_${createHash('sha256').update(seed).digest('hex').slice(0, 24)}`;
}
