/** What a relayed stream has told of its items: the gateway may have to write an event between, or the end. */
import { isObject, type JsonObject } from '../../json/value.ts';
import { cutMessage, type CutMessage } from './cut-message.ts';

interface OpenItem {
  readonly output: number;
  readonly item: JsonObject;
  /** An event with a piece of it. */
  delta: string | undefined;
  /** Its events so far, where the gateway may have to end it. */
  readonly kept: string[] | undefined;
}

export class RelayedItems {
  readonly #mayBeCut: boolean;
  readonly #done: (JsonObject | undefined)[] = [];
  /** The ids of the items whose beginning was told, by output index. */
  readonly #added = new Map<number, string>();
  #changing = false;
  #open: OpenItem | undefined;

  /** @param mayBeCut the gateway may end the stream itself: the texts of an open item are kept. */
  constructor(mayBeCut: boolean) {
    this.#mayBeCut = mayBeCut;
  }

  /** The items that are done, in order. */
  get done(): readonly JsonObject[] {
    return this.#done.filter((item) => item !== undefined);
  }

  /** Whether this upstream gives an item another id in each event, as GitHub Copilot does. */
  get changing(): boolean {
    return this.#changing;
  }

  /** The event with the id that its item began with; the same object where it has it. */
  steady(event: JsonObject): JsonObject {
    const { output_index: output, item_id: named, item } = event;
    const id = typeof output === 'number' ? this.#added.get(output) : undefined;
    if (id === undefined || id === '') return event;
    const inner = isObject(item) && item['id'] !== id;
    if (!inner && (named === undefined || named === id)) return event;
    this.#changing = true;
    return inner ? { ...event, item: { ...item, id } } : { ...event, item_id: id };
  }

  /** An event with a piece of what is open. */
  get piece(): string | undefined {
    return this.#open?.delta;
  }

  /** The data of an event that goes on with the text that is open. */
  more(data: string): void {
    const open = this.#open;
    if (open === undefined) return;
    open.delta ??= data;
    open.kept?.push(data);
  }

  /** @returns whether an item is told at its end only. */
  see(type: string, { output_index: output, item }: JsonObject, data: string): boolean {
    if (typeof output !== 'number') return false;
    if (type === 'response.output_item.added' && isObject(item)) this.#begin(output, item);
    else if (type === 'response.output_item.done' && isObject(item)) return this.#end(output, item);
    else if (this.#open?.output === output) this.#goOn(this.#open, type, data);
    return false;
  }

  /** Ends the message that is open; whatever else is open has no end, so that no client runs half a call. */
  cut(): CutMessage | undefined {
    if (this.#open === undefined) return undefined;
    const { output, item, kept = [] } = this.#open;
    const cut = cutMessage(output, item, kept);
    if (cut !== undefined) this.#done[output] = cut.item;
    return cut;
  }

  #begin(output: number, item: JsonObject): void {
    this.#added.set(output, typeof item['id'] === 'string' ? item['id'] : '');
    this.#open = { output, item, delta: undefined, kept: this.#mayBeCut ? [] : undefined };
  }

  #end(output: number, item: JsonObject): boolean {
    this.#done[output] = item;
    if (this.#open?.output === output) this.#open = undefined;
    return !this.#added.has(output);
  }

  #goOn(open: OpenItem, type: string, data: string): void {
    open.kept?.push(data);
    if (type.endsWith('.delta')) open.delta ??= data;
    else if (type.endsWith('.done')) open.delta = undefined;
  }
}
