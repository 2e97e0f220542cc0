/** Writes turns as items: messages, calls and their results, and reasoning before the item that it belongs to. */
import type {
  Conversation,
  MediaPart,
  Part,
  ReasoningPart,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../core/conversation.ts';
import { type FieldPath, invalidRequest, unsupported } from '../../../core/errors.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import { type JsonObject, type JsonMembers, textOf } from '../../../json/value.ts';
import { responsesFormat } from '../../openai-chat/reasoning.ts';
import { taggedInstructions, taggedNote } from '../../shared/request/instructions.ts';
import { documentText } from '../../shared/request/message-turns.ts';
import { imageDetail } from '../../shared/request/responses-fields.ts';
import { sentToolName, ToolIdMap, toolIdMapFor } from '../../shared/tool-names.ts';
import {
  callItems,
  callMembers,
  dialectId,
  idPrefixes,
  isCallKind,
  isItemId,
  itemExtras,
  type CallKind,
} from '../items.ts';
import { maxToolName } from './write-tools.ts';

interface ItemWriting {
  readonly conversation: Conversation;
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
  /** The provider that gets the request. */
  readonly provider: string | undefined;
}

interface PositionedTurn {
  readonly turn: Turn;
  readonly path: FieldPath;
}

/**
 * Writes the input of one request. The state is the ids of its calls, and the last part that can carry a cache mark.
 */
export class ItemWriter {
  readonly written: JsonMembers[] = [];
  readonly #writing: ItemWriting;
  readonly #ids: ToolIdMap;
  /** The kind of each call so far, by the client's id. It decides the type of the result. */
  readonly #kinds = new Map<string, CallKind>();
  /** The calls of the last assistant turn, in their order. */
  #calls: readonly string[] = [];
  /** The last part that can carry a cache mark. */
  #markable: JsonMembers | undefined;
  #notedReasoning = false;

  constructor(writing: ItemWriting) {
    this.#writing = writing;
    this.#ids = toolIdMapFor(writing.traits) ?? new ToolIdMap();
  }

  /** Writes the instructions as the first message. Its parts are not joined, since they carry cache marks. */
  instructions(parts: readonly Part[], instruction: string | undefined): void {
    const content = this.#instructionParts(parts, ['system']);
    if (instruction !== undefined) content.push({ type: 'input_text', text: instruction });
    this.#message(this.#writing.traits.systemRole, content);
  }

  /** @throws GatewayError `invalid_request` when no turn has content for this upstream. */
  turns(turns: readonly Turn[]): void {
    let run: PositionedTurn[] = [];
    for (const [i, turn] of turns.entries()) {
      const path = pathOf(turn, ['messages', i]);
      if (turn.name !== undefined) {
        this.#writing.notes.lost([...path, 'name'], 'messages have no author here');
      }
      if (turn.role !== 'assistant') {
        run.push({ turn, path });
        continue;
      }
      this.#run(run);
      run = [];
      this.#assistant(turn, path);
    }
    this.#run(run);
    if (this.written.length === 0) {
      throw invalidRequest('At least one message must have content.', pathOf(turns, ['messages']));
    }
    const last = turns.at(-1);
    if (last?.role === 'assistant' && this.#calls.length === 0) {
      this.#writing.notes.changed(
        pathOf(last, ['messages', turns.length - 1]),
        'the model answers the last assistant turn instead of continuing it',
      );
    }
  }

  /** Everything between two assistant turns: all results first, in the order of their calls. */
  #run(run: readonly PositionedTurn[]): void {
    const results = run.flatMap(({ turn, path }) =>
      turn.parts.flatMap((part, j) =>
        part.type === 'tool-result' ? [{ part, path: pathOf(part, [...path, 'content', j]) }] : [],
      ),
    );
    const indexes = new Map(this.#calls.map((id, index) => [id, index]));
    const order = (id: string): number => indexes.get(id) ?? -1;
    results.sort((a, b) => order(a.part.callId) - order(b.part.callId));
    for (const { part, path } of results) this.#result(part, path);
    for (const { turn, path } of run) {
      if (turn.role === 'system') this.#laterInstructions(turn, path);
      else this.#message('user', this.#userParts(turn, path));
    }
  }

  #message(role: string, content: readonly JsonObject[]): void {
    if (content.length > 0) this.written.push({ type: 'message', role, content });
  }

  #laterInstructions(turn: Turn, path: FieldPath): void {
    const { traits, notes } = this.#writing;
    const parts = this.#instructionParts(turn.parts, path);
    if (parts.length === 0 || traits.systemAnywhere) {
      this.#message(traits.systemRole, parts);
      return;
    }
    notes.changed(path, taggedNote);
    const text = taggedInstructions(parts.map((part) => textOf(part['text'])));
    this.#message('user', [{ type: 'input_text', text }]);
  }

  #instructionParts(parts: readonly Part[], path: FieldPath): JsonMembers[] {
    return parts.flatMap((part, j) => {
      if (part.type !== 'text') {
        this.#writing.notes.lost([...path, j], 'instructions are text only');
        return [];
      }
      return isBlank(part.text)
        ? []
        : [this.#marked({ type: 'input_text', text: part.text }, part)];
    });
  }

  #userParts(turn: Turn, path: FieldPath): JsonMembers[] {
    return turn.parts.flatMap((part, j) => {
      const where = pathOf(part, [...path, 'content', j]);
      switch (part.type) {
        case 'tool-result':
          return [];
        case 'text':
          if (isBlank(part.text)) return [];
          return [this.#marked({ type: 'input_text', text: part.text }, part)];
        case 'media':
          return [this.#marked(this.#media(part, where), part)];
        default:
          this.#writing.notes.lost(where, `a ${part.type} has no place in a message of the user`);
          return [];
      }
    });
  }

  /** @throws GatewayError `invalid_request` for a medium that the upstream cannot read. */
  #media(part: MediaPart, path: FieldPath): JsonMembers {
    const written = writeMedia(part, this.#writing.traits);
    if (written !== undefined) return written;
    throw unsupported(path, `This model does not take this kind of ${part.kind}.`);
  }

  // Assistant turns.

  /** Reasoning waits for the next item of its turn: the service refuses reasoning without one. */
  #assistant(turn: Turn, path: FieldPath): void {
    let waiting: JsonObject[] = [];
    let texts: JsonMembers[] = [];
    let phase: string | undefined;
    const calls: string[] = [];
    const push = (item: JsonMembers): void => {
      this.written.push(...waiting, item);
      waiting = [];
    };
    const flush = (): void => {
      if (texts.some((part) => !isBlank(textOf(part['text'] ?? part['refusal'])))) {
        const given = phase === undefined ? {} : { phase };
        push({ type: 'message', role: 'assistant', content: texts, ...given });
      }
      texts = [];
      phase = undefined;
    };
    turn.parts.forEach((part, j) => {
      const where = pathOf(part, [...path, 'content', j]);
      switch (part.type) {
        case 'text':
        case 'refusal': {
          const own = itemExtras(part)['phase'];
          if (typeof own === 'string') flush();
          phase = typeof own === 'string' ? own : phase;
          if (part.text !== '') texts.push(assistantPart(part.type, part.text));
          this.#mark(part);
          return;
        }
        case 'tool-call':
          flush();
          push(this.#call(part));
          this.#mark(part);
          calls.push(part.id);
          return;
        case 'reasoning': {
          flush();
          const item = this.#reasoning(part, where);
          if (item !== undefined) waiting.push(item);
          return;
        }
        case 'opaque':
          flush();
          if (part.dialect === dialectId) push({ ...part.value });
          else this.#writing.notes.lost(where, 'a part that only its own dialect knows');
          return;
        default:
          this.#writing.notes.lost(where, 'assistant turns hold text and calls only');
      }
    });
    flush();
    this.#calls = calls;
  }

  #call(part: ToolCallPart): JsonMembers {
    const { tools } = this.#writing.conversation;
    const { kind: given, namespace } = itemExtras(part);
    const kind = isCallKind(given) ? given : this.#isFreeText(part.name) ? 'custom' : 'function';
    const members = callMembers(kind, part.argumentsJson);
    const own = members === undefined ? 'function' : kind;
    this.#kinds.set(part.id, own);
    const named = own === 'function' || own === 'custom';
    return {
      type: callItems[own].type,
      call_id: this.#ids.call(part.id),
      ...(named ? { name: sentToolName(part.name, maxToolName, tools) } : {}),
      ...(typeof namespace === 'string' ? { namespace } : {}),
      ...(members ?? { arguments: part.argumentsJson }),
    };
  }

  #isFreeText(name: string): boolean {
    const { conversation, traits } = this.#writing;
    if (traits.customTools !== true) return false;
    return conversation.tools.some((tool) => tool.freeText === true && tool.name === name);
  }

  /** Undefined for reasoning of another provider. It is noted once, since a history may have hundreds. */
  #reasoning(part: ReasoningPart, path: FieldPath): JsonObject | undefined {
    const { traits, notes } = this.#writing;
    const own = this.#isOwn(part) && traits.historyReasoning !== false;
    const item = own ? reasoningItem(part) : undefined;
    const vouched = (part.signature ?? part.encrypted) !== undefined || part.broken === true;
    if (item === undefined && vouched && !this.#notedReasoning) {
      this.#notedReasoning = true;
      notes.lost(path, part.broken === true ? brokenReasoning : foreignReasoning);
    }
    return item;
  }

  #isOwn({ broken, origin, extras }: ReasoningPart): boolean {
    const { provider } = this.#writing;
    if (broken === true) return false;
    if (origin !== undefined) {
      return (
        origin.dialect === dialectId && (provider === undefined || origin.provider === provider)
      );
    }
    return (
      extras?.[dialectId] !== undefined || extras?.['openai-chat']?.['format'] === responsesFormat
    );
  }

  // Results of calls.

  #result(part: ToolResultPart, path: FieldPath): void {
    const kind = this.#kinds.get(part.callId) ?? 'function';
    const output = part.parts.flatMap((each, k) =>
      this.#resultPart(each, pathOf(each, [...path, 'content', k])),
    );
    if (part.failed) markFailed(output);
    if (part.cacheUntilHere !== undefined && output.length > 0) this.#mark(part);
    const only = output.length === 1 ? output[0] : undefined;
    const isPlain =
      only?.['type'] === 'input_text' && only['prompt_cache_breakpoint'] === undefined;
    const result = {
      type: callItems[kind].output,
      call_id: this.#ids.result(part.callId),
      output: output.length === 0 ? '' : isPlain ? (only['text'] ?? '') : output,
    };
    this.written.push(result);
  }

  #resultPart(part: Part, path: FieldPath): JsonMembers[] {
    const { traits, notes } = this.#writing;
    if (part.type === 'text') {
      return [this.#marked({ type: 'input_text', text: part.text }, part)];
    }
    if (part.type !== 'media') {
      notes.lost(path, 'not known to the model');
      return [];
    }
    const written = writeMedia(part, traits);
    if (written !== undefined) return [this.#marked(written, part)];
    // Agents send screenshots of their own accord. A refusal would end their session.
    const reason = traits.imageInput === 'none' ? 'model has no vision' : 'model cannot take it';
    notes.lost(path, `the ${part.kind} is left out, ${reason}`);
    return [{ type: 'input_text', text: `[${part.kind} omitted: ${reason}]` }];
  }

  // Cache marks: only input parts carry them. A mark on another part moves to the last input part before it.

  #marked(written: JsonMembers, part: Part): JsonMembers {
    this.#markable = written;
    this.#mark(part);
    return written;
  }

  #mark({ cacheUntilHere }: Part): void {
    if (cacheUntilHere === undefined || this.#writing.traits.cacheBreakpoints !== true) return;
    if (this.#markable !== undefined) {
      this.#markable['prompt_cache_breakpoint'] = { mode: 'explicit' };
    }
  }
}

const brokenReasoning = 'reasoning came back changed or incomplete';
const foreignReasoning = 'reasoning of another provider is not shown to this one';

function assistantPart(type: 'text' | 'refusal', text: string): JsonMembers {
  return type === 'text'
    ? { type: 'output_text', text, annotations: [] }
    : { type: 'refusal', refusal: text };
}

/** The id is written only with encrypted content. The provider would look up any other id, and it stores nothing. */
function reasoningItem(part: ReasoningPart): JsonObject | undefined {
  const { id, raw } = itemExtras(part);
  const blob = part.signature ?? part.encrypted;
  const { text } = part;
  if (raw === true && text !== '') {
    const encrypted = blob === undefined ? {} : { encrypted_content: blob };
    return {
      type: 'reasoning',
      summary: [],
      content: [{ type: 'reasoning_text', text }],
      ...encrypted,
    };
  }
  if (blob === undefined || blob === '') return undefined;
  return {
    type: 'reasoning',
    ...(isItemId(id, idPrefixes.reasoning) ? { id } : {}),
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    encrypted_content: blob,
  };
}

/** The API has no flag for a failed call. */
function markFailed(output: JsonMembers[]): void {
  const first = output.find((part) => part['type'] === 'input_text');
  if (first === undefined) output.unshift({ type: 'input_text', text: 'Error: ' });
  else if (!/^error\b/i.test(textOf(first['text']))) {
    first['text'] = `Error: ${textOf(first['text'])}`;
  }
}

/** Undefined for a medium that the upstream cannot read. */
function writeMedia(part: MediaPart, traits: UpstreamTraits): JsonMembers | undefined {
  switch (part.kind) {
    case 'image':
      return writeImage(part, traits);
    case 'document':
      return writeDocument(part, traits);
    case 'audio':
      return undefined;
    default:
      return part.kind satisfies never;
  }
}

function writeImage(part: MediaPart, { imageInput }: UpstreamTraits): JsonMembers | undefined {
  const { source, mediaType } = part;
  if (imageInput === 'none') return undefined;
  const detail = imageDetail(part) ?? 'auto';
  if ('base64' in source) {
    const type = mediaType === '' ? 'image/png' : mediaType;
    return { type: 'input_image', image_url: `data:${type};base64,${source.base64}`, detail };
  }
  if (imageInput === 'base64' || !('url' in source)) return undefined;
  return { type: 'input_image', image_url: source.url, detail };
}

function writeDocument(part: MediaPart, { fileInput }: UpstreamTraits): JsonMembers | undefined {
  const { source, mediaType, name } = part;
  if ('text' in source) return { type: 'input_text', text: documentText(part, source.text) };
  if (!fileInput) return undefined;
  if ('url' in source) {
    const named = name === undefined ? {} : { filename: name };
    return { type: 'input_file', ...named, file_url: source.url };
  }
  const type = mediaType === '' ? 'application/pdf' : mediaType;
  return {
    type: 'input_file',
    filename: name ?? 'document.pdf',
    file_data: `data:${type};base64,${source.base64}`,
  };
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}
