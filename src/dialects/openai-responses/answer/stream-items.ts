/** Reads the items of a streamed answer into parts. */
import type { Part } from '../../../core/conversation.ts';
import { GatewayError } from '../../../core/errors.ts';
import type { GenerationEvent } from '../../../core/generation.ts';
import { isObject, type Json, type JsonObject, textOf } from '../../../json/value.ts';
import { answerObject, answerText, wrongType } from '../../shared/answers.ts';
import { argumentsOf, type CallKind, streamedIndexes, writtenText } from '../items.ts';
import {
  callStart,
  clientCall,
  contentText,
  encryptedContent,
  isCutItem,
  isOtherContent,
  isFileSearch,
  isSearch,
  itemParts,
  messageContent,
  messageExtras,
  readAnnotation,
  readAnnotations,
  reasoningExtras,
  summarySeparator,
  textsOf,
  wrapperName,
} from './response.ts';

type Events = GenerationEvent[];

/** A text or refusal of a message. */
interface OpenContent {
  readonly part: number;
  readonly type: 'text' | 'refusal';
  received: string;
  citations: number;
}

interface MessageItem {
  readonly kind: 'message';
  readonly added: JsonObject;
  readonly contents: Map<number, OpenContent>;
  done: boolean;
}

interface ReasoningItem {
  readonly kind: 'reasoning';
  readonly added: JsonObject;
  part: number | undefined;
  /** The source of the text. A server that sends both repeats the same text. */
  source: 'summary' | 'content' | undefined;
  index: number;
  received: string;
  done: boolean;
}

interface CallItem {
  readonly kind: 'call';
  readonly added: JsonObject;
  /** The kind by the deltas, since the item may be missing. */
  readonly call: CallKind;
  /** Undefined while the call has no name, or may contain several calls. */
  part: number | undefined;
  received: string;
  done: boolean;
}

/** An item that the client does not run, or one that arrives complete. */
interface OtherItem {
  readonly kind: 'other';
  readonly added: JsonObject;
  done: boolean;
}

type Item = MessageItem | ReasoningItem | CallItem | OtherItem;

/** The events of a text, and whether they only continue it. */
interface TextEvents {
  readonly event: readonly GenerationEvent[];
  readonly continues: boolean;
}

/** The reader of each event type that belongs to an item. */
const readers: {
  readonly [type: string]: (items: StreamItems, event: JsonObject, to: Events) => void;
} = {
  'response.output_item.added': (items, event, to) => items.added(event, to),
  'response.output_item.done': (items, event, to) => items.itemDone(event, to),
  'response.content_part.added': (items, event, to) => items.contentAdded(event, to),
  'response.output_text.delta': (items, event, to) => {
    to.push(...items.text(event).event);
  },
  'response.output_text.done': (items, event, to) => items.contentDone(event, 'text', to),
  'response.output_text.annotation.added': (items, event, to) => items.annotation(event, to),
  'response.refusal.delta': (items, event, to) => items.refusal(event, to),
  'response.refusal.done': (items, event, to) => items.contentDone(event, 'refusal', to),
  'response.function_call_arguments.delta': (items, event, to) =>
    items.callDelta(event, 'function', to),
  'response.function_call_arguments.done': (items, event, to) =>
    items.callDone(event, 'function', to),
  'response.custom_tool_call_input.delta': (items, event, to) =>
    items.callDelta(event, 'custom', to),
  'response.custom_tool_call_input.done': (items, event, to) => items.callDone(event, 'custom', to),
  'response.reasoning_summary_text.delta': (items, event, to) =>
    items.reasoningDelta(event, 'summary', to),
  'response.reasoning_text.delta': (items, event, to) => items.reasoningDelta(event, 'content', to),
};

export class StreamItems {
  /** Names of the tools that the answer says were offered. */
  readonly declared = new Set<string>();
  /** Web searches that the answer shows. */
  searches = 0;
  #fileSearches = 0;
  hasCalls = false;
  readonly #items = new Map<number, Item>();
  #next = 0;
  #last = 0;

  /** Whether an event of this name belongs to an item. Progress events of hosted tools are ignored. */
  knows(type: string): boolean {
    return Object.hasOwn(readers, type);
  }

  read(type: string, event: JsonObject, events: Events): void {
    readers[type]?.(this, event, events);
  }

  /** A call begins at once, so that calls appear in the order of their start. */
  added(event: JsonObject, events: Events): void {
    const added = answerObject(event['item'], 'an item') ?? {};
    const given = event['output_index'];
    const index = given === undefined ? this.#items.size : indexOf(given, 'output_index');
    this.#last = index;
    if (this.#items.has(index)) return;
    const item = newItem(added);
    this.#items.set(index, item);
    if (item.kind === 'call') this.#startCall(item, added, events);
  }

  /** A piece of text. */
  text(event: JsonObject): TextEvents {
    const again = this.continueText(event, answerText(event['delta'], 'a text'));
    if (again !== undefined) return again;
    const events: Events = [];
    this.#contentDelta(event, 'text', events);
    return { event: events, continues: false };
  }

  /**
   * A piece of an open text; the hottest path of a stream. Undefined if the text is not open.
   * @param event an event of the same text. Its own piece may be another one.
   */
  continueText(event: JsonObject, delta: string): TextEvents | undefined {
    const item = this.#items.get(this.#outputIndex(event));
    if (item?.kind !== 'message' || delta === '') return undefined;
    const open = item.contents.get(indexOf(event['content_index'], 'content_index'));
    if (open?.type !== 'text') return undefined;
    open.received += delta;
    return {
      event: [{ type: 'part-delta', index: open.part, field: 'text', delta }],
      // Clients know an item by the id of its first event. An event with another id is not passed on unchanged.
      continues: event['item_id'] === undefined || event['item_id'] === item.added['id'],
    };
  }

  refusal(event: JsonObject, events: Events): void {
    this.#contentDelta(event, 'refusal', events);
  }

  contentAdded(event: JsonObject, events: Events): void {
    const type = answerObject(event['part'], 'a part')?.['type'];
    if (type !== 'output_text' && type !== 'refusal') return;
    this.#content(event, type === 'refusal' ? 'refusal' : 'text', events);
  }

  contentDone(event: JsonObject, type: OpenContent['type'], events: Events): void {
    const open = this.#content(event, type, events);
    complete(open, answerText(event[type], `a ${type}`), events);
  }

  annotation(event: JsonObject, events: Events): void {
    const annotation = answerObject(event['annotation'], 'an annotation');
    if (annotation === undefined) return;
    const open = this.#content(event, 'text', events);
    open.citations += 1;
    events.push({
      type: 'part-citation',
      index: open.part,
      citation: readAnnotation(annotation),
    });
  }

  callDelta(event: JsonObject, kind: CallKind, events: Events): void {
    const delta = answerText(event['delta'], 'a delta');
    const item = this.#call(event, kind, events);
    item.received += delta;
    if (item.part !== undefined) push(item.part, callPiece(item, delta), events);
  }

  callDone(event: JsonObject, kind: CallKind, events: Events): void {
    const item = this.#call(event, kind, events);
    const whole = answerText(event[kind === 'custom' ? 'input' : 'arguments'], 'arguments');
    // A call that waits is emitted when its item is done.
    if (item.part !== undefined) this.#completeCall(item, whole, events);
  }

  reasoningDelta(event: JsonObject, source: 'summary' | 'content', events: Events): void {
    const delta = answerText(event['delta'], 'a text');
    const index = this.#outputIndex(event);
    const item = this.#items.get(index) ?? this.#open(index, { type: 'reasoning' });
    if (item.kind !== 'reasoning') throw otherItem();
    item.source ??= source;
    if (item.source !== source || item.done || delta === '') return;
    const name = source === 'summary' ? 'summary_index' : 'content_index';
    const textIndex = indexOf(event[name], name);
    const separated = textIndex !== item.index && item.received !== '';
    item.index = textIndex;
    addReasoning(
      item,
      separated ? summarySeparator + delta : delta,
      this.#begin(item, events),
      events,
    );
  }

  itemDone(event: JsonObject, events: Events): void {
    const item = answerObject(event['item'], 'an item');
    if (item === undefined) throw wrongType('an item');
    const given = event['output_index'];
    const index = given === undefined ? this.#last : indexOf(given, 'output_index');
    this.#done(index, item, { events, isCut: item['status'] === 'incomplete' });
  }

  /**
   * The answer is complete. Items that only the last event has are emitted now, and open ones end.
   * @param output the items of the last event. Some servers omit them.
   * @param cut the answer was cut off: an item that is not `completed` is incomplete.
   * @throws GatewayError `upstream_invalid` for a call that never got its name.
   */
  settle(output: readonly JsonObject[], cut: boolean, events: Events): void {
    const seen = [...this.#items].map(([at, { added }]) => [at, added] as const);
    const indexes = streamedIndexes(output, seen);
    output.forEach((item, index) => {
      const known = indexes[index];
      if (!cut || known === undefined || item['status'] === 'completed') {
        const isCut = cut && isCutItem(item, index === output.length - 1);
        this.#done(known ?? this.#free(index), item, { events, isCut });
      }
    });
    for (const item of this.#items.values()) {
      if (item.kind === 'call' && item.part === undefined && item.received !== '' && !cut) {
        throw new GatewayError('upstream_invalid', 'The upstream sent a call without a name.');
      }
      this.#close(item, events, cut);
    }
  }

  #free(index: number): number {
    return this.#items.has(index) ? Math.max(...this.#items.keys()) + 1 : index;
  }

  #outputIndex({ output_index: index }: JsonObject): number {
    return index === undefined ? this.#last : indexOf(index, 'output_index');
  }

  #open(index: number, added: JsonObject): Item {
    const item = newItem(added);
    this.#items.set(index, item);
    this.#last = index;
    return item;
  }

  #contentDelta(event: JsonObject, type: OpenContent['type'], events: Events): void {
    const delta = answerText(event['delta'], 'a delta');
    const open = this.#content(event, type, events);
    open.received += delta;
    push(open.part, { field: 'text', delta }, events);
  }

  /** The text or refusal of an event. If no event opened it, this one does, by its type. */
  #content(event: JsonObject, type: OpenContent['type'], events: Events): OpenContent {
    const index = this.#outputIndex(event);
    const item = this.#items.get(index) ?? this.#open(index, { type: 'message' });
    if (item.kind !== 'message') throw otherItem();
    return this.#contentOf(item, indexOf(event['content_index'], 'content_index'), type, events);
  }

  #contentOf(
    item: MessageItem,
    at: number,
    type: OpenContent['type'],
    events: Events,
  ): OpenContent {
    const known = item.contents.get(at);
    if (known !== undefined) {
      if (known.type !== type) throw otherItem();
      return known;
    }
    const extras = item.contents.size === 0 ? messageExtras(item.added) : {};
    const part = this.#start({ type, text: '', ...extras }, events);
    const open: OpenContent = { part, type, received: '', citations: 0 };
    item.contents.set(at, open);
    return open;
  }

  #call(event: JsonObject, kind: CallKind, events: Events): CallItem {
    const index = this.#outputIndex(event);
    const known = this.#items.get(index);
    if (known !== undefined && known.kind !== 'call') throw otherItem();
    const type = kind === 'custom' ? 'custom_tool_call' : 'function_call';
    const item = known ?? this.#open(index, { type });
    if (item.kind !== 'call') throw otherItem();
    this.#startCall(item, item.added, events);
    return item;
  }

  /** A call without a name or an id waits for its item, and so does one that may contain several calls. */
  #startCall(item: CallItem, named: JsonObject, events: Events): void {
    if (item.part !== undefined || item.done) return;
    const name = textOf(named['name']);
    if (name === '' || textOf(named['call_id']) === '' || this.#mayBeSeveral(name)) return;
    this.hasCalls = true;
    item.part = this.#start(callStart(item.call, named), events);
    push(item.part, callPiece(item, item.received, true), events);
  }

  #mayBeSeveral(name: string): boolean {
    return name === wrapperName && this.declared.size > 0 && !this.declared.has(name);
  }

  #completeCall(item: CallItem, whole: string, events: Events): void {
    if (item.part === undefined) return;
    const rest = restOf(item.received, whole);
    item.received += rest;
    push(item.part, callPiece(item, rest), events);
  }

  /** Begins the part of reasoning with its first text, whose source is known then. */
  #begin(item: ReasoningItem, events: Events): number {
    if (item.part === undefined) {
      const extras = reasoningExtras(item.added, item.source === 'content');
      item.part = this.#start({ type: 'reasoning', text: '', ...extras }, events);
    }
    return item.part;
  }

  /** @param isCut by its status. The last event tells whether the answer was. */
  #done(
    index: number,
    item: JsonObject,
    { events, isCut }: { readonly events: Events; readonly isCut: boolean },
  ): void {
    const known = this.#items.get(index);
    if (known?.done === true) return;
    if (known === undefined || known.kind === 'other') {
      return this.#unseen(index, item, { events, isCut });
    }
    if (isObject(item) && textOf(item['type']) !== '' && newItem(item).kind !== known.kind) {
      throw otherItem();
    }
    switch (known.kind) {
      case 'message':
        this.#messageDone(known, item, events);
        break;
      case 'reasoning':
        this.#reasoningDone(known, item, events);
        break;
      case 'call':
        if (known.part === undefined) return this.#unseen(index, item, { events, isCut });
        this.#completeCall(known, callText(known.call, item), events);
        if (isCut && known.call === 'custom') return;
        break;
      default:
        known satisfies never;
    }
    this.#close(known, events);
  }

  /** An item without earlier events. */
  #unseen(
    index: number,
    item: JsonObject,
    { events, isCut }: { readonly events: Events; readonly isCut: boolean },
  ): void {
    for (const part of itemParts(item, this.declared, isCut)) {
      if (part.type === 'tool-call') this.hasCalls = true;
      events.push({ type: 'part-end', index: this.#start(part, events) });
    }
    if (isSearch(item)) {
      this.searches += 1;
      events.push({ type: 'usage', usage: { webSearches: this.searches } });
    }
    if (isFileSearch(item)) {
      this.#fileSearches += 1;
      events.push({ type: 'usage', usage: { fileSearches: this.#fileSearches } });
    }
    this.#items.set(index, { kind: 'other', added: item, done: true });
  }

  #messageDone(known: MessageItem, item: JsonObject, events: Events): void {
    messageContent(item).forEach((content, at) => {
      if (isOtherContent(content)) {
        const extras = known.contents.size === 0 ? messageExtras(known.added) : {};
        const part: Part = {
          type: 'opaque',
          dialect: 'openai-responses',
          value: content,
          ...extras,
        };
        events.push({ type: 'part-end', index: this.#start(part, events) });
        return;
      }
      const type = content['type'] === 'refusal' ? 'refusal' : 'text';
      const open = this.#contentOf(known, at, type, events);
      complete(open, contentText(content), events);
      for (const citation of readAnnotations(content['annotations']).slice(open.citations)) {
        open.citations += 1;
        events.push({ type: 'part-citation', index: open.part, citation });
      }
    });
  }

  #reasoningDone(known: ReasoningItem, item: JsonObject, events: Events): void {
    const summary = textsOf(item['summary'], 'a summary');
    const content = textsOf(item['content'], 'a content');
    known.source ??= summary === '' && content !== '' ? 'content' : 'summary';
    const whole = known.source === 'content' ? content : summary;
    const rest = restOf(known.received, whole);
    const signature = encryptedContent(item);
    if (rest === '' && signature === '' && known.part === undefined) return;
    const part = this.#begin(known, events);
    addReasoning(known, rest, part, events);
    push(part, { field: 'signature', delta: signature }, events);
  }

  /** Ends the parts of an item. @param isCut the answer was cut within it */
  #close(item: Item, events: Events, isCut = false): void {
    if (item.done) return;
    item.done = true;
    switch (item.kind) {
      case 'message':
        for (const { part } of item.contents.values()) {
          events.push({ type: 'part-end', index: part });
        }
        return;
      case 'call':
        if (item.part === undefined) return;
        // A text does not show that it was cut. Without its end no client runs the call.
        if (item.call === 'custom' && !isCut) {
          push(item.part, { field: 'arguments', delta: '"}' }, events);
        }
        events.push({ type: 'part-end', index: item.part });
        return;
      case 'reasoning':
        if (item.part !== undefined) events.push({ type: 'part-end', index: item.part });
        return;
      case 'other':
        return;
      default:
        item satisfies never;
    }
  }

  #start(part: Part, events: Events): number {
    const index = this.#next++;
    events.push({ type: 'part-start', index, part });
    return index;
  }
}

function newItem(added: JsonObject): Item {
  const call = clientCall(added);
  if (call === 'function' || call === 'custom') {
    return { kind: 'call', added, call, part: undefined, received: '', done: false };
  }
  switch (added['type']) {
    case 'message':
      return { kind: 'message', added, contents: new Map(), done: false };
    case 'reasoning': {
      const nothing = { part: undefined, source: undefined, index: 0, received: '' };
      return { kind: 'reasoning', added, ...nothing, done: false };
    }
    default:
      return { kind: 'other', added, done: false };
  }
}

/** A missing index is the first. @throws GatewayError `upstream_invalid` for one that is no number. */
function indexOf(index: Json | undefined, name: string): number {
  if (typeof index === 'number') return index;
  if (index === undefined || index === null) return 0;
  throw wrongType(`the ${name} of an event`);
}

function otherItem(): GatewayError {
  return new GatewayError('upstream_invalid', 'The upstream sent an event of another item.');
}

/**
 * The rest of a text that deltas did not send.
 * @param whole the text of the last event; `''` = the event does not repeat it.
 * @throws GatewayError `upstream_invalid` if it is another text.
 */
function restOf(received: string, whole: string): string {
  if (whole === '' || whole === received) return '';
  if (whole.startsWith(received)) return whole.slice(received.length);
  throw new GatewayError(
    'upstream_invalid',
    'The upstream ended a part of the answer with another text than it had streamed.',
  );
}

function complete(open: OpenContent, whole: string, events: Events): void {
  const rest = restOf(open.received, whole);
  open.received += rest;
  push(open.part, { field: 'text', delta: rest }, events);
}

function addReasoning(item: ReasoningItem, delta: string, part: number, events: Events): void {
  item.received += delta;
  push(part, { field: 'text', delta }, events);
}

type Delta = Pick<Extract<GenerationEvent, { readonly type: 'part-delta' }>, 'field' | 'delta'>;

function push(index: number, { field, delta }: Delta, events: Events): void {
  if (delta !== '') events.push({ type: 'part-delta', index, field, delta });
}

/** A free text is the only member of the canonical arguments. */
function callPiece({ call }: CallItem, text: string, begins = false): Delta {
  if (call !== 'custom') return { field: 'arguments', delta: text };
  const escaped = JSON.stringify(text).slice(1, -1);
  return { field: 'arguments', delta: begins ? `{"input":"${escaped}` : escaped };
}

/** The arguments of a call's item in the form of its deltas. */
function callText(kind: CallKind, item: JsonObject): string {
  return kind === 'custom' ? writtenText(item['input']) : argumentsOf(kind, item);
}
