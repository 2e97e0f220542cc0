/** Parts of a turn as content blocks (wire/translation.md §3, §5.3, §6). */
import type {
  Conversation,
  Part,
  ReasoningPart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
} from '../../core/conversation.ts';
import type { Notes } from '../../core/notes.ts';
import { placeOf } from '../../core/places.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import { sentToolName, ToolIdMap } from '../tool-ids.ts';
import type { CacheMarks } from './cache-marks.ts';
import { writeCitation } from './citations.ts';
import type { JsonMembers } from './fields.ts';
import { writeMedia } from './request-write-media.ts';
import { isNative, isProof } from './signature.ts';
import { toolInput } from '../tool-arguments.ts';

/** Longer names are refused by the native service (wire/messages.md §5.1). */
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
export interface WrittenResult {
  readonly id: string;
  readonly block: JsonMembers;
}

/** Writes the blocks of one request; state is the ids of its calls. */
export class ContentWriter {
  readonly #writing: Writing;
  readonly #ids = new ToolIdMap();
  #notedReasoning = false;

  constructor(writing: Writing) {
    this.#writing = writing;
  }

  /** The blocks of an assistant turn; empty text and foreign reasoning leave none. */
  assistant(parts: readonly Part[]): readonly JsonMembers[] {
    return parts.flatMap((part) => this.#block(part));
  }

  /** The blocks of a user turn besides its tool results. */
  user(parts: readonly Part[]): readonly JsonMembers[] {
    return parts.flatMap((part) => (part.type === 'tool-result' ? [] : this.#block(part)));
  }

  /** Instructions are text only. */
  system(parts: readonly Part[], wrap: (text: string) => string): readonly JsonMembers[] {
    return parts.flatMap((part) => {
      if (part.type !== 'text') {
        this.#writing.notes.lost(placeOf(part, messages), 'instructions are text only');
        return [];
      }
      return isBlank(part.text) ? [] : [this.#marked(textBlock(wrap(part.text)), part)];
    });
  }

  /** @param blocks of its parts, where they are so many that they were written before. */
  result(part: ToolResultPart, blocks?: readonly JsonMembers[]): WrittenResult {
    const id = this.#ids.result(part.callId);
    const block: JsonMembers = { type: 'tool_result', tool_use_id: id };
    const content = this.#resultContent(part.parts, blocks);
    if (content !== undefined) block['content'] = content;
    if (part.failed) block['is_error'] = true;
    return { id, block: this.#marked(block, part) };
  }

  /** The blocks of some parts of a result. */
  resultBlocks(parts: readonly Part[]): readonly JsonMembers[] {
    return parts.flatMap((part) => {
      if (part.type !== 'media') return this.#block(part);
      const written = writeMedia(part, this.#writing, 'result');
      return [this.#marked(written, part)];
    });
  }

  #resultContent(
    parts: readonly Part[],
    written: readonly JsonMembers[] | undefined,
  ): JsonMembers['content'] {
    const only = parts.length === 1 ? parts[0] : undefined;
    if (only?.type === 'text' && only.cacheUntilHere === undefined) return only.text || undefined;
    const blocks = written ?? this.resultBlocks(parts);
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
        notes.lost(placeOf(part, messages), 'a part that only its own dialect knows');
        return [];
      case 'tool-result':
        notes.lost(placeOf(part, messages), 'a tool result can only stand in a user turn');
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
        placeOf(part, messages),
        'tool arguments that are no JSON object were wrapped',
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
   * Only what a messages server signed or encrypted itself; anything else it would refuse (D1, D2).
   * Text that nobody signed is left out without a word, as every upstream's reasoning is (§5.3).
   */
  #reasoning(part: ReasoningPart): readonly JsonMembers[] {
    if (this.#writing.traits.thinking === 'none') return [];
    if (!isNative(part)) {
      if (isProof(part)) this.#noteForeign(part.broken === true);
      return [];
    }
    if (part.signature === undefined) {
      return [{ type: 'redacted_thinking', data: part.encrypted ?? '' }];
    }
    return [{ type: 'thinking', thinking: part.text, signature: part.signature }];
  }

  /** Once a request: a history may hold hundreds of them. */
  #noteForeign(broken: boolean): void {
    if (this.#notedReasoning) return;
    this.#notedReasoning = true;
    const why = broken
      ? 'reasoning came back changed or incomplete'
      : 'reasoning of another provider is not shown to this one';
    this.#writing.notes.lost(['messages'], why);
  }

  #marked(block: JsonMembers, part: Part): JsonMembers {
    return this.#writing.marks.message(block, part);
  }
}

function textBlock(text: string): JsonMembers {
  return { type: 'text', text };
}

/** The native service refuses text of white space alone (B3). */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}
