/**
 * Turns as messages of APIs that have results of tools in turns of the user. Results form one run right after their calls,
 * in the order of the calls; nothing is between them, and instructions given in mid-conversation stay at their position,
 * since moving them would change the cached prefix.
 */
import type {
  Conversation,
  Part,
  ToolResultPart,
  Turn,
  MediaPart,
} from '../../../core/conversation.ts';
import { type FieldPath, invalidRequest } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonMembers } from '../../../json/value.ts';

/** A message under construction. */
export interface Message {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: JsonMembers[];
}

/** A result of a call, as a block and with the id of its call. */
export interface WrittenResult {
  readonly id: string;
  readonly block: JsonMembers;
}

/** How a dialect writes the parts of turns as blocks. */
export interface BlockWriter {
  /** The blocks of an assistant turn, without empty texts and foreign reasoning. */
  assistant(parts: readonly Part[]): readonly JsonMembers[];
  /** The blocks of a user turn besides its tool results. */
  user(parts: readonly Part[]): readonly JsonMembers[];
  /** @param wrap writes an instruction as text */
  system(parts: readonly Part[], wrap: (text: string) => string): readonly JsonMembers[];
  result(part: ToolResultPart): WrittenResult;
  /** The sent id of a call block; undefined for any other block. */
  callOf(block: JsonMembers): string | undefined;
  /** A text block with the text in its member `text`. */
  text(text: string): JsonMembers;
  /** Whether a trailing assistant message that ends with this block is a paused turn, which is sent unchanged. */
  continuesTurn(block: JsonMembers): boolean;
}

interface Setting {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/** @throws GatewayError `invalid_request` when no message remains, or calls and results do not match. */
export function buildMessages(
  turns: Conversation['turns'],
  blocks: BlockWriter,
  setting: Setting,
): readonly Message[] {
  const builder = new MessageBuilder(blocks, setting);
  for (const turn of turns) builder.add(turn);
  return builder.finish(pathOf(turns, ['messages']));
}

class MessageBuilder {
  readonly #setting: Setting;
  readonly #blocks: BlockWriter;
  readonly #messages: Message[] = [];
  /** The path of the last turn in the client's request. */
  #last: FieldPath = ['messages'];
  /** Ids of the calls of the last assistant message, in order. */
  #calls: ReadonlySet<string> = new Set();
  readonly #results = new Map<string, JsonMembers>();
  /** What is between a call and its result in the history: it goes after the results. */
  #delayed: Message[] = [];

  constructor(blocks: BlockWriter, setting: Setting) {
    this.#blocks = blocks;
    this.#setting = setting;
  }

  add(turn: Turn): void {
    this.#last = pathOf(turn, ['messages']);
    if (turn.name !== undefined) {
      const path = [...pathOf(turn, ['messages']), 'name'];
      this.#setting.notes.lost(path, 'messages have no name of their author');
    }
    if (turn.role === 'assistant') this.#assistant(turn);
    else if (turn.role === 'user') this.#user(turn);
    else this.#system(turn);
  }

  /** @param path of all messages in the client's request. */
  finish(path: FieldPath): readonly Message[] {
    this.#endCalls();
    this.#endWithUser();
    if (this.#messages.length === 0) {
      throw invalidRequest('At least one message must have content.', path);
    }
    this.#trimPrefill();
    return this.#messages;
  }

  #assistant(turn: Turn): void {
    const content = this.#blocks.assistant(turn.parts);
    // Text that follows a call in a turn of its own still belongs before the results.
    const calls = content
      .map((block) => this.#blocks.callOf(block))
      .filter((id) => id !== undefined);
    const continues = this.#messages.at(-1)?.role === 'assistant' && this.#delayed.length === 0;
    if (!continues || this.#results.size > 0) this.#endCalls();
    this.#append({ role: 'assistant', content: [...content] });
    this.#calls = new Set(continues ? [...this.#calls, ...calls] : calls);
  }

  #user(turn: Turn): void {
    const results = this.#resultsOf(turn.parts);
    for (const { id, block } of results) {
      if (!this.#calls.has(id) || this.#results.has(id)) {
        throw invalidRequest('A tool result does not answer a call before it.', ['messages']);
      }
      this.#results.set(id, block);
    }
    const rest = this.#blocks.user(turn.parts);
    if (rest.length > 0) this.#delayed.push({ role: 'user', content: [...rest] });
    if (this.#results.size === this.#calls.size) this.#endCalls();
  }

  /** In their order. */
  #resultsOf(parts: readonly Part[]): readonly WrittenResult[] {
    const results: WrittenResult[] = [];
    for (const part of parts) {
      if (part.type !== 'tool-result') continue;
      results.push(this.#blocks.result(part));
    }
    return results;
  }

  #system(turn: Turn): void {
    const native = this.#setting.traits.systemAnywhere;
    const wrap = native ? plain : tagged;
    const content = this.#blocks.system(turn.parts, wrap);
    if (content.length === 0) return;
    this.#delayed.push({ role: native ? 'system' : 'user', content: [...content] });
    if (this.#results.size === this.#calls.size) this.#endCalls();
  }

  /** Writes the results of the last calls, then the delayed messages. */
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

  /** Consecutive turns of one role are one message. */
  #append(message: Message): void {
    const last = this.#messages.at(-1);
    if (message.content.length === 0) return;
    if (last?.role === message.role) last.content.push(...message.content);
    else this.#messages.push(message);
  }

  /** A request with only instructions has no question, so the last instruction becomes one. */
  #endWithUser(): void {
    const last = this.#messages.at(-1);
    if (last === undefined || this.#messages.some(({ role }) => role !== 'system')) return;
    this.#messages[this.#messages.length - 1] = { role: 'user', content: last.content };
    this.#setting.notes.changed(this.#last, 'the last instruction is sent as the user');
  }

  /** A trailing assistant message is continued; it must not end in white space. */
  #trimPrefill(): void {
    const last = this.#messages.at(-1);
    if (last?.role !== 'assistant') return;
    const block = last.content.at(-1);
    // A paused turn is sent unchanged.
    if (block !== undefined && this.#blocks.continuesTurn(block)) return;
    if (!this.#setting.traits.prefill) {
      this.#messages.push({ role: 'user', content: [this.#blocks.text('Continue.')] });
      this.#setting.notes.changed(this.#last, 'the model is asked to continue its last message');
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

/** Whether a text is white space only, which the services refuse. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** A plain-text document below a line with its title and context. */
export function documentText(part: MediaPart, text: string): string {
  const context = part.extras?.['anthropic-messages']?.['context'];
  const head = [part.name, typeof context === 'string' ? context : undefined]
    .filter((line) => line !== undefined && line !== '')
    .join(' — ');
  return head === '' ? text : `${head}\n\n${text}`;
}

/** For models that demand a signature with each call: a call of another model gets a stand-in. */
export const fillerNote = 'tool calls of another model are sent without a signature';
