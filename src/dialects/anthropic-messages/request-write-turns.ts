/**
 * Turns as messages (wire/translation.md §3). Results form one run right behind their calls, in the
 * order of the calls (B4, B5); nothing stands between them, and instructions given in mid-conversation
 * stay at their place, since moving them would change the cached prefix (A2, A3).
 */
import type { Conversation, Part, Turn } from '../../core/conversation.ts';
import { type FieldPath, invalidRequest } from '../../core/errors.ts';
import { placeOf } from '../../core/places.ts';
import { Pace, perStep, type Steps } from '../../core/steps.ts';
import { isServerBlock } from './paused-turn.ts';
import {
  ContentWriter,
  isBlank,
  type Writing,
  type WrittenResult,
} from './request-write-blocks.ts';
import type { JsonMembers } from './fields.ts';

/** A message under construction. */
export interface Message {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: JsonMembers[];
}

/** @throws GatewayError `invalid_request` when nothing is left or calls and results do not match. */
export function* writeTurns(
  turns: Conversation['turns'],
  writing: Writing,
): Steps<readonly Message[]> {
  const builder = new MessageBuilder(writing);
  for (const turn of turns) yield* builder.add(turn);
  return builder.finish();
}

class MessageBuilder {
  readonly #writing: Writing;
  readonly #content: ContentWriter;
  readonly #messages: Message[] = [];
  /** Where the last turn stood in the client's request. */
  #last: FieldPath = ['messages'];
  /** Ids of the calls of the last assistant message, in order. */
  #calls: ReadonlySet<string> = new Set();
  readonly #results = new Map<string, JsonMembers>();
  /** What stands between a call and its result in the history: it goes behind the results. */
  #delayed: Message[] = [];
  readonly #pace = new Pace();

  constructor(writing: Writing) {
    this.#writing = writing;
    this.#content = new ContentWriter(writing);
  }

  *add(turn: Turn): Steps<void> {
    if (this.#pace.due) yield;
    this.#last = placeOf(turn, ['messages']);
    if (turn.name !== undefined) {
      const path = [...placeOf(turn, ['messages']), 'name'];
      this.#writing.notes.lost(path, 'messages have no name of their author');
    }
    if (turn.role === 'assistant') yield* this.#assistant(turn);
    else if (turn.role === 'user') yield* this.#user(turn);
    else this.#system(turn);
  }

  finish(): readonly Message[] {
    this.#endCalls();
    this.#endWithUser();
    if (this.#messages.length === 0) {
      throw invalidRequest('At least one message must have content.', ['messages']);
    }
    this.#trimPrefill();
    return this.#messages;
  }

  /** What becomes of the parts, some of them after the other. */
  *#inSteps<T>(
    parts: readonly Part[],
    write: (some: readonly Part[]) => readonly T[],
  ): Steps<readonly T[]> {
    const written: T[] = [];
    let from = 0;
    for (const [i, part] of parts.entries()) {
      const pieces = part.type === 'tool-result' ? 1 + part.parts.length : 1;
      if (!this.#pace.dueWith(pieces)) continue;
      written.push(...write(parts.slice(from, i + 1)));
      from = i + 1;
      yield;
    }
    if (from === 0) return write(parts);
    written.push(...write(parts.slice(from)));
    return written;
  }

  *#assistant(turn: Turn): Steps<void> {
    const content = yield* this.#inSteps(turn.parts, (some) => this.#content.assistant(some));
    // Text that follows a call in a turn of its own still belongs before the results.
    const calls = content
      .filter((block) => block['type'] === 'tool_use')
      .map((block) => String(block['id']));
    const continues = this.#messages.at(-1)?.role === 'assistant' && this.#delayed.length === 0;
    if (!continues || this.#results.size > 0) this.#endCalls();
    this.#append({ role: 'assistant', content: [...content] });
    this.#calls = new Set(continues ? [...this.#calls, ...calls] : calls);
  }

  *#user(turn: Turn): Steps<void> {
    const results = yield* this.#resultsOf(turn.parts);
    for (const { id, block } of results) {
      if (!this.#calls.has(id) || this.#results.has(id)) {
        throw invalidRequest('A tool result does not answer a call before it.', ['messages']);
      }
      this.#results.set(id, block);
    }
    const rest = yield* this.#inSteps(turn.parts, (some) => this.#content.user(some));
    if (rest.length > 0) this.#delayed.push({ role: 'user', content: [...rest] });
    if (this.#results.size === this.#calls.size) this.#endCalls();
  }

  /** In their order. */
  *#resultsOf(parts: readonly Part[]): Steps<readonly WrittenResult[]> {
    const results: WrittenResult[] = [];
    for (const part of parts) {
      if (part.type !== 'tool-result') continue;
      let blocks: readonly JsonMembers[] | undefined;
      if (part.parts.length > perStep) {
        blocks = yield* this.#inSteps(part.parts, (some) => this.#content.resultBlocks(some));
      } else if (this.#pace.dueWith(1 + part.parts.length)) yield;
      results.push(this.#content.result(part, blocks));
    }
    return results;
  }

  #system(turn: Turn): void {
    const native = this.#writing.traits.systemAnywhere;
    const wrap = native ? plain : tagged;
    const content = this.#content.system(turn.parts, wrap);
    if (content.length === 0) return;
    this.#delayed.push({ role: native ? 'system' : 'user', content: [...content] });
    if (this.#results.size === this.#calls.size) this.#endCalls();
  }

  /** Writes the results of the last calls, and then what had to wait for them. */
  #endCalls(): void {
    const results = [...this.#calls].map((id) => this.#results.get(id));
    if (results.includes(undefined)) {
      throw invalidRequest('A tool call has no result in the turn behind it.', ['messages']);
    }
    const content = results.filter((block) => block !== undefined);
    if (content.length > 0) this.#append({ role: 'user', content });
    this.#calls = new Set();
    this.#results.clear();
    const delayed = this.#delayed;
    this.#delayed = [];
    for (const message of delayed) this.#append(message);
  }

  /** Neighbours of one role are one message. */
  #append(message: Message): void {
    const last = this.#messages.at(-1);
    if (message.content.length === 0) return;
    if (last?.role === message.role) last.content.push(...message.content);
    else this.#messages.push(message);
  }

  /** Instructions alone are no question: the last of them becomes one. */
  #endWithUser(): void {
    const last = this.#messages.at(-1);
    if (last === undefined || this.#messages.some(({ role }) => role !== 'system')) return;
    this.#messages[this.#messages.length - 1] = { role: 'user', content: last.content };
    this.#writing.notes.changed(['messages'], 'the last instruction is sent as the user');
  }

  /** A trailing assistant message is continued; it must not end in white space (§3.4). */
  #trimPrefill(): void {
    const last = this.#messages.at(-1);
    if (last?.role !== 'assistant') return;
    const block = last.content.at(-1);
    // A paused turn goes on where it stands.
    if (block !== undefined && isServerBlock(block)) return;
    if (!this.#writing.traits.prefill) {
      this.#messages.push({ role: 'user', content: [{ type: 'text', text: 'Continue.' }] });
      this.#writing.notes.changed(this.#last, 'the model is asked to continue its last message');
      return;
    }
    const text = block?.['text'];
    if (block !== undefined && typeof text === 'string' && !isBlank(text)) {
      block['text'] = text.trimEnd();
    }
  }
}

function plain(text: string): string {
  return text;
}

function tagged(text: string): string {
  return `<system>${text}</system>`;
}
