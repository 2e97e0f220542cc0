/** What a call said, made fit to be stored. */
import { isUtf8 } from 'node:buffer';
import { withoutKeys } from '../../core/secret.ts';
import { valueMask } from '../../gateway/mask-credentials.ts';
import { tryParse, tryParseObject } from '../../json/parse.ts';
import { type Json, type JsonObject, isObject } from '../../json/value.ts';
import { SseSplitter } from '../../wire/sse.ts';
import type { BodyForm, LoggedBody, LoggedContent, SeenBody, SeenCall } from './sealed-content.ts';

/** The stored length of an error body. The rest adds little. */
const maxErrorLength = 16_384;

/**
 * @param most characters of each body
 * @param redactor removes secrets, and reports whether there were any
 */
export function loggedContent(
  seen: SeenCall,
  most: number,
  redactor = new Redactor(seen.secrets),
): LoggedContent {
  const { request, answer, attempts } = seen;
  // The gateway's own: it writes no secret into any.
  return {
    request: {
      method: request.method,
      path: redactor.text(request.path),
      headers: pairs(request.headers).map(([name, value]) =>
        known.has(name) || name.startsWith(knownPrefix)
          ? { name: redactor.text(name), value: shown(value, redactor) }
          : { name: redactor.text(name), value: null },
      ),
      body: request.body === undefined ? null : loggedBody(request.body, { redactor, most }),
    },
    answer:
      answer === undefined
        ? null
        : {
            status: answer.status,
            headers: pairs(answer.headers).map(([name, value]) => ({
              name,
              value: shown(value, redactor),
            })),
            body: loggedBody(answer.body, { redactor, most }, isStream(answer.headers)),
            whole: answer.whole,
          },
    attempts: attempts.map(({ target, status, error }) => {
      const bytes = new TextEncoder().encode(error);
      const body = { bytes, length: bytes.length };
      const options = { redactor, most: Math.min(most, maxErrorLength) };
      return { target, status: status ?? null, body: loggedBody(body, options) };
    }),
  };
}

function isStream(headers: readonly string[]): boolean {
  return headers.some(
    (value, i) =>
      i % 2 === 1 &&
      headers[i - 1]?.toLowerCase() === 'content-type' &&
      value.startsWith('text/event-stream'),
  );
}

// A body as it is stored: read for what it is, without secrets and media, under a limit.

interface BodyOptions {
  readonly redactor: Redactor;
  /** Characters of JSON that are stored; of what is longer beginning and end. */
  readonly most: number;
}

type Read = Pick<LoggedBody, 'form' | 'content'>;

function loggedBody(
  { bytes, length }: SeenBody,
  { redactor, most }: BodyOptions,
  isStream = false,
): LoggedBody {
  const { form, content } = read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length), {
    redactor,
    isStream,
  });
  const cut = bytes.length < length;
  const json = JSON.stringify(content);
  if (json.length <= most) return { bytes: length, cut, form, content };
  return { bytes: length, cut: true, form: 'text', content: ends(textOf(form, content), most) };
}

function read(
  bytes: Buffer,
  { redactor, isStream }: { readonly redactor: Redactor; readonly isStream: boolean },
): Read {
  if (!isUtf8(bytes)) {
    // Cut within a character it is text all the same.
    return { form: 'text', content: redactor.text(bytes.toString('utf8')) };
  }
  const events = isStream ? eventsOf(bytes) : undefined;
  if (events !== undefined) {
    return { form: 'events', content: events.map((event) => redactor.json(event)) };
  }
  const text = bytes.toString('utf8');
  const value = tryParse(text);
  if (value === undefined) return { form: 'text', content: redactor.text(text) };
  return { form: 'json', content: redactor.json(value) };
}

function eventsOf(bytes: Buffer): readonly Json[] | undefined {
  try {
    return mergedEvents(bytes);
  } catch {
    // Too long, or no events: it is kept as text.
    return undefined;
  }
}

function textOf(form: BodyForm, content: Json): string {
  if (form === 'text' && typeof content === 'string') return content;
  if (!Array.isArray(content)) return JSON.stringify(content, null, 2);
  return content.map((each: Json) => JSON.stringify(each)).join('\n');
}

/** The end of a prompt has the question, the end of an answer shows how it ended. */
function ends(text: string, most: number): string {
  const half = Math.floor(most / 2);
  const left = text.length - 2 * half;
  const front = text.slice(0, half).replace(/[\ud800-\udbff]$/, '');
  const back = text.slice(-half).replace(/^[\udc00-\udfff]/, '');
  return `${front}\n… ${left} characters left out …\n${back}`;
}

// Headers as they are stored: of a request only those that are known to hold no secret (S13).

const known: ReadonlySet<string> = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'anthropic-beta',
  'anthropic-version',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'expect',
  'host',
  'openai-beta',
  'traceparent',
  'transfer-encoding',
  'user-agent',
  'x-app',
  'x-client-request-id',
  'x-gateway-tags',
]);
/** Headers by which the official clients describe themselves. */
const knownPrefix = 'x-stainless-';

const maxLength = 1024;

function pairs(flat: readonly string[]): readonly (readonly [string, string])[] {
  const names = flat.filter((_, i) => i % 2 === 0);
  return names.map((name, i) => [name.toLowerCase(), flat[2 * i + 1] ?? ''] as const);
}

function shown(value: string, redactor: Redactor): string {
  return redactor.text(value).slice(0, maxLength);
}

// The events of a stream with those put together that only continue where another one began: hundreds of pieces
// of a text become one event with all of it. It stays the format of the wire, is short enough to be read, and
// shows a key whole that came in pieces, so that it is found.

/** They differ from piece to piece and say nothing of what is said; the last ones are. */
const passing: ReadonlySet<string> = new Set(['usage', 'obfuscation', 'timings', 'created']);
/** Pieces of the same text once more, which would keep pieces apart. */
const leftOut: ReadonlySet<string> = new Set(['logprobs']);

/** @throws GatewayError for what are not events. */
export function mergedEvents(bytes: Buffer): readonly Json[] {
  const splitter = new SseSplitter();
  const frames = [...splitter.push(bytes)];
  const last = splitter.end();
  if (last !== undefined) frames.push(last);
  const merger = new Merger();
  for (const { data } of frames) if (data !== undefined && data !== '') merger.add(data);
  // The same events: each text whole in the first that has some of it, and empty in the others.
  const events = merger.events;
  const texts = new Map<string, WholeText>();
  const reader = new EventTexts((path, text) => {
    const known = texts.get(path);
    if (known !== undefined) known.text += text;
    else if (text !== '') texts.set(path, { at: reader.event, text });
    return text;
  });
  for (const event of events) reader.next(event);
  const writer = new EventTexts((path) => {
    const whole = texts.get(path);
    if (whole?.at !== writer.event) return '';
    whole.at = -1;
    return whole.text;
  });
  return events.map((event) => writer.next(event));
}

class Merger {
  readonly events: Json[] = [];
  /** By what an event is but for the text in it. */
  readonly #indexes = new Map<string, number>();

  add(data: string): void {
    const parsed = tryParseObject(data);
    if (parsed === undefined) {
      this.events.push(data);
      return;
    }
    const event = without(parsed, leftOut);
    const kind = JSON.stringify(signature(without(event, passing), false));
    const index = hasDelta(event) ? this.#indexes.get(kind) : undefined;
    const before = index === undefined ? undefined : this.events[index];
    if (index === undefined || !isObject(before)) {
      this.#indexes.set(kind, this.events.push(event) - 1);
      return;
    }
    this.events[index] = joined(before, event, false);
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

// Texts that a stream delivered in deltas, joined at the position of their first delta, so that a split key is
// found although the events differ: the first delta comes with a role, the last with a finish reason.

/** Texts that name what a piece belongs to. */
const names: ReadonlySet<string> = new Set(['type', 'id', 'name', 'role']);
/** They come in one piece, several after one another. */
const comeWhole: ReadonlySet<string> = new Set(['citation', 'citations', 'annotations']);
/** What a block begins with continues in its deltas. */
const pieceOf: ReadonlySet<string> = new Set(['delta', 'content_block']);

interface WholeText {
  /** Index of the event where it begins; -1 = it was written. */
  at: number;
  text: string;
}

type EachText = (path: string, text: string) => string;

/** Walks through the events of a stream, and says of every piece of a text to which it belongs. */
class EventTexts {
  /** The number of the event that is walked through. */
  event = -1;
  readonly #each: EachText;
  /** The id at an index of a list. Another id there begins another text. */
  readonly #ids = new Map<string, string>();

  constructor(each: EachText) {
    this.#each = each;
  }

  next(event: Json): Json {
    this.event += 1;
    const index = isObject(event) ? event['index'] : undefined;
    return this.#walk(event, JSON.stringify(index ?? null), false);
  }

  #walk(value: Json, path: string, inPiece: boolean): Json {
    if (typeof value === 'string') return inPiece ? this.#each(path, value) : value;
    if (Array.isArray(value)) {
      return value.map((each: Json, i) => this.#walk(each, this.#pathIn(path, each, i), inPiece));
    }
    if (!isObject(value)) return value;
    const walked = Object.entries(value).map(([name, member]): [string, Json] => {
      const given = member ?? null;
      if (names.has(name) || comeWhole.has(name)) return [name, given];
      const begins = pieceOf.has(name);
      const at = `${path}.${begins ? 'delta' : name}`;
      return [name, this.#walk(given, at, inPiece || begins)];
    });
    return Object.fromEntries(walked);
  }

  #pathIn(list: string, item: Json, position: number): string {
    if (!isObject(item)) return `${list}.${position}`;
    const { index, id } = item;
    const path = `${list}.${typeof index === 'number' ? index : position}`;
    if (typeof id === 'string') this.#ids.set(path, id);
    return `${path}#${this.#ids.get(path) ?? ''}`;
  }
}

// Redacts the content of calls: removes keys, credentials and media data.

/** Shorter ones are ids and signatures as much as media. */
const minMedia = 512;
const onlyBase64 = /^[\w+/=-]+$/;
const base64Run = /[\w+/=-]*/y;
const dataMark = ';base64,';
/** Length before the mark that is searched for `data:` and the media type. */
const maxTypeLength = 200;

export class Redactor {
  readonly #withoutValues: (text: string) => string;
  #found = false;

  /** @param secrets flat headers whose values are taken out wherever they are */
  constructor(secrets: readonly string[]) {
    this.#withoutValues = valueMask(secrets);
  }

  /** Whether anything so far had a key or a credential in it. */
  get found(): boolean {
    return this.#found;
  }

  text(text: string): string {
    const open = withoutDataAddresses(text);
    const shown = withoutKeys(this.#withoutValues(open));
    this.#found ||= shown !== open;
    return shown;
  }

  /** @param near sibling members, which may hold the media type */
  json(value: Json, near?: JsonObject): Json {
    if (typeof value === 'string') return mediaText(value, near) ?? this.text(value);
    if (Array.isArray(value)) return value.map((each: Json) => this.json(each, near));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        this.text(name),
        this.json(member ?? null, value),
      ]),
    );
  }
}

/** What stands for a text that is nothing but encoded bytes; undefined for any other. */
function mediaText(text: string, near: JsonObject | undefined): string | undefined {
  if (text.length < minMedia || !onlyBase64.test(text)) return undefined;
  const type = near?.['media_type'] ?? near?.['mime_type'] ?? near?.['format'];
  return leftOutRedacted(typeof type === 'string' ? type : '', text.length);
}

function leftOutRedacted(type: string, length: number): string {
  const bytes = Math.floor((length * 3) / 4);
  return `[${type === '' ? 'base64' : type}, ${bytes} bytes left out]`;
}

/** `data:image/png;base64,…` anywhere in a text becomes its type and size. */
function withoutDataAddresses(text: string): string {
  let shown = '';
  let done = 0;
  for (;;) {
    const mark = text.indexOf(dataMark, done);
    if (mark === -1) return done === 0 ? text : shown + text.slice(done);
    const head = text.slice(Math.max(done, mark - maxTypeLength), mark);
    const begin = head.lastIndexOf('data:');
    base64Run.lastIndex = mark + dataMark.length;
    const run = base64Run.exec(text)?.[0] ?? '';
    const end = mark + dataMark.length + run.length;
    if (begin === -1) shown += text.slice(done, end);
    else {
      const [type = ''] = head.slice(begin + 'data:'.length).split(';');
      shown += text.slice(done, mark - head.length + begin) + leftOutRedacted(type, run.length);
    }
    done = end;
  }
}
