/**
 * Turns of a conversation. Results come right behind their calls and before all other parts, whatever
 * neighbouring user messages they were spread over (B5); a system message that stands between a call
 * and its result goes behind the result (A3).
 */
import type { Json, JsonObject, Part, Turn } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { inPlaceOf, placed } from '../../core/places.ts';
import type { Steps } from '../../core/steps.ts';
import { BlockReader, isLong, lengthOf } from './request-read-blocks.ts';
import { isArray } from './fields.ts';
import type { Reading } from './request-reading.ts';

export function* readTurns(messages: Json | undefined, reading: Reading): Steps<readonly Turn[]> {
  const builder = new TurnBuilder();
  const blocks = new BlockReader(reading);
  const all = isArray(messages) ? messages : [];
  for (let i = 0; i < all.length; i += 1) {
    const message = all[i];
    if (!isObject(message)) continue;
    const { content } = message;
    const long = isLong(content);
    if (blocks.pace.dueWith(long ? 1 : lengthOf(content))) yield;
    noteUnknown(message, i, reading);
    const role = roleOf(message['role']);
    const place = { role, path: ['messages', i, 'content'] };
    const parts = long
      ? yield* blocks.readLong(content, place)
      : blocks.readContent(content, place);
    builder.add(placed({ role, parts }, ['messages', i]));
  }
  blocks.finish();
  const turns = builder.finish();
  if (turns.length === 0) reading.refuse(['messages'], 'At least one message must have content.');
  return turns;
}

function roleOf(role: Json | undefined): Turn['role'] {
  return role === 'assistant' || role === 'system' ? role : 'user';
}

function noteUnknown(message: JsonObject, i: number, reading: Reading): void {
  for (const key of Object.keys(message)) {
    if (key === 'role' || key === 'content' || message[key] === null) continue;
    // Instructions stay for good by default.
    if (key === 'clear_at' && message[key] === 'never') continue;
    if (key === 'output_config' && message['role'] === 'system') {
      noteUnknownConfig(message[key], ['messages', i, key], reading);
      continue;
    }
    reading.notes.lost(['messages', i, key], 'this model knows no such field of a message');
  }
}

/** The effort is read with the request's own (request-read-options.ts). */
function noteUnknownConfig(config: Json | undefined, path: FieldPath, { notes }: Reading): void {
  if (!isObject(config)) return;
  for (const [key, value] of Object.entries(config)) {
    if (key === 'effort' || value === null) continue;
    notes.lost([...path, key], 'not known for a single message');
  }
}

class TurnBuilder {
  readonly #turns: Turn[] = [];
  /** Calls of the last assistant turn that have no result yet. */
  readonly #unanswered = new Set<string>();
  /** Position of the user turn that holds the results of these calls. */
  #answers: number | undefined;
  /** What came between a call and its result. */
  #delayed: Turn[] = [];

  add(turn: Turn): void {
    if (turn.parts.length === 0) return;
    if (turn.role === 'assistant') this.#assistant(turn);
    else if (turn.role === 'user') this.#user(turn);
    else this.#append(turn);
  }

  finish(): readonly Turn[] {
    this.#release();
    return this.#turns;
  }

  #assistant(turn: Turn): void {
    this.#release();
    this.#turns.push(turn);
    for (const part of turn.parts) if (part.type === 'tool-call') this.#unanswered.add(part.id);
  }

  #user(turn: Turn): void {
    const results = turn.parts.filter((part) => part.type === 'tool-result');
    if (results.length === 0) return this.#append(turn);
    for (const part of results) this.#unanswered.delete(part.callId);
    const rest = turn.parts.filter((part) => part.type !== 'tool-result');
    const complete = this.#unanswered.size === 0;
    if (this.#answers === undefined && complete && this.#delayed.length === 0) {
      this.#turns.push(inPlaceOf(turn, { role: 'user', parts: [...results, ...rest] }));
      return;
    }
    this.#addResults(results);
    if (rest.length > 0) this.#delayed.push({ role: 'user', parts: rest });
    if (complete) this.#release();
  }

  #addResults(results: readonly Part[]): void {
    const open = this.#answers === undefined ? undefined : this.#turns[this.#answers];
    if (open === undefined || this.#answers === undefined) {
      this.#answers = this.#turns.push({ role: 'user', parts: results }) - 1;
    } else {
      this.#turns[this.#answers] = { role: 'user', parts: [...open.parts, ...results] };
    }
  }

  #append(turn: Turn): void {
    if (this.#unanswered.size > 0) this.#delayed.push(turn);
    else this.#turns.push(turn);
  }

  /** All results are there: what was held back follows them, in the same turn where it can. */
  #release(): void {
    const answers = this.#answers;
    this.#answers = undefined;
    this.#unanswered.clear();
    const delayed = this.#delayed;
    this.#delayed = [];
    for (const turn of delayed) {
      const last = this.#turns.at(-1);
      if (turn.role === 'user' && last !== undefined && this.#turns.length - 1 === answers) {
        this.#turns[this.#turns.length - 1] = {
          role: 'user',
          parts: [...last.parts, ...turn.parts],
        };
      } else {
        this.#turns.push(turn);
      }
    }
  }
}
