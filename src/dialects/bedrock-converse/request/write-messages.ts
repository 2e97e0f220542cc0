/** Writes turns as messages, and their parts as blocks. */
import type {
  Conversation,
  MediaPart,
  Part,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
} from '../../../core/conversation.ts';
import type { Ask } from '../../../core/dialect.ts';
import { unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { JsonMembers } from '../../../json/value.ts';
import type { CacheMarks } from '../../anthropic-messages/request/cache-marks.ts';
import { isNative } from '../../anthropic-messages/answer/response.ts';
import { noteForeignReasoning } from '../../anthropic-messages/request/write-messages.ts';
import {
  type BlockWriter,
  buildMessages,
  isBlank,
  type Message,
  type WrittenResult,
} from '../../shared/request/message-turns.ts';
import { ToolIdMap, sentToolName, toolIdMapFor } from '../../shared/tool-names.ts';
import { toolInput } from '../../shared/request/tools.ts';
import { dialectId, maxToolName } from '../fields.ts';
import { MediaWriter } from './write-media.ts';

export interface MessageWriting {
  readonly ask: Ask;
  readonly notes: Notes;
  readonly marks: CacheMarks;
  /** The tools of the client. */
  readonly tools: Conversation['tools'];
}

const messages = ['messages'];

/** @throws GatewayError `invalid_request` when no message remains, or calls and results do not match. */
export function writeMessages(
  turns: Conversation['turns'],
  writing: MessageWriting,
): readonly Message[] {
  const { ask, notes } = writing;
  const written = buildMessages(turns, new ContentWriter(writing), { traits: ask.traits, notes });
  for (const { role, content } of written) {
    if (role !== 'user' || !content.some((block) => block['document'] !== undefined)) continue;
    if (content.some((block) => block['text'] !== undefined)) continue;
    content.push({ text: 'See the attached document.' });
    notes.changed(pathOf(turns, messages), 'a document needs a text beside it');
  }
  if (written[0]?.role !== 'assistant') return written;
  notes.changed(pathOf(turns, messages), 'the conversation must begin with the user');
  return [{ role: 'user', content: [{ text: 'Begin.' }] }, ...written];
}

/** Writes the blocks of one request. The state is the ids of its calls and the names of its documents. */
class ContentWriter implements BlockWriter {
  readonly #writing: MessageWriting;
  readonly #ids: ToolIdMap;
  readonly #media: MediaWriter;
  /** Media of results. They follow the results in the message of the user. */
  #attached: JsonMembers[] = [];
  #notedReasoning = false;

  constructor(writing: MessageWriting) {
    const { traits } = writing.ask;
    this.#writing = writing;
    this.#ids = toolIdMapFor(traits) ?? new ToolIdMap();
    this.#media = new MediaWriter(traits, writing.notes);
  }

  assistant(parts: readonly Part[]): readonly JsonMembers[] {
    return parts.flatMap((part) => {
      switch (part.type) {
        case 'text':
        case 'refusal':
          return this.#text(part.text, part);
        case 'tool-call':
          return [this.#marked(this.#call(part), part)];
        case 'reasoning':
          return this.#reasoning(part);
        case 'opaque':
          return this.#opaque(part);
        default:
          this.#lost(part, 'assistant turns hold text and calls only');
          return [];
      }
    });
  }

  user(parts: readonly Part[]): readonly JsonMembers[] {
    const attached = this.#attached;
    this.#attached = [];
    const own = parts.flatMap((part) => {
      switch (part.type) {
        case 'tool-result':
          return [];
        case 'text':
          return this.#text(part.text, part);
        case 'media':
          return [this.#marked(this.#shown(part), part)];
        case 'opaque':
          return this.#opaque(part);
        default:
          this.#lost(part, `a ${part.type} has no place in a message of the user`);
          return [];
      }
    });
    return [...attached, ...own];
  }

  system(parts: readonly Part[], wrap: (text: string) => string): readonly JsonMembers[] {
    return parts.flatMap((part) => {
      if (part.type !== 'text') {
        this.#lost(part, 'instructions are text only');
        return [];
      }
      if (isBlank(part.text)) return [];
      this.#writing.notes.changed(pathOf(part, messages), 'told in a message of the user');
      return this.#text(wrap(part.text), part);
    });
  }

  /** The API refuses an empty result, and a cache mark within a result. */
  result(part: ToolResultPart): WrittenResult {
    const { traits } = this.#writing.ask;
    const id = this.#ids.result(part.callId);
    const content = part.parts.flatMap((each) => this.#resultPart(each, id));
    const tells = part.failed && traits.resultStatus !== true;
    if (tells) this.#tellFailure(part, content);
    if (content.length === 0) content.push({ text: '(no output)' });
    const toolResult = {
      toolUseId: id,
      content,
      ...(part.failed && !tells ? { status: 'error' } : {}),
    };
    const inner = part.parts.findLast((each) => each.cacheUntilHere !== undefined);
    const marked = part.cacheUntilHere === undefined && inner !== undefined ? inner : part;
    return { id, block: this.#marked({ toolResult }, marked) };
  }

  callOf({ toolUse }: JsonMembers): string | undefined {
    return toolUse === undefined ? undefined : String((toolUse as JsonMembers)['toolUseId']);
  }

  text(text: string): JsonMembers {
    return { text };
  }

  continuesTurn(): boolean {
    return false;
  }

  #tellFailure(part: ToolResultPart, content: JsonMembers[]): void {
    const first = content.find((block) => typeof block['text'] === 'string');
    const text = String(first?.['text'] ?? '');
    if (!text.startsWith('Error: ')) {
      if (first === undefined) content.unshift({ text: 'Error: (no output)' });
      else first['text'] = `Error: ${text}`;
    }
    this.#writing.notes.changed(
      pathOf(part, messages),
      'the model is told in words that it failed',
    );
  }

  #resultPart(part: Part, id: string): readonly JsonMembers[] {
    if (part.type === 'text') return isBlank(part.text) ? [] : [{ text: part.text }];
    if (part.type !== 'media') {
      this.#lost(part, 'not known to the model');
      return [];
    }
    const written = this.#media.write(part);
    if (written === undefined) {
      // Agents send screenshots of their own accord. A refusal would end their session.
      this.#lost(part, `the ${part.kind} of a result is left out, the model cannot see it`);
      return [{ text: `[${part.kind} omitted: the model cannot see it]` }];
    }
    if (this.#writing.ask.traits.toolResultMedia) return [written];
    this.#writing.notes.changed(pathOf(part, messages), 'shown behind the result');
    const number = this.#attached.length / 2 + 1;
    this.#attached.push({ text: `File ${number} from tool result ${id}:` }, written);
    return [{ text: `[file ${number} attached below]` }];
  }

  /** @throws GatewayError `invalid_request` for a medium that the model cannot read. */
  #shown(part: MediaPart): JsonMembers {
    const written = this.#media.write(part);
    if (written !== undefined) return written;
    throw unsupported(
      pathOf(part, messages),
      `This model does not take ${part.kind === 'document' ? 'a document' : `an ${part.kind}`} of this kind.`,
    );
  }

  #text(text: string, part: Part): readonly JsonMembers[] {
    return isBlank(text) ? [] : [this.#marked({ text }, part)];
  }

  #call(part: ToolCallPart): JsonMembers {
    const { input, wrapped } = toolInput(part.argumentsJson);
    if (wrapped) {
      const why = 'tool arguments that are not a JSON object were wrapped';
      this.#writing.notes.changed(pathOf(part, messages), why);
    }
    const name = sentToolName(part.name, maxToolName, this.#writing.tools);
    return { toolUse: { toolUseId: this.#ids.call(part.id), name, input } };
  }

  /** Reasoning that Claude signed, on any server. Reasoning without a signature is omitted, as for every upstream. */
  #reasoning(part: ReasoningPart): readonly JsonMembers[] {
    const { thinking, historyReasoning } = this.#writing.ask.traits;
    const { text, signature, encrypted = '', broken } = part;
    if (thinking === 'none' || historyReasoning === false || !isNative(part)) {
      if (broken === true || (signature ?? encrypted) !== '') this.#noteForeign(part);
      return [];
    }
    if (signature === undefined) return [{ reasoningContent: { redactedContent: encrypted } }];
    return [{ reasoningContent: { reasoningText: { text, signature } } }];
  }

  /** Noted once a request, since a history may have hundreds of them. */
  #noteForeign(part: ReasoningPart): void {
    if (this.#notedReasoning) return;
    this.#notedReasoning = true;
    noteForeignReasoning(part, this.#writing.notes);
  }

  #opaque(part: Extract<Part, { readonly type: 'opaque' }>): readonly JsonMembers[] {
    if (part.dialect === dialectId) return [this.#marked({ ...part.value }, part)];
    this.#lost(part, 'a part that only its own dialect knows');
    return [];
  }

  #lost(part: Part, why: string): void {
    this.#writing.notes.lost(pathOf(part, messages), why);
  }

  #marked(block: JsonMembers, part: Part): JsonMembers {
    return this.#writing.marks.message(block, part);
  }
}
