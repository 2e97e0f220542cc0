/** Reads content blocks of a request as parts. */
import type {
  CacheMark,
  MediaPart,
  Origin,
  Part,
  PartBase,
  ReasoningPart,
  ToolResultPart,
  Turn,
} from '../../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { type Notes, withPath } from '../../../core/notes.ts';
import { isSealed, type Sealer } from '../../../core/secret.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../../json/value.ts';
import { unseal } from '../../shared/seals.ts';
import { readCitations } from '../answer/response.ts';

/** The position of content. */
interface ContentPosition {
  readonly role: Turn['role'];
  readonly path: FieldPath;
}

const toolUseKeys: ReadonlySet<string> = new Set([
  'type',
  'id',
  'name',
  'input',
  'cache_control',
  'caller',
]);

/** Reads the blocks of one request. The state is data of earlier blocks about later ones. */
export class BlockReader {
  readonly #reading: Reading;
  readonly #serverTools = new ServerToolText();
  /** The number of documents that were read. */
  #documents = 0;
  /** Extras of calls from upstreams of other dialects, by call id. */
  readonly #callExtras = new Map<
    string,
    { readonly origin: Origin; readonly extras: JsonObject }
  >();

  constructor(reading: Reading) {
    this.#reading = reading;
  }

  readContent(content: Json | undefined, position: ContentPosition): readonly Part[] {
    if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
    if (!isArray(content)) return [];
    const paragraphs = new Paragraphs(position.role);
    return content.flatMap((block, j) => {
      const path = [...position.path, j];
      if (!isObject(block)) return [];
      return this.readBlock(block, path).map((part) => withPath(paragraphs.add(part, block), path));
    });
  }

  /** The messages are over. */
  finish(): void {
    for (const path of this.#serverTools.unanswered()) {
      this.#reading.notes.lost(path, 'a call of a server tool without its result');
    }
  }

  /** The parts of one block. */
  readBlock(block: JsonObject, path: FieldPath): readonly Part[] {
    const reading = this.#reading;
    switch (block['type']) {
      case 'text':
        return [readText(block)];
      case 'image':
        return readImage(block, path, reading);
      case 'document':
        return readDocument(block, { path, index: this.#documents++ }, reading);
      case 'search_result':
        reading.notes.changed(path, 'a search result is shown as text');
        return [{ type: 'text', text: readSearchResult(block), ...readMark(block) }];
      case 'thinking': {
        const text = textOf(block['thinking']);
        const signature = textOf(block['signature']);
        if (isSealed(signature)) return this.#unsealed(signature, text);
        if (text === '' && signature === '') return [];
        return [{ type: 'reasoning', text, ...(signature === '' ? {} : { signature }) }];
      }
      case 'redacted_thinking':
        return this.#readRedacted(textOf(block['data']));
      case 'tool_use':
        return [this.#readToolUse(block)];
      case 'tool_result':
        return [
          toolResult(
            block,
            this.readContent(block['content'], { role: 'user', path: [...path, 'content'] }),
          ),
        ];
      case 'tool_reference':
        reading.notes.changed(path, 'a reference to a tool is shown as text');
        return [{ type: 'text', text: toolReference(block) }];
      default: {
        // Blocks that the native service wrote in earlier turns.
        const { notes } = this.#reading;
        const type = textOf(block['type']);
        if (type === 'compaction') {
          notes.changed(path, 'a compaction is shown as text');
          const content = textOf(block['content']);
          return content === '' ? [] : [{ type: 'text', text: content, ...readMark(block) }];
        }
        if (type === 'fallback' || type === 'container_upload') {
          notes.lost(path, `a block of the type "${type}" means nothing to this model`);
          return [];
        }
        if (isToolChange(block)) {
          notes.changed(path, 'a change of the tools is written as text');
          return [{ type: 'text', text: describeChange(block), ...readMark(block) }];
        }
        if (type.endsWith('_tool_use')) {
          this.#serverTools.ask(block, path);
          return [];
        }
        if (type.endsWith('_tool_result')) {
          notes.changed(path, 'what a server tool found is shown as text');
          return [{ type: 'text', text: this.#serverTools.result(block), ...readMark(block) }];
        }
        this.#reading.refuse([...path, 'type'], 'This model takes no blocks of this type.');
        return [];
      }
    }
  }

  #readRedacted(data: string): readonly Part[] {
    return isSealed(data)
      ? this.#unsealed(data, '')
      : [{ type: 'reasoning', text: '', encrypted: data }];
  }

  /**
   * Opens sealed reasoning. It goes back only to the upstream that wrote it, in that upstream's form.
   * An invalid seal gives a broken part, which is not sent.
   */
  #unsealed(sealed: string, text: string): readonly Part[] {
    const { sealer } = this.#reading;
    const record = unseal(sealed, sealer, 'anthropic-messages');
    if (record === undefined) return [broken];
    const { origin, extras, callId, textDigest, ...proof } = record;
    if (callId !== undefined) {
      if (extras !== undefined) this.#callExtras.set(callId, { origin, extras });
      return [];
    }
    if (textDigest !== undefined && textDigest !== sealer?.digest(text)) return [broken];
    const foreign = extras === undefined ? {} : { extras: { [origin.dialect]: extras } };
    return [{ type: 'reasoning', text, ...proof, ...foreign, origin }];
  }

  #readToolUse(block: JsonObject): Part {
    const { caller, input } = block;
    const id = textOf(block['id']);
    const direct = !isObject(caller) || caller['type'] === 'direct';
    const native = { ...without(block, toolUseKeys), ...(direct ? {} : { caller }) };
    const foreign = this.#callExtras.get(id);
    const extras = {
      ...nativeExtras(native).extras,
      ...(foreign === undefined ? {} : { [foreign.origin.dialect]: foreign.extras }),
    };
    return {
      type: 'tool-call',
      id,
      name: textOf(block['name']),
      argumentsJson: JSON.stringify(input ?? {}),
      ...readMark(block),
      ...(Object.keys(extras).length === 0 ? {} : { extras }),
      ...(foreign === undefined ? {} : { origin: foreign.origin }),
    };
  }
}

/**
 * Other dialects join the texts of an assistant message without a separator, since text blocks are
 * pieces of one text. A block of another type that is shown as text is a paragraph of its own.
 */
class Paragraphs {
  readonly #joins: boolean;
  /** The last text, and whether a block of another type is after it. */
  #last: { readonly isRendered: boolean } | undefined;

  constructor(role: Turn['role']) {
    this.#joins = role === 'assistant';
  }

  add(part: Part, block: JsonObject): Part {
    if (!this.#joins || part.type !== 'text' || part.text === '') return part;
    const isRendered = block['type'] !== 'text';
    const last = this.#last;
    this.#last = { isRendered };
    if (last === undefined || (!isRendered && !last.isRendered)) return part;
    return { ...part, text: `\n\n${part.text}` };
  }
}

function toolResult(block: JsonObject, parts: readonly Part[]): ToolResultPart {
  return {
    type: 'tool-result',
    callId: textOf(block['tool_use_id']),
    parts,
    failed: block['is_error'] === true,
    ...readMark(block),
  };
}

/** Reasoning that no provider accepts back. */
const broken: ReasoningPart = { type: 'reasoning', text: '', broken: true };

function readText(block: JsonObject): Part {
  const citations = readCitations(block['citations']);
  return {
    type: 'text',
    text: textOf(block['text']),
    ...(citations.length === 0 ? {} : { citations }),
    ...readMark(block),
  };
}

function toolReference(block: JsonObject): string {
  return `The tool "${textOf(block['tool_name'])}" is available.`;
}

// Data that the parts of the request reader share.

/** The reading of one request. */
export interface Reading {
  readonly notes: Notes;
  /** Opens values that the gateway sealed. Absent = sealed values stay closed. */
  readonly sealer: Sealer | undefined;
  /**
   * Refuses a member that no other dialect can carry.
   * @throws GatewayError `invalid_request`, except in a token count, where the field is omitted.
   */
  refuse(path: FieldPath, why: string): void;
}

export function requestReading(notes: Notes, sealer?: Sealer): Reading {
  return {
    notes,
    sealer,
    refuse: (path, why) => {
      throw unsupported(path, why);
    },
  };
}

/** Token counts ignore members that a request would be refused for. */
export function countReading(notes: Notes, sealer?: Sealer): Reading {
  return { notes, sealer, refuse: (path, why) => notes.lost(path, why) };
}

/** The cache mark of a block or tool. */
export function readMark(value: JsonObject): { readonly cacheUntilHere?: CacheMark } {
  const control = value['cache_control'];
  if (!isObject(control)) return {};
  const { ttl } = control;
  return { cacheUntilHere: typeof ttl === 'string' ? { ttl } : {} };
}

/** Members that only this dialect has, under its name; empty if there are none. */
export function nativeExtras(members: JsonObject): Pick<PartBase, 'extras'> {
  return Object.keys(members).length === 0 ? {} : { extras: { 'anthropic-messages': members } };
}

/** The object without some of its members, and without those that are null. */
export function without(value: JsonObject, keys: ReadonlySet<string>): JsonObject {
  return Object.fromEntries(
    Object.entries(value).filter(([key, member]) => !keys.has(key) && member !== null),
  );
}

// Images and documents of a request.

const imageKeys: ReadonlySet<string> = new Set(['type', 'source', 'cache_control']);
const documentKeys: ReadonlySet<string> = new Set([
  'type',
  'source',
  'title',
  'citations',
  'cache_control',
]);
const fileIds = 'File ids belong to one provider; send the content itself.';

function readImage(block: JsonObject, path: FieldPath, reading: Reading): readonly Part[] {
  const source = isObject(block['source']) ? block['source'] : {};
  const { transformations } = block;
  if (isObject(transformations) && transformations['oversized_image'] === 'error') {
    reading.notes.lost([...path, 'transformations'], 'this model decides itself what is too large');
  }
  const rest = { ...readMark(block), ...nativeExtras(without(block, imageKeys)) };
  switch (source['type']) {
    case 'base64':
      return [
        {
          type: 'media',
          kind: 'image',
          // Some clients send the file suffix instead of the type.
          mediaType: textOf(source['media_type']).replace(/^image\/jpg$/, 'image/jpeg'),
          source: { base64: textOf(source['data']) },
          ...rest,
        },
      ];
    case 'url': {
      const url = textOf(source['url']);
      return [{ type: 'media', kind: 'image', mediaType: '', source: { url }, ...rest }];
    }
    default:
      reading.refuse([...path, 'source', 'type'], fileIds);
      return [];
  }
}

/** The position of a document block: its path, and its index among the documents of the request. */
interface DocumentPosition {
  readonly path: FieldPath;
  readonly index: number;
}

function readDocument(
  block: JsonObject,
  { path, index }: DocumentPosition,
  reading: Reading,
): readonly Part[] {
  const source = isObject(block['source']) ? block['source'] : {};
  const { citations } = block;
  const isCited = isObject(citations) && citations['enabled'] === true;
  if (source['type'] === 'content') {
    if (isCited) reading.notes.lost([...path, 'citations'], 'what is shown as text is not cited');
    return readContentDocument(block, path, reading);
  }
  const media = readDocumentSource(source);
  if (media === undefined) {
    reading.refuse([...path, 'source', 'type'], fileIds);
    return [];
  }
  const { title, context } = block;
  if (typeof context === 'string' && context !== '' && !('text' in media.source)) {
    reading.notes.lost([...path, 'context'], 'a file has nothing but a name here');
  }
  return [
    {
      type: 'media',
      kind: 'document',
      ...media,
      ...(typeof title === 'string' && title !== '' ? { name: title } : {}),
      ...(isCited ? { citedAs: index } : {}),
      ...readMark(block),
      ...nativeExtras(without(block, documentKeys)),
    },
  ];
}

function readDocumentSource(
  source: JsonObject,
): Pick<MediaPart, 'mediaType' | 'source'> | undefined {
  const mediaType = textOf(source['media_type']);
  switch (source['type']) {
    case 'base64':
      return { mediaType, source: { base64: textOf(source['data']) } };
    case 'text':
      return { mediaType: mediaType || 'text/plain', source: { text: textOf(source['data']) } };
    case 'url':
      return { mediaType: 'application/pdf', source: { url: textOf(source['url']) } };
    default:
      return undefined;
  }
}

/** A document that is made of blocks becomes those blocks, under its title. */
function readContentDocument(
  block: JsonObject,
  path: FieldPath,
  reading: Reading,
): readonly Part[] {
  reading.notes.changed(path, 'a document is shown as its text and images');
  const head = [textOf(block['title']), textOf(block['context'])].filter((line) => line !== '');
  const parts: Part[] = head.length === 0 ? [] : [{ type: 'text', text: head.join('\n') }];
  const source = isObject(block['source']) ? block['source'] : {};
  for (const inner of contentBlocks(source['content'])) {
    if (inner['type'] === 'text') parts.push({ type: 'text', text: textOf(inner['text']) });
    else if (inner['type'] === 'image') parts.push(...readImage(inner, path, reading));
  }
  const last = parts.at(-1);
  if (last !== undefined) parts[parts.length - 1] = { ...last, ...readMark(block) };
  return parts;
}

function contentBlocks(content: Json | undefined): readonly JsonObject[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return isArray(content) ? content.filter(isObject) : [];
}

// Tools that come and go in mid-conversation (beta `mid-conversation-tool-changes`). Other dialects
// have one list of tools for the whole request: it holds what is offered in the end, and the
// conversation says in words what changed where.

/** A tool that a message defines, and its path. */
interface AddedTool {
  readonly definition: JsonObject;
  readonly path: readonly (string | number)[];
}

interface ToolChanges {
  readonly added: readonly AddedTool[];
  /** Names of tools that are removed by the end of the messages. */
  readonly removed: ReadonlySet<string>;
}

/** Reads all tool changes of the messages. */
export function readToolChanges(messages: Json | undefined): ToolChanges {
  const added: AddedTool[] = [];
  const removed = new Set<string>();
  (isArray(messages) ? messages : []).forEach((message, i) => {
    const content = isObject(message) ? message['content'] : undefined;
    if (!isArray(content)) return;
    content.forEach((block, j) => {
      if (!isObject(block) || !isToolChange(block)) return;
      const name = changedTool(block);
      if (block['type'] === 'tool_removal') removed.add(name);
      else {
        removed.delete(name);
        const tool = block['tool'];
        const definition = isObject(tool) ? tool['definition'] : undefined;
        const path = ['messages', i, 'content', j, 'tool', 'definition'];
        if (isObject(definition)) added.push({ definition, path });
      }
    });
  });
  return { added, removed };
}

function isToolChange({ type }: JsonObject): boolean {
  return type === 'tool_addition' || type === 'tool_removal';
}

/** The change as text for the model. */
function describeChange(block: JsonObject): string {
  const what = `The tool "${changedTool(block)}"`;
  return block['type'] === 'tool_removal'
    ? `${what} is not available any more.`
    : `${what} is available from here on.`;
}

function changedTool({ tool }: JsonObject): string {
  if (!isObject(tool)) return '';
  const { definition, name, server_name: server } = tool;
  if (isObject(definition)) return textOf(definition['name']);
  const own = textOf(name);
  if (typeof server !== 'string') return own;
  return own === '' ? server : `${server}/${own}`;
}

// What server tools found in earlier turns, as text, so that a model that cannot run them retains the
// knowledge.

const maxLength = 4000;

/** Remembers calls until their results come. */
class ServerToolText {
  readonly #calls = new Map<string, string>();
  readonly #unanswered = new Map<string, FieldPath>();

  ask(block: JsonObject, path: FieldPath): void {
    this.#unanswered.set(textOf(block['id']), path);
    const { id, name, input } = block;
    const query = isObject(input) ? input['query'] : undefined;
    const shown = typeof query === 'string' ? JSON.stringify(query) : JSON.stringify(input ?? {});
    this.#calls.set(textOf(id), `${textOf(name)} ${shown}`);
  }

  /** Where the calls are that no result came for. */
  unanswered(): readonly FieldPath[] {
    return [...this.#unanswered.values()];
  }

  /** `[web_search "query" → 2 results: title url, title url]` */
  result(block: JsonObject): string {
    const kind = textOf(block['type']).replace(/_tool_result$/, '');
    this.#unanswered.delete(textOf(block['tool_use_id']));
    const call = this.#calls.get(textOf(block['tool_use_id'])) ?? kind;
    const failed = block['is_error'] === true ? 'error: ' : '';
    return `[${call} → ${failed}${describe(block['content'])}]`;
  }
}

function describe(content: Json | undefined): string {
  if (isArray(content)) {
    const entries = content.filter(isObject).map(describeEntry);
    return `${entries.length} ${entries.length === 1 ? 'result' : 'results'}: ${entries.join(', ')}`;
  }
  if (!isObject(content)) return textOf(content);
  const error = content['error_code'];
  if (typeof error === 'string') return `error: ${error}`;
  return cut(JSON.stringify(readable(content)));
}

function describeEntry(entry: JsonObject): string {
  const { title, url, text } = entry;
  const named = [title, url].filter((each) => typeof each === 'string' && each !== '').join(' ');
  if (named !== '') return named;
  return typeof text === 'string' ? text : cut(JSON.stringify(readable(entry)));
}

/** The value without encrypted members. */
function readable(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith('encrypted_')));
}

function cut(text: string): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength)}…`;
}

/** A search result from the client: title, source, texts. */
function readSearchResult(block: JsonObject): string {
  const { content } = block;
  const texts = isArray(content)
    ? content.filter(isObject).map((each) => textOf(each['text']))
    : [textOf(content)];
  return [textOf(block['title']), textOf(block['source']), ...texts]
    .filter((line) => line !== '')
    .join('\n');
}
