/** Writes turns as messages of content blocks. */
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
} from '../../../core/conversation.ts';
import { type GatewayError, unsupported } from '../../../core/errors.ts';
import { imageTypeOf } from '../../shared/body/body-media.ts';
import {
  type BlockWriter,
  buildMessages,
  isBlank,
  type Message,
  type WrittenResult,
} from '../../shared/request/message-turns.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonObject, JsonMembers } from '../../../json/value.ts';
import { ToolIdMap, sentToolName } from '../../shared/tool-names.ts';
import { toolInput } from '../../shared/request/tools.ts';
import type { CacheMarks } from './cache-marks.ts';
import { isNative, isProof, writeCitation } from '../answer/response.ts';

/** @throws GatewayError `invalid_request` when no message remains, or calls and results do not match. */
export function writeTurns(turns: Conversation['turns'], writing: Writing): readonly Message[] {
  return buildMessages(turns, new ContentWriter(writing), writing);
}

// Parts of a turn as content blocks.

/** The native service refuses longer names. */
export const maxToolName = 128;

const messages = ['messages'];

export interface Writing {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  readonly marks: CacheMarks;
  /** The tools of the client. */
  readonly tools: Conversation['tools'];
}

/** Writes the blocks of one request. The state is the ids of its calls. */
class ContentWriter implements BlockWriter {
  readonly #writing: Writing;
  readonly #ids = new ToolIdMap();
  #notedReasoning = false;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /** The blocks of an assistant turn, without empty texts and foreign reasoning. */
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

  callOf(block: JsonMembers): string | undefined {
    return block['type'] === 'tool_use' ? String(block['id']) : undefined;
  }

  text(text: string): JsonMembers {
    return textBlock(text);
  }

  continuesTurn(block: JsonMembers): boolean {
    return isServerBlock(block);
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
        return isBlank(part.text) ? [] : [this.#marked(this.#cited(part), part)];
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

  #cited(part: TextPart): JsonMembers {
    const block = textBlock(part.text);
    const citations = (part.citations ?? [])
      .map((each) => writeCitation(each))
      .filter((each) => each !== undefined);
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
   * Only reasoning that a messages server signed or encrypted. It would refuse any other.
   * Unsigned text is omitted without a note, as every upstream's reasoning is.
   */
  #reasoning(part: ReasoningPart): readonly JsonMembers[] {
    if (this.#writing.traits.thinking === 'none') return [];
    if (!isNative(part)) {
      if (isProof(part)) this.#noteForeign(part);
      return [];
    }
    return [nativeThinking(part)];
  }

  /** Noted once a request, since a history may have hundreds of them. */
  #noteForeign(part: ReasoningPart): void {
    if (this.#notedReasoning) return;
    this.#notedReasoning = true;
    noteForeignReasoning(part, this.#writing.notes);
  }

  #marked(block: JsonMembers, part: Part): JsonMembers {
    return this.#writing.marks.message(block, part);
  }
}

export function noteForeignReasoning(part: ReasoningPart, notes: Notes): void {
  notes.lost(pathOf(part, messages), whyForeign(part));
}

/** Why reasoning that no server of Claude signed is left out. */
export function whyForeign(part: ReasoningPart | undefined): string {
  return part?.broken === true
    ? 'reasoning came back changed or incomplete'
    : 'reasoning of another provider is not shown to this one';
}

function textBlock(text: string): JsonMembers {
  return { type: 'text', text };
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
 * @param within in a tool result, what the model cannot see becomes a placeholder: agents send
 * screenshots of their own accord, and a refusal would end their session.
 * @throws GatewayError `invalid_request` for media that the upstream cannot take.
 */
function writeMedia(
  part: MediaPart,
  { traits, notes }: MediaWriting,
  within: 'turn' | 'result',
): JsonMembers {
  const block =
    part.kind === 'image' ? writeImage(part, traits, notes) : writeDocument(part, traits);
  if (block !== undefined) return { ...block, ...part.extras?.['anthropic-messages'] };
  if (within === 'turn') throw refused(part);
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
  // The service refuses an image whose bytes have another format than the declared one.
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
  return {
    type: 'document',
    source,
    ...(part.name === undefined ? {} : { title: part.name }),
    ...(part.citedAs === undefined ? {} : { citations: { enabled: true } }),
  };
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

/** A trailing assistant message that ends so is continued as it is: it is not a prefill. */
export function isServerBlock({ type }: JsonObject): boolean {
  return typeof type === 'string' && serverBlock.test(type);
}

/** The last turn is one that its upstream paused. */
export function endsPaused(turns: readonly Turn[]): boolean {
  const last = turns.at(-1);
  const part = last?.role === 'assistant' ? last.parts.at(-1) : undefined;
  return part?.type === 'opaque' && isServerBlock(part.value);
}

/** The block of reasoning that a server of Claude signed or encrypted (`isNative`). */
export function nativeThinking({ text, signature, encrypted }: ReasoningPart): JsonObject {
  return signature === undefined
    ? { type: 'redacted_thinking', data: encrypted ?? '' }
    : { type: 'thinking', thinking: text, signature };
}
