/** The content blocks of a streamed answer and the parts that they are (wire/messages.md §7.3). */
import type { Json, JsonObject, Part } from '../../core/conversation.ts';
import { GatewayError } from '../../core/errors.ts';
import type { GenerationEvent } from '../../core/generation.ts';
import { isObject } from '../../core/json.ts';
import { tryParseInnerObject } from '../../core/json-inner.ts';
import { readCitation, readCitations } from './citations.ts';
import { textOf, type JsonMembers } from './fields.ts';
import { readToolUse, writeInput } from './response-read.ts';

type Kind = 'text' | 'reasoning' | 'tool' | 'opaque';

interface OpenBlock {
  readonly part: number;
  readonly kind: Kind;
  /** The block as it started. */
  readonly start: JsonObject;
  /** What came in deltas: the arguments of an opaque block, a signature, a sign that a tool got some. */
  received: string;
  /** A block that only this dialect knows, while its deltas are gathered. */
  gathered: JsonMembers | undefined;
}

const none: readonly GenerationEvent[] = [];

export class StreamBlocks {
  readonly #open = new Map<number, OpenBlock>();
  #next = 0;

  /** @throws GatewayError `upstream_invalid` for a block that does not say what it is. */
  start({ index, content_block: block }: JsonObject): readonly GenerationEvent[] {
    const at = indexOf(index);
    const events = [...this.stop(at)];
    const start = isObject(block) ? block : {};
    if (textOf(start['type']) === '') {
      throw new GatewayError('upstream_invalid', 'The upstream began a block without a type.');
    }
    const open: OpenBlock = {
      part: this.#next++,
      kind: kindOf(start['type']),
      start,
      received: '',
      gathered: takesDeltas(start) ? { ...start } : undefined,
    };
    this.#open.set(at, open);
    if (open.gathered === undefined) {
      events.push({ type: 'part-start', index: open.part, part: startPart(start) });
    }
    return events;
  }

  /** @throws GatewayError `upstream_invalid` for a delta that no block can take. */
  delta({ index, delta }: JsonObject): readonly GenerationEvent[] {
    if (!isObject(delta)) return none;
    const open = this.#open.get(indexOf(index));
    if (open === undefined) return this.#unannounced(indexOf(index), delta);
    switch (delta['type']) {
      case 'text_delta':
        return textEvent(open, 'text', delta['text']);
      case 'input_json_delta':
        return inputEvent(open, textOf(delta['partial_json']));
      case 'thinking_delta':
        return textEvent(open, 'reasoning', delta['thinking']);
      case 'signature_delta':
        return signatureEvent(open, textOf(delta['signature']));
      case 'citations_delta':
        return isObject(delta['citation']) && open.kind === 'text'
          ? [{ type: 'part-citation', index: open.part, citation: readCitation(delta['citation']) }]
          : none;
      default:
        gather(open, delta);
        return none;
    }
  }

  stop(index: Json | undefined): readonly GenerationEvent[] {
    const at = indexOf(index);
    const open = this.#open.get(at);
    if (open === undefined) return none;
    this.#open.delete(at);
    return endEvents(open);
  }

  /** Ends whatever is still open (F61). */
  close(): readonly GenerationEvent[] {
    return [...this.#open.keys()].flatMap((index) => this.stop(index));
  }

  /** Text without a block start opens one; anything else has no meaning without it (F61). */
  #unannounced(index: number, delta: JsonObject): readonly GenerationEvent[] {
    const type = typeOfDelta.get(textOf(delta['type']));
    if (type === undefined) {
      throw new GatewayError('upstream_invalid', 'The upstream sent a delta without its block.');
    }
    const opened = this.start({ index, content_block: type });
    return [...opened, ...this.delta({ index, delta })];
  }
}

const typeOfDelta: ReadonlyMap<string, JsonObject> = new Map<string, JsonObject>([
  ['text_delta', { type: 'text', text: '' }],
  ['thinking_delta', { type: 'thinking', thinking: '', signature: '' }],
]);

/** A missing index means the only block. */
function indexOf(index: Json | undefined): number {
  return typeof index === 'number' ? index : 0;
}

function kindOf(type: Json | undefined): Kind {
  switch (type) {
    case 'text':
      return 'text';
    case 'thinking':
    case 'redacted_thinking':
      return 'reasoning';
    case 'tool_use':
      return 'tool';
    default:
      return 'opaque';
  }
}

/** Server tool calls and compaction come in pieces; other blocks of this dialect are complete. */
function takesDeltas(block: JsonObject): boolean {
  if (kindOf(block['type']) !== 'opaque') return false;
  return block['input'] !== undefined || block['content'] === null;
}

function startPart(block: JsonObject): Part {
  switch (block['type']) {
    case 'text': {
      const citations = readCitations(block['citations']);
      const text = textOf(block['text']);
      return citations.length === 0 ? { type: 'text', text } : { type: 'text', text, citations };
    }
    case 'thinking': {
      const signature = textOf(block['signature']);
      const text = textOf(block['thinking']);
      return signature === ''
        ? { type: 'reasoning', text }
        : { type: 'reasoning', text, signature };
    }
    case 'redacted_thinking':
      return { type: 'reasoning', text: '', encrypted: textOf(block['data']) };
    case 'tool_use':
      return readToolUse(block, '');
    default:
      return { type: 'opaque', dialect: 'anthropic-messages', value: block };
  }
}

function textEvent(
  open: OpenBlock,
  kind: Kind,
  text: Json | undefined,
): readonly GenerationEvent[] {
  if (typeof text !== 'string' || text === '' || open.kind !== kind) return none;
  return [{ type: 'part-delta', index: open.part, field: 'text', delta: text }];
}

/** The native service sends one signature a block; a repetition of it adds nothing. */
function signatureEvent(open: OpenBlock, signature: string): readonly GenerationEvent[] {
  const known = open.received === '' ? textOf(open.start['signature']) : open.received;
  if (signature === '' || signature === known || open.kind !== 'reasoning') return none;
  open.received += signature;
  return [{ type: 'part-delta', index: open.part, field: 'signature', delta: signature }];
}

function inputEvent(open: OpenBlock, json: string): readonly GenerationEvent[] {
  if (json === '') return none;
  if (open.gathered !== undefined) {
    open.received += json;
    return none;
  }
  if (open.kind !== 'tool') return none;
  open.received = json;
  return [{ type: 'part-delta', index: open.part, field: 'arguments', delta: json }];
}

/** The input of a call is an object, whatever came (translation.md §3.6). */
function gatheredInput(json: string): Json {
  return tryParseInnerObject(json) ?? { _raw: json };
}

/**
 * Members of an unknown delta belong to the block: compaction sends its content so.
 * @throws GatewayError `upstream_invalid` for a delta that does not say what it is.
 */
function gather(open: OpenBlock, delta: JsonObject): void {
  if (textOf(delta['type']) === '') {
    throw new GatewayError('upstream_invalid', 'The upstream sent a delta without a type.');
  }
  if (open.gathered === undefined) return;
  for (const [key, value] of Object.entries(delta)) {
    if (key !== 'type') open.gathered[key] = value;
  }
}

function endEvents(open: OpenBlock): readonly GenerationEvent[] {
  const { part: index, gathered } = open;
  if (gathered !== undefined) {
    if (open.received !== '') gathered['input'] = gatheredInput(open.received);
    const part: Part = { type: 'opaque', dialect: 'anthropic-messages', value: gathered };
    return [
      { type: 'part-start', index, part },
      { type: 'part-end', index },
    ];
  }
  if (open.kind !== 'tool' || open.received !== '') return [{ type: 'part-end', index }];
  // A call without deltas has the input that it started with.
  const delta = writeInput(open.start['input']);
  return [
    { type: 'part-delta', index, field: 'arguments', delta },
    { type: 'part-end', index },
  ];
}
