/** Edits of messages in a relayed request that this upstream would refuse. */
import type { Part, ReasoningPart } from '../../../core/conversation.ts';
import type { Ask } from '../../../core/dialect.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import type { Notes } from '../../../core/notes.ts';
import { isSealed } from '../../../core/secret.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonEdit } from '../../../json/edit.ts';
import type { JsonSource } from '../../../core/client-body.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import { BlockReader, requestReading } from '../request/read-blocks.ts';
import { isNative } from '../answer/response.ts';
import { isServerBlock, nativeThinking, whyForeign } from '../request/write-messages.ts';

interface MessageEdits {
  readonly edits: readonly JsonEdit[];
  /** The last message is an assistant's, which the model continues. */
  readonly continues: boolean;
  /** The calls that the last turns answer have no signed thinking before them. */
  readonly lacksThinking: boolean;
}

/** @throws GatewayError for media that the model cannot read. */
export function messageEdits(source: JsonSource, ask: Ask, notes: Notes): MessageEdits {
  const { traits } = ask;
  const { messages } = source.skeleton;
  if (!isArray(messages)) return { edits: [], continues: false, lacksThinking: false };
  const edits: JsonEdit[] = [];
  const blocks = BlockEdits.wanted(source, traits) ? new BlockEdits(source, ask, notes) : undefined;
  if (blocks !== undefined) edits.push(...contentEdits(messages, blocks));
  if (!traits.systemAnywhere) edits.push(...instructionEdits(source, messages, notes));
  const continues = isPrefill(messages.at(-1));
  if (continues && !traits.prefill) {
    const path = ['messages', messages.length];
    const text = '{"role":"user","content":"Continue."}';
    edits.push({ path, text, insert: true });
    const last = ['messages', messages.length - 1];
    notes.changed(last, 'the model is asked to continue its last message');
  }
  const lacksThinking = openTurnLacksThinking(source.skeleton, messages, { traits, blocks });
  return { edits, continues, lacksThinking };
}

function contentEdits(messages: readonly Json[], blocks: BlockEdits): readonly JsonEdit[] {
  const edits: JsonEdit[] = [];
  for (const [i, message] of messages.entries()) {
    if (!isObject(message) || !isArray(message['content'])) continue;
    edits.push(...blocks.message(message['content'], i));
  }
  return edits;
}

/** The model continues an assistant's message at the end, unless the turn was paused or calls tools. */
function isPrefill(last: Json | undefined): boolean {
  if (!isObject(last) || last['role'] !== 'assistant') return false;
  const { content } = last;
  const block = isArray(content) ? content.at(-1) : undefined;
  return !isObject(block) || (block['type'] !== 'tool_use' && !isServerBlock(block));
}

/**
 * Instructions in mid-conversation as tagged texts of the user, where only `system` may hold any. One that
 * is between calls and their results goes after the results.
 */
function instructionEdits(
  source: JsonSource,
  messages: readonly Json[],
  notes: Notes,
): readonly JsonEdit[] {
  const edits: JsonEdit[] = [];
  for (const [i, message] of messages.entries()) {
    if (!isObject(message) || message['role'] !== 'system') continue;
    const whole = source.value['messages'];
    const written = asUser(isArray(whole) ? whole[i] : message);
    if (edits.length === 0) {
      notes.changed(['messages', i], 'an instruction behind the first message is sent as the user');
    }
    const results = resultsAfter(messages, i);
    edits.push({ path: ['messages', i], text: results === undefined ? written : undefined });
    if (results !== undefined && written !== undefined) {
      edits.push({ path: ['messages', results + 1], text: written, insert: true });
    }
  }
  return edits;
}

/** Undefined for a message without text. */
function asUser(message: Json | undefined): string | undefined {
  const content = isObject(message) ? message['content'] : undefined;
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  if (!isArray(blocks)) return undefined;
  const texts = blocks.flatMap((block) => {
    if (!isObject(block) || textOf(block['text']).trim() === '') return [];
    return [{ ...block, text: `<system>${textOf(block['text'])}</system>` }];
  });
  return texts.length === 0 ? undefined : JSON.stringify({ role: 'user', content: texts });
}

/** The index of the message with results that the instruction at `i` keeps from its calls. */
function resultsAfter(messages: readonly Json[], i: number): number | undefined {
  const isInstruction = (message: Json | undefined): boolean =>
    isObject(message) && message['role'] === 'system';
  let next = i + 1;
  while (isInstruction(messages[next])) next += 1;
  let before = i - 1;
  while (isInstruction(messages[before])) before -= 1;
  const held = holds(messages[before], 'tool_use') && holds(messages[next], 'tool_result');
  return held ? next : undefined;
}

function holds(message: Json | undefined, type: string): boolean {
  const content = isObject(message) ? message['content'] : undefined;
  return isArray(content) && content.some((block) => isObject(block) && block['type'] === type);
}

interface Context {
  readonly traits: UpstreamTraits;
  readonly blocks: BlockEdits | undefined;
}

/** The last assistant turn has calls that the turns after it answer, and no thinking first. */
function openTurnLacksThinking(
  { thinking }: JsonObject,
  messages: readonly Json[],
  { traits, blocks }: Context,
): boolean {
  const strict = traits.strictThinking === true && traits.thinking === 'budget';
  if (!isObject(thinking) || (!strict && blocks?.removedThinking !== true)) return false;
  const open = messages.findLastIndex((each) => isObject(each) && each['role'] === 'assistant');
  const answered = messages.slice(open + 1).some((message) => holds(message, 'tool_result'));
  const turn = messages[open];
  if (!answered || !holds(turn, 'tool_use')) return false;
  const content = isObject(turn) && isArray(turn['content']) ? turn['content'] : [];
  const first = content.find((_, j) => blocks?.isRemoved(open, j) !== true);
  const type = isObject(first) ? first['type'] : undefined;
  const lacks = type !== 'thinking' && type !== 'redacted_thinking';
  return lacks && (strict || content.some((_, j) => blocks?.isRemoved(open, j) === true));
}

// Content blocks of a relayed request that this upstream would not take as they are.

/** Blocks that every server of this dialect knows. */
const commonBlocks: ReadonlySet<string> = new Set([
  'text',
  'image',
  'document',
  'thinking',
  'tool_use',
  'tool_result',
]);

class BlockEdits {
  /** Whether anything in the messages may have to change: else they are not examined. */
  static wanted(source: JsonSource, traits: UpstreamTraits): boolean {
    return (
      traits.historyReasoning === false ||
      traits.thinking === 'none' ||
      traits.nativeTools === false ||
      source.has('sealed') ||
      (source.has('media') && (traits.imageInput !== 'url' || !traits.fileInput)) ||
      (!traits.cacheMarks && source.has('cacheControl')) ||
      mayHaveScopes(source, traits)
    );
  }

  /** Reasoning was taken out. */
  removedThinking = false;

  readonly #source: JsonSource;
  readonly #traits: UpstreamTraits;
  readonly #notes: Notes;
  readonly #reader: BlockReader;
  readonly #removed = new Set<string>();
  #noted = false;

  constructor(source: JsonSource, { traits, sealer }: Ask, notes: Notes) {
    this.#source = source;
    this.#traits = traits;
    this.#notes = notes;
    this.#reader = new BlockReader(requestReading(notes, sealer));
  }

  /** Whether a block of a message was taken out. */
  isRemoved(message: number, block: number): boolean {
    return this.#removed.has(`${message}.${block}`);
  }

  /** @throws GatewayError for media that the model cannot read. */
  message(content: readonly Json[], i: number): readonly JsonEdit[] {
    const at = ['messages', i, 'content'];
    const edits = content.flatMap((block, j) => {
      if (!isObject(block)) return [];
      const found = this.#block(block, [...at, j], 'turn');
      if (found.some(({ path, text }) => path.length === at.length + 1 && text === undefined)) {
        this.#removed.add(`${i}.${j}`);
      }
      return found;
    });
    const empty = content.length > 0 && content.every((_, j) => this.isRemoved(i, j));
    return empty ? [{ path: ['messages', i], text: undefined }] : edits;
  }

  #block(block: JsonObject, path: FieldPath, within: 'turn' | 'result'): readonly JsonEdit[] {
    const type = textOf(block['type']);
    switch (type) {
      case 'text':
        return this.#unmarked(block, path);
      case 'thinking':
      case 'redacted_thinking': {
        const sealed = isSealed(textOf(block['signature'])) || isSealed(textOf(block['data']));
        const part = sealed ? this.#unsealed(path) : undefined;
        const native = sealed ? this.#native(part) : block;
        const why = this.#whyUnthought(native, part);
        if (why === undefined) return sealed ? [{ path, text: JSON.stringify(native) }] : [];
        // Once a request: a history may hold hundreds of them.
        if (!this.#noted) this.#notes.lost(path, why);
        this.#noted = true;
        this.removedThinking = true;
        return [{ path, text: undefined }];
      }
      case 'image':
      case 'document':
        return this.#media(block, path, within);
      case 'tool_result': {
        const { content } = block;
        const inner = isArray(content) ? content : [];
        return [
          ...this.#unmarked(block, path),
          ...inner.flatMap((each, k) =>
            isObject(each) ? this.#block(each, [...path, 'content', k], 'result') : [],
          ),
        ];
      }
      default: {
        const foreign = this.#traits.nativeTools === false && !commonBlocks.has(type);
        return foreign ? this.#inWords(path) : this.#unmarked(block, path);
      }
    }
  }

  #unsealed(path: FieldPath): ReasoningPart | undefined {
    const [part] = this.#reader.readBlock(this.#whole(path), path);
    return part?.type === 'reasoning' ? part : undefined;
  }

  /** What a server of Claude made behind another API, in this one. Undefined for reasoning of others. */
  #native(part: ReasoningPart | undefined): JsonObject | undefined {
    // Servers of other models take no signature of Claude.
    if (part === undefined || this.#traits.nativeTools === false) return undefined;
    return isNative(part) ? nativeThinking(part) : undefined;
  }

  #whyUnthought(
    block: JsonObject | undefined,
    part: ReasoningPart | undefined,
  ): string | undefined {
    const { historyReasoning, thinking, nativeTools } = this.#traits;
    if (block === undefined) return whyForeign(part);
    if (historyReasoning === false) return 'the provider refused the reasoning of earlier turns';
    if (thinking === 'none') return 'the model does not think';
    const sealed = block['type'] === 'redacted_thinking' && nativeTools === false;
    return sealed ? 'encrypted reasoning that this provider cannot read' : undefined;
  }

  #media(block: JsonObject, path: FieldPath, within: 'turn' | 'result'): readonly JsonEdit[] {
    const { type, source } = block;
    const kind = textOf(type);
    const form = isObject(source) ? textOf(source['type']) : '';
    if (this.#shows(kind, form)) return this.#unmarked(block, path);
    // What is text goes as text.
    if (kind === 'document' && (form === 'text' || form === 'content')) return this.#asText(path);
    const name = kind === 'image' ? 'an image' : 'a document';
    if (within === 'turn') {
      throw unsupported(path, `This model does not take ${name} of this kind.`);
    }
    // Agents send screenshots unasked: a refusal would end their session.
    this.#notes.lost(path, `${name} in a tool result that the model cannot see`);
    const text = `[${kind} omitted: the model cannot see it]`;
    return [{ path, text: JSON.stringify({ type: 'text', text }) }];
  }

  #shows(kind: string, form: string): boolean {
    const { imageInput, fileInput, nativeTools } = this.#traits;
    if (form === 'file') return nativeTools !== false;
    if (kind === 'document') return fileInput;
    return imageInput === 'url' || (imageInput === 'base64' && form === 'base64');
  }

  #asText(path: FieldPath): readonly JsonEdit[] {
    const block = this.#whole(path);
    const source = isObject(block['source']) ? block['source'] : {};
    if (source['type'] !== 'text') return this.#inWords(path);
    this.#notes.changed(path, 'a document is shown as its text');
    const lines = [textOf(block['title']), textOf(block['context']), textOf(source['data'])];
    const text = lines.filter((line) => line !== '').join('\n');
    return [{ path, text: JSON.stringify({ type: 'text', text }) }];
  }

  /** A block that only Anthropic's service knows, as translation writes it for other models. */
  #inWords(path: FieldPath): readonly JsonEdit[] {
    const texts = this.#reader
      .readBlock(this.#whole(path), path)
      .flatMap((part: Part) => (part.type === 'text' ? [{ type: 'text', text: part.text }] : []))
      .map((block) => JSON.stringify(block));
    const last = texts.pop();
    return [...texts.map((text) => ({ path, text, insert: true as const })), { path, text: last }];
  }

  /** The block with its texts, which a skeleton may lack. */
  #whole(path: FieldPath): JsonObject {
    let value: Json | undefined = this.#source.value;
    for (const step of path) {
      if (isArray(value)) value = value[Number(step)];
      else value = isObject(value) ? value[step] : undefined;
    }
    return isObject(value) ? value : {};
  }

  #unmarked(block: JsonObject, path: FieldPath): readonly JsonEdit[] {
    return markEdits(block, path, this.#traits);
  }
}

/** What of a mark goes: all of it once the upstream refused marks, or its scope. */
export function markEdits(
  { cache_control: mark }: JsonObject,
  path: FieldPath,
  { cacheMarks, cacheScopes }: UpstreamTraits,
): readonly JsonEdit[] {
  if (mark === undefined) return [];
  if (!cacheMarks) return [{ path: [...path, 'cache_control'], text: undefined }];
  const isScoped = cacheScopes === false && isObject(mark) && mark['scope'] !== undefined;
  return isScoped ? [{ path: [...path, 'cache_control', 'scope'], text: undefined }] : [];
}

/** Whether marks are to be looked at for their scope: of most bodies a search in the bytes says no. */
export function mayHaveScopes(source: JsonSource, { cacheScopes }: UpstreamTraits): boolean {
  if (cacheScopes !== false || !source.has('cacheControl')) return false;
  const [only, ...others] = source.pieces.list;
  return others.length > 0 || only?.includes('"scope"') === true;
}
