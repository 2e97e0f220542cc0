/** Writes a stored response again: as the events of a stream, and as a list of its input items. */
import type { ItemPage } from '../../core/stored-response.ts';
import { isObject, type Json, type JsonObject, textOf, isArray } from '../../json/value.ts';
import { callKindOf, writtenText } from './items.ts';

/**
 * The events of a response that has ended, one text each.
 * @param after events up to this `sequence_number` are omitted. The last event is always written, since the stream that
 *   the client lost had more events than this one, and the client's number may be beyond it.
 */
export function replayEvents(response: JsonObject, after = -1): string {
  const events = new Events();
  const begun = { ...response, status: 'in_progress', output: [], usage: null };
  const open = { ...begun, incomplete_details: null, completed_at: null };
  events.add('response.created', { response: open });
  events.add('response.in_progress', { response: open });
  const { output, status } = response;
  listOf(output).forEach((item, at) => {
    for (const [type, members] of itemEvents(item, at)) events.add(type, members);
  });
  const end = status === 'incomplete' ? 'response.incomplete' : 'response.completed';
  return events.textAfter(after) + events.next(end, { response }, after);
}

class Events {
  readonly #all: string[] = [];

  add(type: string, members: JsonObject): void {
    this.#all.push(this.next(type, members));
  }

  /** @param after the event's number is above this one */
  next(type: string, members: JsonObject, after = -1): string {
    const sequence_number = Math.max(this.#all.length, after + 1);
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...members })}\n\n`;
  }

  textAfter(after: number): string {
    return this.#all.slice(after + 1).join('');
  }
}

/** An event without its sequence number. */
export type ItemEvent = readonly [type: string, members: JsonObject];

/** The events of a whole item. A call that was cut off gets no `done` event. @param at its output index */
export function itemEvents(item: JsonObject, at: number): readonly ItemEvent[] {
  const events: ItemEvent[] = [];
  const isCut = item['status'] === 'incomplete' && callKindOf(item['type']) !== undefined;
  const location = { output_index: at, item_id: textOf(item['id']) };
  events.push(['response.output_item.added', { output_index: at, item: begunItem(item) }]);
  switch (item['type']) {
    case 'message':
      listOf(item['content']).forEach((part, i) =>
        replayPart(events, part, { ...location, content_index: i }),
      );
      break;
    case 'reasoning':
      listOf(item['summary']).forEach((part, i) =>
        replaySummary(events, part, { ...location, summary_index: i }),
      );
      break;
    case 'function_call': {
      const text = writtenText(item['arguments']);
      events.push(['response.function_call_arguments.delta', { ...location, delta: text }]);
      const name = textOf(item['name']);
      events.push([
        'response.function_call_arguments.done',
        { ...location, name, arguments: text },
      ]);
      break;
    }
    case 'custom_tool_call': {
      const text = writtenText(item['input']);
      events.push(['response.custom_tool_call_input.delta', { ...location, delta: text }]);
      events.push(['response.custom_tool_call_input.done', { ...location, input: text }]);
      break;
    }
    default:
  }
  events.push(['response.output_item.done', { output_index: at, item }]);
  return isCut ? events.filter(([type]) => !type.endsWith('.done')) : events;
}

/** The item without its text, as its first event has it. */
function begunItem(item: JsonObject): JsonObject {
  switch (item['type']) {
    case 'message':
      return { ...item, status: 'in_progress', content: [] };
    case 'reasoning':
      return { ...item, summary: [] };
    case 'function_call':
      return { ...item, status: 'in_progress', arguments: '' };
    case 'custom_tool_call':
      return { ...item, status: 'in_progress', input: '' };
    default:
      return item;
  }
}

function replayPart(events: ItemEvent[], part: JsonObject, location: JsonObject): void {
  if (part['type'] === 'refusal') {
    const text = textOf(part['refusal']);
    events.push(['response.content_part.added', { ...location, part: { ...part, refusal: '' } }]);
    events.push(['response.refusal.delta', { ...location, delta: text }]);
    events.push(['response.refusal.done', { ...location, refusal: text }]);
  } else {
    const text = textOf(part['text']);
    const empty = { ...part, text: '', annotations: [] };
    events.push(['response.content_part.added', { ...location, part: empty }]);
    events.push(['response.output_text.delta', { ...location, delta: text, logprobs: [] }]);
    listOf(part['annotations']).forEach((annotation, i) =>
      events.push([
        'response.output_text.annotation.added',
        {
          ...location,
          annotation_index: i,
          annotation,
        },
      ]),
    );
    events.push(['response.output_text.done', { ...location, text, logprobs: [] }]);
  }
  events.push(['response.content_part.done', { ...location, part }]);
}

function replaySummary(events: ItemEvent[], part: JsonObject, location: JsonObject): void {
  const text = textOf(part['text']);
  events.push([
    'response.reasoning_summary_part.added',
    { ...location, part: { ...part, text: '' } },
  ]);
  events.push(['response.reasoning_summary_text.delta', { ...location, delta: text }]);
  events.push(['response.reasoning_summary_text.done', { ...location, text }]);
  events.push(['response.reasoning_summary_part.done', { ...location, part }]);
}

function listOf(value: Json | undefined): readonly JsonObject[] {
  return isArray(value) ? value.filter(isObject) : [];
}

/**
 * One page of items.
 * @param items the oldest first, each with a unique id
 * @returns undefined when `after` names none of them
 */
export function itemList(
  items: readonly JsonObject[],
  { limit, order, after }: ItemPage,
): JsonObject | undefined {
  const listed = items.map(listedItem);
  if (order === 'desc') listed.reverse();
  const found = after === undefined ? -1 : listed.findIndex(({ id }) => id === after);
  if (after !== undefined && found === -1) return undefined;
  const data = listed.slice(found + 1, found + 1 + limit);
  return {
    object: 'list',
    data,
    first_id: data.at(0)?.['id'] ?? null,
    last_id: data.at(-1)?.['id'] ?? null,
    has_more: listed.length > found + 1 + data.length,
  };
}

/** An item in the form of the service's list: with a type and a status, and the text of a message as a part. */
function listedItem(item: JsonObject): JsonObject {
  const { type, content } = item;
  const named = { ...item, type: type ?? 'message' };
  if (named.type !== 'message') return named;
  const kind = item['role'] === 'assistant' ? 'output_text' : 'input_text';
  const parts = typeof content === 'string' ? [{ type: kind, text: content }] : (content ?? []);
  return { ...named, status: item['status'] ?? 'completed', content: parts };
}
