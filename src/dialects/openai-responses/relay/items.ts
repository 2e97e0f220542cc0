/** The items of a relayed stream so far. The gateway may have to add an event between, or the end of an item. */
import { isObject, type JsonObject, textOf } from '../../../json/value.ts';
import { callKindOf, streamedIndexes } from '../items.ts';
import { itemEvents, type ItemEvent } from '../replay.ts';
import { tryParseObject } from '../../../json/parse.ts';

interface OpenItem {
  readonly output: number;
  readonly item: JsonObject;
  /** An event with a piece of the item. */
  delta: string | undefined;
  /** The item's events so far, if the gateway may have to end it. */
  readonly events: string[] | undefined;
}

interface StreamedItem {
  /** The item of its first event. */
  readonly first: JsonObject;
  /** The id that the client knows; `''` = none. */
  readonly id: string;
  begun: boolean;
  done: JsonObject | undefined;
}

/** How the items of the last event differ from those of earlier events. */
export interface SettledItems {
  /** Events that must come before the last one. */
  readonly events: readonly ItemEvent[];
  /** The corrected items of the last event. */
  readonly output: readonly JsonObject[];
}

export class RelayedItems {
  readonly #mayBeCut: boolean;
  readonly #ownId: (item: JsonObject) => string | undefined;
  /** By output index. */
  readonly #items = new Map<number, StreamedItem>();
  /** Output indexes of pieces that arrived before the start of their item. */
  readonly #loose = new Set<number>();
  #changing = false;
  #open: OpenItem | undefined;

  /**
   * @param mayBeCut the gateway may end the stream itself, so it retains the texts of an open item.
   * @param ownId the gateway's id for an item; undefined = the upstream's stays.
   */
  constructor(mayBeCut: boolean, ownId: (item: JsonObject) => string | undefined) {
    this.#mayBeCut = mayBeCut;
    this.#ownId = ownId;
  }

  /** The items that are done, in order. */
  get done(): readonly JsonObject[] {
    return [...this.#items]
      .toSorted(([a], [b]) => a - b)
      .flatMap(([, { done }]) => (done === undefined ? [] : [done]));
  }

  /**
   * Whether events have ids that the client does not know. GitHub Copilot sends another id in each event of an item.
   */
  get changing(): boolean {
    return this.#changing;
  }

  /** The event with the client's id of its item; the same object if it has that id already. */
  steady(event: JsonObject): JsonObject {
    const { output_index: output, item_id: named, item } = event;
    const id = typeof output === 'number' ? this.#idOf(output, item) : '';
    if (id === '') return event;
    const inner = isObject(item) && item['id'] !== id;
    if (!inner && (named === undefined || named === id)) return event;
    this.#changing = true;
    return inner ? { ...event, item: { ...item, id } } : { ...event, item_id: id };
  }

  /** An event with a piece of the open item. */
  get piece(): string | undefined {
    return this.#open?.delta;
  }

  /** Adds the data of an event that continues the open text. */
  more(data: string): void {
    const open = this.#open;
    if (open === undefined) return;
    open.delta ??= data;
    open.events?.push(data);
  }

  /** @returns the events that must come before this one, if it ends an item that never began */
  see(
    type: string,
    { output_index: output, item }: JsonObject,
    data: string,
  ): readonly ItemEvent[] {
    if (typeof output !== 'number') return [];
    if (type === 'response.output_item.added' && isObject(item)) this.#begin(output, item);
    else if (type === 'response.output_item.done' && isObject(item)) {
      const begun = this.#items.get(output)?.begun === true;
      this.#end(output, item);
      return begun ? [] : this.#whole(output, item).slice(0, -1);
    } else if (this.#open?.output === output) this.#noteDelta(this.#open, type, data);
    else if (!this.#items.has(output)) this.#loose.add(output);
    return [];
  }

  /**
   * The last event arrived. Items without an end event end now, since clients take content from the events that end
   * items.
   * @param output the items of the last event
   * @param cut the answer was cut off: an incomplete call gets no end event, so that no client runs it.
   */
  settle(output: readonly JsonObject[], cut: boolean): SettledItems {
    const events: ItemEvent[] = [];
    const seen = [...this.#items].map(([at, { first }]) => [at, first] as const);
    const indexes = streamedIndexes(output, seen);
    const settled = output.map((item, index) => {
      const at = indexes[index] ?? this.#free(index);
      const known = this.#items.get(at);
      if (known?.done !== undefined) return this.#changing ? known.done : item;
      const id = this.#idOf(at, item);
      const whole = id === '' ? item : { ...item, id };
      if (cut && callKindOf(item['type']) !== undefined && item['status'] !== 'completed') {
        return whole;
      }
      if (known === undefined) events.push(...this.#whole(at, whole));
      else events.push(['response.output_item.done', { output_index: at, item: whole }]);
      this.#end(at, whole);
      return whole;
    });
    return { events, output: settled };
  }

  /** Ends the open message. Other open items get no end, so that no client runs an incomplete call. */
  cut(): CutMessage | undefined {
    if (this.#open === undefined) return undefined;
    const { output, item, events = [] } = this.#open;
    const cut = cutMessage(output, item, events);
    if (cut !== undefined) this.#end(output, cut.item);
    return cut;
  }

  #idOf(output: number, item: unknown): string {
    const known = this.#items.get(output);
    if (known !== undefined) return known.id;
    if (!isObject(item)) return '';
    const id = this.#ownId(item) ?? textOf(item['id']);
    this.#items.set(output, { first: item, id, begun: false, done: undefined });
    return id;
  }

  #free(index: number): number {
    return this.#items.has(index) ? Math.max(...this.#items.keys()) + 1 : index;
  }

  #begin(output: number, item: JsonObject): void {
    const known = this.#items.get(output);
    if (known !== undefined) known.begun = true;
    this.#open = { output, item, delta: undefined, events: this.#mayBeCut ? [] : undefined };
  }

  #end(output: number, item: JsonObject): void {
    const known = this.#items.get(output);
    if (known !== undefined) known.done = item;
    if (this.#open?.output === output) this.#open = undefined;
  }

  /** The events of an item that never began, without the events of texts whose pieces were already sent. */
  #whole(output: number, item: JsonObject): readonly ItemEvent[] {
    if (!this.#loose.has(output)) return itemEvents(item, output);
    const members = { output_index: output, item };
    return [
      ['response.output_item.added', members],
      ['response.output_item.done', members],
    ];
  }

  #noteDelta(open: OpenItem, type: string, data: string): void {
    open.events?.push(data);
    if (type.endsWith('.delta')) open.delta ??= data;
    else if (type.endsWith('.done')) open.delta = undefined;
  }
}

// The end of a message that the gateway cuts at its cap. Clients take content from the events that end items.

interface CutPart {
  readonly kind: 'output_text' | 'refusal';
  text: string;
  readonly annotations: JsonObject[];
  done: boolean;
}

export interface CutMessage {
  readonly item: JsonObject;
  /** The missing events, each with its type. */
  readonly events: readonly (readonly [type: string, members: JsonObject])[];
}

/**
 * Ends a message with the text that arrived.
 * @param item the item of its first event.
 * @param data data of all later events of the item. Only those of texts are used.
 * @returns undefined for another item, and for a message without text.
 */
export function cutMessage(
  output: number,
  item: JsonObject,
  data: readonly string[],
): CutMessage | undefined {
  if (item['type'] !== 'message') return undefined;
  const parts = new Map<number, CutPart>();
  for (const text of data) {
    const event = tryParseObject(text);
    if (event !== undefined) addTo(parts, event);
  }
  if (parts.size === 0) return undefined;
  const events: [string, JsonObject][] = [];
  const content = [...parts].map(([index, part]) => {
    const written = contentOf(part);
    const location = { item_id: item['id'] ?? '', output_index: output, content_index: index };
    if (!part.done) {
      const { [part.kind === 'refusal' ? 'refusal' : 'text']: whole = '' } = written;
      events.push(
        part.kind === 'refusal'
          ? ['response.refusal.done', { ...location, refusal: whole }]
          : ['response.output_text.done', { ...location, text: whole, logprobs: [] }],
        ['response.content_part.done', { ...location, part: written }],
      );
    }
    return written;
  });
  const ended = { ...item, status: 'completed', content };
  events.push(['response.output_item.done', { output_index: output, item: ended }]);
  return { item: ended, events };
}

function addTo(parts: Map<number, CutPart>, event: JsonObject): void {
  const { content_index: given, annotation } = event;
  const index = typeof given === 'number' ? given : 0;
  const type = textOf(event['type']).replace('response.', '');
  const part = parts.get(index);
  switch (type) {
    case 'output_text.delta':
    case 'refusal.delta': {
      const kind = type === 'refusal.delta' ? 'refusal' : 'output_text';
      const begun = part ?? { kind, text: '', annotations: [], done: false };
      begun.text += textOf(event['delta']);
      parts.set(index, begun);
      return;
    }
    case 'output_text.annotation.added':
      if (isObject(annotation)) part?.annotations.push(annotation);
      return;
    case 'content_part.done':
      if (part !== undefined) part.done = true;
      return;
    default:
  }
}

function contentOf({ kind, text, annotations }: CutPart): JsonObject {
  return kind === 'refusal'
    ? { type: kind, refusal: text }
    : { type: kind, text, annotations, logprobs: [] };
}
