/**
 * Turns as messages. Results form one run right behind their calls, in the
 * order of the calls; nothing stands between them, and instructions given in mid-conversation
 * stay at their place, since moving them would change the cached prefix.
 */
import { Buffer } from 'node:buffer';
import type {
  Conversation,
  MediaPart,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../core/conversation.ts';
import {
  type FieldPath,
  type GatewayError,
  invalidRequest,
  unsupported,
} from '../../core/errors.ts';
import { imageTypeOf } from '../shared/body-media.ts';
import { type Notes, pathOf } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import type { JsonObject, JsonMembers } from '../../json/value.ts';
import { ToolIdMap, sentToolName, toolInput } from '../shared/tools.ts';
import type { CacheMarks } from './request-write.ts';
import { isNative, isProof, writeCitation } from './response.ts';

/** A message under construction. */
interface Message {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: JsonMembers[];
}

/** @throws GatewayError `invalid_request` when nothing is left or calls and results do not match. */
export function writeTurns(turns: Conversation['turns'], writing: Writing): readonly Message[] {
  const builder = new MessageBuilder(writing);
  for (const turn of turns) builder.add(turn);
  return builder.finish(pathOf(turns, ['messages']));
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

  constructor(writing: Writing) {
    this.#writing = writing;
    this.#content = new ContentWriter(writing);
  }

  add(turn: Turn): void {
    this.#last = pathOf(turn, ['messages']);
    if (turn.name !== undefined) {
      const path = [...pathOf(turn, ['messages']), 'name'];
      this.#writing.notes.lost(path, 'messages have no name of their author');
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
    const content = this.#content.assistant(turn.parts);
    // Text that follows a call in a turn of its own still belongs before the results.
    const calls = content
      .filter((block) => block['type'] === 'tool_use')
      .map((block) => String(block['id']));
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
    const rest = this.#content.user(turn.parts);
    if (rest.length > 0) this.#delayed.push({ role: 'user', content: [...rest] });
    if (this.#results.size === this.#calls.size) this.#endCalls();
  }

  /** In their order. */
  #resultsOf(parts: readonly Part[]): readonly WrittenResult[] {
    const results: WrittenResult[] = [];
    for (const part of parts) {
      if (part.type !== 'tool-result') continue;
      results.push(this.#content.result(part));
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

  /** Instructions alone are not a question: the last of them becomes one. */
  #endWithUser(): void {
    const last = this.#messages.at(-1);
    if (last === undefined || this.#messages.some(({ role }) => role !== 'system')) return;
    this.#messages[this.#messages.length - 1] = { role: 'user', content: last.content };
    this.#writing.notes.changed(this.#last, 'the last instruction is sent as the user');
  }

  /** A trailing assistant message is continued; it must not end in white space. */
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

// Parts of a turn as content blocks.

/** Longer names are refused by the native service. */
export const maxToolName = 128;

const messages = ['messages'];

export interface Writing {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  readonly marks: CacheMarks;
  /** The tools of the client. */
  readonly tools: Conversation['tools'];
}

/** A result of a call, as a block and with the id of its call. */
interface WrittenResult {
  readonly id: string;
  readonly block: JsonMembers;
}

/** Writes the blocks of one request; state is the ids of its calls. */
class ContentWriter {
  readonly #writing: Writing;
  readonly #ids = new ToolIdMap();
  #notedReasoning = false;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /** The blocks of an assistant turn; empty text and foreign reasoning leave none. */
  assistant(parts: readonly Part[]): readonly JsonMembers[] {
    return parts.flatMap((part) => {
      if (part.type !== 'media') return this.#block(part);
      this.#writing.notes.lost(pathOf(part, messages), 'assistant turns hold text and calls only');
      return [];
    });
  }

  /** The blocks of a user turn besides its tool results. */
  user(parts: readonly Part[]): readonly JsonMembers[] {
    return parts.flatMap((part) => (part.type === 'tool-result' ? [] : this.#block(part)));
  }

  /** Instructions are text only. */
  system(parts: readonly Part[], wrap: (text: string) => string): readonly JsonMembers[] {
    return parts.flatMap((part) => {
      if (part.type !== 'text') {
        this.#writing.notes.lost(pathOf(part, messages), 'instructions are text only');
        return [];
      }
      return isBlank(part.text) ? [] : [this.#marked(textBlock(wrap(part.text)), part)];
    });
  }

  result(part: ToolResultPart): WrittenResult {
    const id = this.#ids.result(part.callId);
    const block: JsonMembers = { type: 'tool_result', tool_use_id: id };
    const content = this.#resultContent(part.parts);
    if (content !== undefined) block['content'] = content;
    if (part.failed) block['is_error'] = true;
    return { id, block: this.#marked(block, part) };
  }

  #resultContent(parts: readonly Part[]): JsonMembers['content'] {
    const only = parts.length === 1 ? parts[0] : undefined;
    if (only?.type === 'text' && only.cacheUntilHere === undefined) return only.text || undefined;
    const blocks = parts.flatMap((part) => {
      if (part.type !== 'media') return this.#block(part);
      const written = writeMedia(part, this.#writing, 'result');
      return [this.#marked(written, part)];
    });
    return blocks.length === 0 ? undefined : blocks;
  }

  #block(part: Part): readonly JsonMembers[] {
    const { notes } = this.#writing;
    switch (part.type) {
      case 'text':
        return isBlank(part.text) ? [] : [this.#marked(this.#text(part), part)];
      case 'refusal':
        return isBlank(part.text) ? [] : [this.#marked(textBlock(part.text), part)];
      case 'media':
        return [this.#marked(writeMedia(part, this.#writing, 'turn'), part)];
      case 'tool-call':
        return [this.#marked(this.#call(part), part)];
      case 'reasoning':
        return this.#reasoning(part);
      case 'opaque':
        if (part.dialect === 'anthropic-messages') return [this.#marked({ ...part.value }, part)];
        notes.lost(pathOf(part, messages), 'a part that only its own dialect knows');
        return [];
      case 'tool-result':
        notes.lost(pathOf(part, messages), 'a tool result can only stand in a user turn');
        return [];
      default:
        return part satisfies never;
    }
  }

  #text(part: TextPart): JsonMembers {
    const block = textBlock(part.text);
    const citations = part.citations?.map(writeCitation).filter((each) => each !== undefined) ?? [];
    if (citations.length > 0) block['citations'] = citations;
    return block;
  }

  #call(part: ToolCallPart): JsonMembers {
    const { input, wrapped } = toolInput(part.argumentsJson);
    if (wrapped) {
      this.#writing.notes.changed(
        pathOf(part, messages),
        'tool arguments that are not a JSON object were wrapped',
      );
    }
    return {
      type: 'tool_use',
      id: this.#ids.call(part.id),
      name: sentToolName(part.name, maxToolName, this.#writing.tools),
      input,
      ...part.extras?.['anthropic-messages'],
    };
  }

  /**
   * Only what a messages server signed or encrypted itself; anything else it would refuse.
   * Unsigned text is left out without a note, as every upstream's reasoning is.
   */
  #reasoning(part: ReasoningPart): readonly JsonMembers[] {
    if (this.#writing.traits.thinking === 'none') return [];
    if (!isNative(part)) {
      if (isProof(part)) this.#noteForeign(part);
      return [];
    }
    if (part.signature === undefined) {
      return [{ type: 'redacted_thinking', data: part.encrypted ?? '' }];
    }
    return [{ type: 'thinking', thinking: part.text, signature: part.signature }];
  }

  /** Once a request: a history may hold hundreds of them. */
  #noteForeign(part: ReasoningPart): void {
    if (this.#notedReasoning) return;
    this.#notedReasoning = true;
    const why =
      part.broken === true
        ? 'reasoning came back changed or incomplete'
        : 'reasoning of another provider is not shown to this one';
    this.#writing.notes.lost(pathOf(part, messages), why);
  }

  #marked(block: JsonMembers, part: Part): JsonMembers {
    return this.#writing.marks.message(block, part);
  }
}

function textBlock(text: string): JsonMembers {
  return { type: 'text', text };
}

/** The native service refuses text of white space alone. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

// Images and documents as blocks.

const imageTypes: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
]);

interface MediaWriting {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/**
 * @param place in a tool result, what the model cannot see becomes a placeholder: agents send
 * screenshots unasked, and a refusal would end their session.
 * @throws GatewayError `invalid_request` for media that the upstream cannot take.
 */
function writeMedia(
  part: MediaPart,
  { traits, notes }: MediaWriting,
  place: 'turn' | 'result',
): JsonMembers {
  const block =
    part.kind === 'image' ? writeImage(part, traits, notes) : writeDocument(part, traits);
  if (block !== undefined) return { ...block, ...part.extras?.['anthropic-messages'] };
  if (place === 'turn') throw refused(part);
  notes.lost(
    pathOf(part, ['messages']),
    `${withArticle(part.kind)} in a tool result that the model cannot see`,
  );
  return { type: 'text', text: `[${part.kind} omitted: the model cannot see it]` };
}

function refused(part: MediaPart): GatewayError {
  return unsupported(
    pathOf(part, ['messages']),
    `This model does not take ${withArticle(part.kind)} of this kind.`,
  );
}

function withArticle(kind: MediaPart['kind']): string {
  return kind === 'document' ? 'a document' : `an ${kind}`;
}

function writeImage(
  part: MediaPart,
  { imageInput }: UpstreamTraits,
  notes: Notes,
): JsonMembers | undefined {
  const { mediaType, source } = part;
  if (imageInput === 'none') return undefined;
  if ('url' in source) {
    if (imageInput === 'base64') return undefined;
    return { type: 'image', source: { type: 'url', url: source.url } };
  }
  if (!('base64' in source)) return undefined;
  const declared = mediaType === 'image/jpg' ? 'image/jpeg' : mediaType;
  if (!imageTypes.has(declared)) return undefined;
  // The service refuses an image under another's name.
  const type = imageTypeOf(source.base64) ?? declared;
  if (type !== declared) {
    notes.changed(pathOf(part, ['messages']), `sent as ${type}, which its bytes are`);
  }
  return { type: 'image', source: { type: 'base64', media_type: type, data: source.base64 } };
}

function writeDocument(part: MediaPart, { fileInput }: UpstreamTraits): JsonMembers | undefined {
  if (part.kind !== 'document' || !fileInput) return undefined;
  const source = documentSource(part);
  if (source === undefined) return undefined;
  return { type: 'document', source, ...(part.name === undefined ? {} : { title: part.name }) };
}

function documentSource({ mediaType, source }: MediaPart): JsonMembers | undefined {
  if ('text' in source) return plainText(source.text);
  if ('url' in source) return { type: 'url', url: source.url };
  if (mediaType === 'application/pdf') {
    return { type: 'base64', media_type: mediaType, data: source.base64 };
  }
  if (!mediaType.startsWith('text/')) return undefined;
  return plainText(Buffer.from(source.base64, 'base64').toString('utf8'));
}

function plainText(data: string): JsonMembers {
  return { type: 'text', media_type: 'text/plain', data };
}

// Turns that the native service paused while its own tools ran (`pause_turn`).

const serverBlock = /._tool_(use|result)$/;

/** A trailing assistant message that ends so is gone on with as it is: it is not a prefill. */
export function isServerBlock({ type }: JsonObject): boolean {
  return typeof type === 'string' && serverBlock.test(type);
}

/** The last turn is one that its upstream paused. */
export function endsPaused(turns: readonly Turn[]): boolean {
  const last = turns.at(-1);
  const part = last?.role === 'assistant' ? last.parts.at(-1) : undefined;
  return part?.type === 'opaque' && isServerBlock(part.value);
}
