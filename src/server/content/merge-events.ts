/**
 * The events of a stream with those put together that only go on where another one began: hundreds of pieces
 * of a text become one event with all of it. It stays the format of the wire, is short enough to be read, and
 * shows a key whole that came in pieces, so that it is found.
 */
import type { Json, JsonObject } from '../../core/conversation.ts';
import { isObject, tryParseObject } from '../../core/json.ts';
import { SseSplitter } from '../../wire/sse.ts';
import { names, wholeTexts } from './whole-texts.ts';

/** They differ from piece to piece and say nothing of what is said; the last ones stand. */
const passing: ReadonlySet<string> = new Set(['usage', 'obfuscation', 'timings', 'created']);
/** Pieces of the same text once more, which would keep pieces apart. */
const leftOut: ReadonlySet<string> = new Set(['logprobs']);

/** @throws GatewayError for what are no events. */
export function mergedEvents(bytes: Buffer): readonly Json[] {
  const splitter = new SseSplitter();
  const frames = [...splitter.push(bytes)];
  const last = splitter.end();
  if (last !== undefined) frames.push(last);
  const merger = new Merger();
  for (const { data } of frames) if (data !== undefined && data !== '') merger.add(data);
  return wholeTexts(merger.events);
}

class Merger {
  readonly events: Json[] = [];
  /** By what an event is but for the text in it. */
  readonly #places = new Map<string, number>();

  add(data: string): void {
    const parsed = tryParseObject(data);
    if (parsed === undefined) {
      this.events.push(data);
      return;
    }
    const event = without(parsed, leftOut);
    const kind = JSON.stringify(signature(without(event, passing), false));
    const place = hasDelta(event) ? this.#places.get(kind) : undefined;
    const before = place === undefined ? undefined : this.events[place];
    if (place === undefined || !isObject(before)) {
      this.#places.set(kind, this.events.push(event) - 1);
      return;
    }
    this.events[place] = joined(before, event, false);
  }
}

function without(value: JsonObject, members: ReadonlySet<string>): JsonObject {
  const walk = (each: Json): Json => {
    if (Array.isArray(each)) return each.map((item: Json) => walk(item));
    if (!isObject(each)) return each;
    const kept = Object.entries(each).filter(([name]) => !members.has(name));
    return Object.fromEntries(kept.map(([name, member]) => [name, walk(member ?? null)]));
  };
  const walked = walk(value);
  return isObject(walked) ? walked : {};
}

function hasDelta(value: Json): boolean {
  if (Array.isArray(value)) return value.some((each: Json) => hasDelta(each));
  if (!isObject(value)) return false;
  return Object.entries(value).some(
    ([name, member]) => (name === 'delta' && isObject(member)) || hasDelta(member ?? null),
  );
}

/** The value without the texts that a `delta` adds. */
function signature(value: Json, inDelta: boolean): Json {
  if (typeof value === 'string') return inDelta ? '' : value;
  if (Array.isArray(value)) return value.map((each: Json) => signature(each, inDelta));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      names.has(name) ? (member ?? null) : signature(member ?? null, inDelta || name === 'delta'),
    ]),
  );
}

/** Both have one signature. */
function joined(before: JsonObject, next: JsonObject, inDelta: boolean): JsonObject {
  const entries = Object.entries(next).map(([name, value]): [string, Json] => {
    const old = before[name];
    const member = value ?? null;
    const within = inDelta || name === 'delta';
    return [name, names.has(name) ? member : joinedValue(old, member, within)];
  });
  return { ...before, ...Object.fromEntries(entries) };
}

function joinedValue(before: Json | undefined, next: Json, inDelta: boolean): Json {
  if (typeof before === 'string' && typeof next === 'string') return inDelta ? before + next : next;
  if (Array.isArray(before) && Array.isArray(next)) {
    return next.map((each: Json, i) => joinedValue(before[i], each, inDelta));
  }
  if (isObject(before) && isObject(next)) return joined(before, next, inDelta);
  return next;
}
