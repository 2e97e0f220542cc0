/**
 * Reads a messages stream into events. State is kept by block index:
 * an upstream may leave a block open when the next one starts.
 */
import type { Part } from '../../../core/conversation.ts';
import type { Frame, StreamReader } from '../../../core/dialect.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { FinishReason, GenerationEvent } from '../../../core/generation.ts';
import type { Notes } from '../../../core/notes.ts';
import { AnswerStrangers } from '../../../core/shape.ts';
import { tryParseExactEvent, tryParseInnerObject } from '../../../json/parse.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  textOf,
} from '../../../json/value.ts';
import { answerObject, answerText, isCutBy, wrongType } from '../../shared/answers.ts';
import { type LayoutRules, PlainLayout } from '../../shared/plain-layout.ts';
import { answerCitations, inputText, readCitation, readToolUse } from './response.ts';
import { readErrorValue } from '../errors.ts';
import { eventShapes } from './shape.ts';
import { readStop, readUsage } from './usage.ts';

/** The events of an answer. Others are noted and not read, whatever their data is. */
const known: ReadonlySet<string> = new Set([
  'message_start',
  'content_block_start',
  'content_block_delta',
  'content_block_stop',
  'message_delta',
  'message_stop',
  'error',
]);
/** Events that say nothing. */
const idle: ReadonlySet<string> = new Set(['ping', 'keepalive']);

/** How most servers write an event that continues a text. */
const plainDelta: LayoutRules = {
  text: /"text"\s*:\s*"/,
  textOf: ({ type, delta }) => {
    if (type !== 'content_block_delta' || !isObject(delta)) return undefined;
    const { type: kind, text } = delta;
    return kind === 'text_delta' && typeof text === 'string' ? text : undefined;
  },
};

export class MessagesStreamReader implements StreamReader {
  readonly #strangers: AnswerStrangers | undefined;
  readonly #blocks: StreamBlocks;
  /** Id of the message; undefined before `message_start`. */
  #message: string | undefined;
  /** The usage reported so far, in the upstream's form. */
  #usage: JsonObject = {};
  /** Web searches in the answer. The usage at its end counts those that ran. */
  #searches = 0;
  /** The first reported stop reason. It is used when the message stops. */
  #stop: FinishReason | undefined;
  /** The finish, an error or the close was read. Later data is ignored. */
  #over = false;
  readonly #layout = new PlainLayout(plainDelta);
  /** The event from which the layout was learned. Others with this layout differ only in their text. */
  #taught: JsonObject = {};

  /** @param notes absent where the upstream's own bytes go to the client */
  constructor(notes?: Notes) {
    this.#strangers = notes && new AnswerStrangers(notes);
    this.#blocks = new StreamBlocks(this.#strangers);
  }

  get finishPending(): boolean {
    return this.#stop !== undefined && !this.#over;
  }

  /** @throws GatewayError `upstream_invalid` for data that is not a JSON object. */
  read(frame: Frame): readonly GenerationEvent[] {
    const { data, event: name } = frame;
    if (this.#over || data === undefined || data === '') return none;
    if (name !== undefined && !known.has(name)) return this.#unknown(name);
    const again = name === 'error' ? undefined : this.#continueText(data);
    if (again !== undefined) return again;
    const event = tryParseExactEvent(data);
    if (event === undefined) return name === 'error' ? this.#fail(null) : this.#readOther(data);
    const type = name === 'error' ? name : typeOf(event, name);
    this.#strangers?.see(event, eventShapes.get(type), textOf(type));
    switch (type) {
      case 'content_block_delta':
        return this.#delta(event, data);
      case 'content_block_start':
        return [...this.#unannounced(), ...this.#blocks.start(event), ...this.#search(event)];
      case 'content_block_stop':
        return this.#blocks.stop(event['index']);
      case 'message_start':
        return this.#begin(event);
      case 'message_delta':
        return this.#messageDelta(event);
      case 'message_stop':
        return this.#finish();
      case 'error':
        return this.#fail(event);
      default:
        return this.#unknown(textOf(type));
    }
  }

  #unknown(type: string): readonly GenerationEvent[] {
    if (type !== '' && !idle.has(type)) this.#strangers?.type([], type);
    return none;
  }

  /** The events of a frame with the learned layout. Undefined for any other frame. */
  #continueText(data: string): readonly GenerationEvent[] | undefined {
    const text = this.#layout.textOf(data);
    return text === undefined ? undefined : this.#blocks.continueText(this.#taught, text);
  }

  end(): readonly GenerationEvent[] {
    return this.#over ? none : this.#finish();
  }

  #delta(event: JsonObject, data: string): readonly GenerationEvent[] {
    if (this.#message === undefined) {
      return [...this.#unannounced(), ...this.#blocks.delta(event)];
    }
    if (plainDelta.textOf(event) !== undefined) {
      this.#layout.learn(data);
      this.#taught = event;
    }
    return this.#blocks.delta(event);
  }

  #begin(event: JsonObject): readonly GenerationEvent[] {
    // A second start of the same message is a repetition. A start of another one means that something
    // between here and the model tried again: two half answers, which cannot be joined.
    const message = event['message'];
    const start = isObject(message) ? message : {};
    const id = textOf(start['id']);
    if (this.#message !== undefined) {
      if (id === this.#message) return none;
      this.#over = true;
      const error = new GatewayError(
        'upstream_invalid',
        'The upstream began a second answer in the first.',
      );
      return [{ type: 'error', error }];
    }
    this.#message = id;
    const events: GenerationEvent[] = [{ type: 'start', id, model: textOf(start['model']) }];
    if (isObject(start['usage'])) {
      // The counts of output and searches in the start are placeholders. Only message_delta has the real ones.
      const { output_tokens: _output, server_tool_use: _tools, ...usage } = start['usage'];
      this.#readUsage(usage, events);
    }
    return events;
  }

  /** The end mark of chat servers is ignored. Other text fails the stream and is never skipped. */
  #readOther(data: string): readonly GenerationEvent[] {
    if (data.trim() === '[DONE]') return none;
    this.#over = true;
    throw new GatewayError('upstream_invalid', 'The upstream sent an event that is not JSON.');
  }

  /** A server that omits `message_start`: the answer begins all the same, once. */
  #unannounced(): readonly GenerationEvent[] {
    if (this.#message !== undefined) return none;
    this.#message = '';
    return [{ type: 'start', id: '', model: '' }];
  }

  #messageDelta(event: JsonObject): readonly GenerationEvent[] {
    const events: GenerationEvent[] = [];
    const { delta, usage } = event;
    if (isObject(usage)) {
      this.#readUsage(usage, events);
      // Searches that failed are shown, and not charged.
      if (
        this.#searches > 0 &&
        isObject(usage.server_tool_use) &&
        usage.server_tool_use['web_search_requests'] === 0
      )
        events.push(searched(0));
    }
    if (isObject(delta)) this.#stop ??= readStop(delta);
    return events;
  }

  /** A stream that is broken off reports none: then those that were begun count. */
  #search({ content_block: block }: JsonObject): readonly GenerationEvent[] {
    if (!isObject(block) || block['type'] !== 'server_tool_use') return none;
    if (block['name'] !== 'web_search') return none;
    this.#searches += 1;
    return [searched(this.#searches)];
  }

  /** Counts are cumulative: a reported count replaces the earlier one, null or a missing count does not. */
  #readUsage(reported: JsonObject, events: GenerationEvent[]): void {
    const merged: { [key: string]: Json | undefined } = { ...this.#usage };
    for (const [key, value] of Object.entries(reported)) if (value !== null) merged[key] = value;
    this.#usage = merged;
    const usage = readUsage(merged);
    if (usage !== undefined) events.push({ type: 'usage', usage });
  }

  /** The stream is complete or closed. With a stop reason it is an answer (F54). */
  #finish(): readonly GenerationEvent[] {
    this.#over = true;
    if (this.#stop !== undefined) {
      return [...this.#blocks.close(isCutBy(this.#stop)), { type: 'finish', reason: this.#stop }];
    }
    const error =
      this.#message === undefined
        ? new GatewayError('upstream_invalid', 'The upstream sent an empty stream.')
        : new GatewayError(
            'stream_interrupted',
            'The upstream ended the stream without saying why the answer ended.',
          );
    return [{ type: 'error', error }];
  }

  #fail(reported: Json): readonly GenerationEvent[] {
    this.#over = true;
    return [{ type: 'error', error: readErrorValue(reported) }];
  }
}

function searched(webSearches: number): GenerationEvent {
  return { type: 'usage', usage: { webSearches } };
}

/** The JSON repeats the event's name. Servers of other dialects only name it `error`. */
function typeOf(event: JsonObject, name: string | undefined): Json | undefined {
  const reported = event['type'];
  const type = typeof reported === 'string' ? reported : name;
  if (type === undefined && reported !== undefined && reported !== null)
    throw wrongType('an event');
  return type === undefined && event['error'] !== undefined ? 'error' : type;
}

// Reads the content blocks of a streamed answer as parts.

type Kind = 'text' | 'reasoning' | 'tool' | 'opaque';

interface OpenBlock {
  readonly part: number;
  readonly kind: Kind;
  /** The block as it started. */
  readonly start: JsonObject;
  /** Data from deltas: the arguments of an opaque block, a signature, or a mark that a tool got arguments. */
  received: string;
  /** A block that only this dialect has, while its deltas are collected. */
  gathered: JsonMembers | undefined;
}

const none: readonly GenerationEvent[] = [];

class StreamBlocks {
  readonly #open = new Map<number, OpenBlock>();
  /** Parts of calls that ended without arguments. What follows shows whether they have none or were cut. */
  readonly #bare: number[] = [];
  #next = 0;
  readonly #strangers: AnswerStrangers | undefined;

  constructor(strangers: AnswerStrangers | undefined) {
    this.#strangers = strangers;
  }

  /** @throws GatewayError `upstream_invalid` for a block without a type. */
  start({ index, content_block: block }: JsonObject): readonly GenerationEvent[] {
    const at = indexOf(index);
    const events = [...this.stop(at), ...this.#endBare()];
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

  /** @throws GatewayError `upstream_invalid` for a delta without a matching block. */
  delta({ index, delta }: JsonObject): readonly GenerationEvent[] {
    const bare = this.#endBare();
    const events = this.#piece(index, delta);
    return bare.length === 0 ? events : [...bare, ...events];
  }

  #piece(index: Json | undefined, delta: Json | undefined): readonly GenerationEvent[] {
    if (!isObject(delta)) throw wrongType('a delta');
    const open = this.#open.get(indexOf(index));
    if (open === undefined) return this.#unannounced(indexOf(index), delta);
    // What a block of an unknown type is made of is not known either. A relayed answer has all of it.
    if (open.kind === 'opaque' && open.gathered === undefined) {
      gather(open, delta);
      return none;
    }
    switch (delta['type']) {
      case 'text_delta':
        return textEvent(open, 'text', delta['text']);
      case 'input_json_delta': {
        const json = inputPiece(delta['partial_json']);
        if (json === '') return none;
        if (open.gathered !== undefined) {
          open.received += json;
          return none;
        }
        assertKind(open, 'tool');
        open.received = json;
        return [{ type: 'part-delta', index: open.part, field: 'arguments', delta: json }];
      }
      case 'thinking_delta':
        return textEvent(open, 'reasoning', delta['thinking']);
      case 'signature_delta': {
        // The native service sends one signature a block. A repetition is ignored.
        const signature = answerText(delta['signature'], 'a signature');
        const known = open.received === '' ? textOf(open.start['signature']) : open.received;
        if (signature === '' || signature === known) return none;
        assertKind(open, 'reasoning');
        open.received += signature;
        return [{ type: 'part-delta', index: open.part, field: 'signature', delta: signature }];
      }
      case 'citations_delta': {
        const value = delta['citation'];
        const citation = answerObject(value, 'a citation');
        if (citation === undefined) return none;
        assertKind(open, 'text');
        return [{ type: 'part-citation', index: open.part, citation: readCitation(citation) }];
      }
      default:
        gather(open, delta);
        // A block of a known type has no member for it.
        if (open.kind !== 'opaque') this.#strangers?.type(deltaPath, textOf(delta['type']));
        return none;
    }
  }

  /** A piece of an open text. Undefined if no text is open. */
  continueText({ index }: JsonObject, text: string): readonly GenerationEvent[] | undefined {
    const open = this.#open.get(indexOf(index));
    return open?.kind === 'text' ? textEvent(open, 'text', text) : undefined;
  }

  stop(index: Json | undefined): readonly GenerationEvent[] {
    const at = indexOf(index);
    const open = this.#open.get(at);
    if (open === undefined) return none;
    this.#open.delete(at);
    if (!isBare(open)) return endEvents(open);
    this.#bare.push(open.part);
    return none;
  }

  /** Ends whatever is still open. @param isCut the answer was cut, and its last call with it */
  close(isCut: boolean): readonly GenerationEvent[] {
    const ends = [...this.#open.keys()].flatMap((index) => this.stop(index));
    return [...ends, ...this.#endBare(isCut)];
  }

  #endBare(isCut = false): readonly GenerationEvent[] {
    if (this.#bare.length === 0) return none;
    return this.#bare.splice(0).flatMap((index): readonly GenerationEvent[] => {
      const end = { type: 'part-end', index } as const;
      if (isCut) return [end];
      return [{ type: 'part-delta', index, field: 'arguments', delta: '{}' }, end];
    });
  }

  /** Text without a block start opens a block. Other deltas without a start are ignored. */
  #unannounced(index: number, delta: JsonObject): readonly GenerationEvent[] {
    const type = typeOfDelta.get(textOf(delta['type']));
    if (type === undefined) {
      throw new GatewayError('upstream_invalid', 'The upstream sent a delta without its block.');
    }
    const opened = this.start({ index, content_block: type });
    return [...opened, ...this.delta({ index, delta })];
  }
}

const deltaPath = ['content_block_delta', 'delta'] as const;

const typeOfDelta: ReadonlyMap<string, JsonObject> = new Map<string, JsonObject>([
  ['text_delta', { type: 'text', text: '' }],
  ['thinking_delta', { type: 'thinking', thinking: '', signature: '' }],
]);

/** A missing index means the only block. @throws GatewayError `upstream_invalid` for one that is not a number. */
function indexOf(index: Json | undefined): number {
  if (typeof index === 'number') return index;
  if (index === undefined || index === null) return 0;
  throw wrongType('the index of a block');
}

/** @throws GatewayError `upstream_invalid` for a delta of another kind than its block. */
function assertKind({ kind }: OpenBlock, expected: Kind): void {
  if (kind === expected) return;
  throw new GatewayError('upstream_invalid', 'The upstream sent a delta of another block.');
}

/** A piece of the input; some servers send it as a value. */
function inputPiece(json: Json | undefined): string {
  if (json === undefined || json === null) return '';
  return typeof json === 'string' ? json : JSON.stringify(json);
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

/** Server tool calls and compaction arrive in pieces. Other blocks of this dialect are complete. */
function takesDeltas(block: JsonObject): boolean {
  if (kindOf(block['type']) !== 'opaque') return false;
  return block['input'] !== undefined || block['content'] === null;
}

function startPart(block: JsonObject): Part {
  switch (block['type']) {
    case 'text': {
      const citations = answerCitations(block['citations']);
      const text = answerText(block['text'], 'a text');
      return citations.length === 0 ? { type: 'text', text } : { type: 'text', text, citations };
    }
    case 'thinking': {
      const signature = answerText(block['signature'], 'a signature');
      const text = answerText(block['thinking'], 'thinking');
      return signature === ''
        ? { type: 'reasoning', text }
        : { type: 'reasoning', text, signature };
    }
    case 'redacted_thinking':
      return {
        type: 'reasoning',
        text: '',
        encrypted: answerText(block['data'], 'redacted thinking'),
      };
    case 'tool_use':
      return readToolUse(block, '');
    default:
      return { type: 'opaque', dialect: 'anthropic-messages', value: block };
  }
}

function textEvent(
  open: OpenBlock,
  kind: Kind,
  reported: Json | undefined,
): readonly GenerationEvent[] {
  const text = answerText(reported, 'a text');
  if (text === '') return none;
  assertKind(open, kind);
  return [{ type: 'part-delta', index: open.part, field: 'text', delta: text }];
}

/**
 * Members of an unknown delta belong to the block: compaction sends its content so.
 * @throws GatewayError `upstream_invalid` for a delta without a type.
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

/** A call without any arguments, not even at its start. */
function isBare({ kind, received, start }: OpenBlock): boolean {
  return kind === 'tool' && received === '' && inputText(start['input']) === '{}';
}

function endEvents(open: OpenBlock): readonly GenerationEvent[] {
  const { part: index, gathered } = open;
  if (gathered !== undefined) {
    if (open.received !== '')
      gathered['input'] = tryParseInnerObject(open.received) ?? { _raw: open.received };
    const part: Part = { type: 'opaque', dialect: 'anthropic-messages', value: gathered };
    return [
      { type: 'part-start', index, part },
      { type: 'part-end', index },
    ];
  }
  if (open.kind !== 'tool' || open.received !== '') return [{ type: 'part-end', index }];
  // A call without deltas has the input that it started with.
  const delta = inputText(open.start['input']);
  return [
    { type: 'part-delta', index, field: 'arguments', delta },
    { type: 'part-end', index },
  ];
}
