/** Content blocks of a request and the parts that they are (wire/messages.md §4.1). */
import type {
  Json,
  JsonObject,
  Origin,
  Part,
  ReasoningPart,
  ToolResultPart,
  Turn,
} from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { placed } from '../../core/places.ts';
import { isSealed } from '../../core/sealer.ts';
import { Pace, perStep, type Steps } from '../../core/steps.ts';
import { BlockMembers } from './block-members.ts';
import { readCitations } from './citations.ts';
import { isArray, textOf } from './fields.ts';
import { readDocument, readImage } from './request-read-media.ts';
import { nativeExtras, readMark, without, type Reading } from './request-reading.ts';
import { readSearchResult, ServerToolText } from './server-tool-text.ts';
import { describeChange, isToolChange } from './tool-changes.ts';
import { unseal } from './signature.ts';

/** Where content stands. */
export interface ContentPlace {
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

/** Reads the blocks of one request; remembers what earlier blocks say of later ones. */
export class BlockReader {
  readonly #reading: Reading;
  readonly #members: BlockMembers;
  readonly #serverTools = new ServerToolText();
  /** What a foreign upstream said of its calls, by call id. */
  readonly #callExtras = new Map<
    string,
    { readonly origin: Origin; readonly extras: JsonObject }
  >();

  /** Of all that is read. */
  readonly pace = new Pace();

  constructor(reading: Reading) {
    this.#reading = reading;
    this.#members = new BlockMembers(reading.notes);
  }

  readContent(content: Json | undefined, place: ContentPlace): readonly Part[] {
    if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
    if (!isArray(content)) return [];
    return content.flatMap((block, j) => {
      const path = [...place.path, j];
      if (!isObject(block)) return [];
      return this.#readBlock(block, path).map((part) => placed(part, path));
    });
  }

  /** The same in steps. */
  *readLong(content: readonly Json[], place: ContentPlace): Steps<readonly Part[]> {
    const parts: Part[] = [];
    for (let j = 0; j < content.length; j += 1) {
      const block = content[j];
      if (!isObject(block)) continue;
      if (this.pace.dueWith(isLongResult(block) ? 1 : blocksIn(block))) yield;
      const path = [...place.path, j];
      const read = isToolResult(block)
        ? [yield* this.#readLongResult(block, path)]
        : this.#readBlock(block, path);
      for (const part of read) parts.push(placed(part, path));
    }
    return parts;
  }

  /** The messages are over. */
  finish(): void {
    for (const path of this.#serverTools.unanswered()) {
      this.#reading.notes.lost(path, 'a call of a server tool without its result');
    }
  }

  #readBlock(block: JsonObject, path: FieldPath): readonly Part[] {
    const reading = this.#reading;
    this.#members.check(block, path);
    switch (block['type']) {
      case 'text':
        return [readText(block)];
      case 'image':
        return readImage(block, path, reading);
      case 'document':
        return readDocument(block, path, reading);
      case 'search_result':
        reading.notes.changed(path, 'a search result is shown as text');
        return [{ type: 'text', text: readSearchResult(block), ...readMark(block) }];
      case 'thinking':
        return this.#readThinking(textOf(block['thinking']), textOf(block['signature']));
      case 'redacted_thinking':
        return this.#readRedacted(textOf(block['data']));
      case 'tool_use':
        return [this.#readToolUse(block)];
      case 'tool_result':
        return [this.#readToolResult(block, path)];
      case 'tool_reference':
        reading.notes.changed(path, 'a reference to a tool is shown as text');
        return [{ type: 'text', text: toolReference(block) }];
      default:
        return this.#readServerBlock(block, path);
    }
  }

  #readToolResult(block: JsonObject, path: FieldPath): ToolResultPart {
    return toolResult(block, this.readContent(block['content'], resultPlace(path)));
  }

  *#readLongResult(block: JsonObject, path: FieldPath): Steps<ToolResultPart> {
    const { content } = block;
    this.#members.check(block, path);
    const place = resultPlace(path);
    const parts = isLong(content)
      ? yield* this.readLong(content, place)
      : this.readContent(content, place);
    return toolResult(block, parts);
  }

  /** Blocks that the native service wrote itself, in earlier turns. */
  #readServerBlock(block: JsonObject, path: FieldPath): readonly Part[] {
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
      notes.changed(path, 'a change of the tools is told in words');
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

  #readThinking(text: string, signature: string): readonly Part[] {
    if (isSealed(signature)) return this.#unsealed(signature, text);
    if (text === '' && signature === '') return [];
    return [{ type: 'reasoning', text, ...(signature === '' ? {} : { signature }) }];
  }

  #readRedacted(data: string): readonly Part[] {
    return isSealed(data)
      ? this.#unsealed(data, '')
      : [{ type: 'reasoning', text: '', encrypted: data }];
  }

  /**
   * What the gateway sealed, with its maker: it goes back to that one only, as that one wrote it
   * (§5.4). A seal that does not hold leaves a broken part, so that nobody is sent it.
   */
  #unsealed(sealed: string, text: string): readonly Part[] {
    const { sealer } = this.#reading;
    const record = unseal(sealed, sealer);
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

/** Whether content is to be read in steps. */
export function isLong(content: Json | undefined): content is readonly Json[] {
  return isArray(content) && lengthOf(content) > perStep;
}

/** How many blocks there are in content; those of results count. */
export function lengthOf(content: Json | undefined): number {
  if (!isArray(content)) return 1;
  let length = 0;
  for (const block of content) length += blocksIn(block);
  return length;
}

function blocksIn(block: Json): number {
  return isObject(block) && isToolResult(block) ? 1 + lengthOf(block['content']) : 1;
}

function isLongResult(block: Json): boolean {
  return isObject(block) && isToolResult(block) && isLong(block['content']);
}

function isToolResult(block: JsonObject): boolean {
  return block['type'] === 'tool_result';
}

function resultPlace(path: FieldPath): ContentPlace {
  return { role: 'user', path: [...path, 'content'] };
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

/** Reasoning that nobody takes back. */
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
