/** Streams of the worst Responses servers: what they meant to say, and what they do to its events. */
import * as fc from 'fast-check';
import type { Json, JsonObject } from '../../src/json/value.ts';
import { responseEvents } from '../corpus/response-events.ts';
import {
  callItem,
  customCallItem,
  reasoningItem,
  responsesDocument,
  textItem,
} from '../upstream/responses.ts';
import { framing, type Framing, type SentEvent } from './framing.ts';

/** One change of the events; places are taken modulo their number. */
type Change =
  | { readonly how: 'missing' | 'doubled' | 'later'; readonly at: number }
  | { readonly how: 'unknown'; readonly at: number; readonly event: JsonObject }
  | { readonly how: 'member'; readonly at: number; readonly which: number; readonly by: Json };

export interface OddResponses {
  readonly items: readonly JsonObject[];
  readonly changes: readonly Change[];
  /** Ids of items: as the service writes them, another one in each event (GitHub Copilot), or none. */
  readonly ids: 'steady' | 'changing' | 'absent';
  /** The last event has no items, as that of Codex's own backend. */
  readonly bareEnd: boolean;
  /** Lines with the names of events. */
  readonly named: boolean;
  readonly form: Framing;
}

const word = fc.string({ minLength: 1, maxLength: 12 });

const item: fc.Arbitrary<(id: string) => JsonObject> = fc.oneof(
  word.map((text) => () => textItem(text)),
  word.map((text) => (id: string) => reasoningItem(text, id)),
  word.map((text) => (id: string) => callItem(id, 'look', JSON.stringify({ text }))),
  word.map((text) => (id: string) => customCallItem(id, 'run', text)),
);

const output = fc
  .array(item, { minLength: 1, maxLength: 4 })
  .map((makers) =>
    makers.map((make, index) => ({ ...make(`call_${index}`), id: `item_${index}` })),
  );

const at = fc.nat({ max: 1000 });

/** Events that say nothing of the answer. */
const unknownEvent: fc.Arbitrary<JsonObject> = fc.constantFrom<JsonObject>(
  { type: 'ping' },
  { type: 'keepalive', sequence_number: 3 },
  { type: 'response.marvel.delta', output_index: 0, item_id: 'item_0', delta: 'Marvel' },
  { type: 'response.output_item.marvel', output_index: 9, item: { type: 'marvel' } },
  { type: 'response.rate_limits.updated', rate_limits: [] },
);

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ how: fc.constantFrom('missing', 'doubled', 'later'), at }),
  fc.record({ how: fc.constant('unknown'), at, event: unknownEvent }),
  fc.record({
    how: fc.constant('member'),
    at,
    which: fc.nat({ max: 20 }),
    by: fc.constantFrom<Json>(5, true, null, 'word', [5], ['word'], { odd: 1 }),
  }),
);

/** A stream is changed in many places while its last event repeats the whole answer, and in one where it does not. */
export const oddResponses: fc.Arbitrary<OddResponses> = fc.boolean().chain((bareEnd) =>
  fc.record({
    items: output,
    changes: fc.array(change, { maxLength: bareEnd ? 1 : 5 }),
    ids: fc.constantFrom('steady', 'changing', 'absent'),
    bareEnd: fc.constant(bareEnd),
    named: fc.boolean(),
    form: framing,
  }),
);

/** Events whose change leaves others that tell the same. */
function isRepeated({ type }: JsonObject): boolean {
  return type !== 'response.output_item.done';
}

/** The events as the server sends them; the last one stays the last. */
export function sentEvents({
  items,
  changes,
  ids,
  bareEnd,
  named,
}: OddResponses): readonly SentEvent[] {
  const response = responsesDocument(items);
  const whole = responseEvents(response, []);
  const last = { ...whole.at(-1), response: bareEnd ? { ...response, output: [] } : response };
  const before = changes.reduce<readonly JsonObject[]>(
    (events, one) => changed(events, one, bareEnd),
    whole.slice(0, -1).map((event, index) => withIds(event, ids, index)),
  );
  const all: readonly JsonObject[] = [...before, last];
  return all.map((data) => {
    const { type } = data;
    return named && typeof type === 'string' ? { name: type, data } : { data };
  });
}

function changed(
  events: readonly JsonObject[],
  one: Change,
  bareEnd: boolean,
): readonly JsonObject[] {
  const at = one.at % events.length;
  const event = events[at] ?? {};
  if (one.how === 'unknown') return events.toSpliced(at, 0, one.event);
  if (one.how === 'doubled') return events.toSpliced(at, 0, event);
  if (bareEnd && !isRepeated(event)) return events;
  if (one.how !== 'member') {
    const without = events.toSpliced(at, 1);
    return one.how === 'missing' ? without : without.toSpliced(at + 1, 0, event);
  }
  const keys = Object.keys(event);
  const key = keys[one.which % keys.length] ?? '';
  // Another value of the same type is another answer.
  if (typeOf(event[key]) === typeOf(one.by)) return events;
  return events.with(at, { ...event, [key]: one.by });
}

function typeOf(value: Json | undefined): string {
  return Array.isArray(value) ? 'array' : typeof value;
}

function withIds(event: JsonObject, ids: OddResponses['ids'], index: number): JsonObject {
  if (ids === 'steady') return event;
  const { item_id, item, ...rest } = event;
  const id = ids === 'changing' ? { id: `sealed_${index}` } : {};
  return {
    ...rest,
    ...(item_id === undefined || ids === 'absent' ? {} : { item_id: `sealed_${index}` }),
    ...(typeof item === 'object' && item !== null && !Array.isArray(item)
      ? { item: { ...withoutId(item), ...id } }
      : {}),
  };
}

function withoutId(value: Json): JsonObject {
  const { id: _id, ...rest } = value as JsonObject;
  return rest;
}
