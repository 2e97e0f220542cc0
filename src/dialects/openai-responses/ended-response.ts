/** Reads the response in the last bytes of an answer, which is a document or a stream. The gateway may store it. */
import type { EndedResponse } from '../../core/stored-response.ts';
import { spliceAnswer } from '../../core/client-body.ts';
import { tryParseObject } from '../../json/parse.ts';
import { eachMember, findMember, skipSpace, type Span, spells } from '../../json/scan.ts';
import { isObject, type JsonObject, textOf, isArray } from '../../json/value.ts';

const openBrace = 0x7b;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const quote = 0x22;

/** The response in the last bytes of an answer. Undefined if it is not stored. */
export function answered(last: Buffer): EndedResponse | undefined {
  return readInBytes(last) ?? readParsed(last);
}

/** The same by a parse, which reads every valid spelling of a response. */
export function readParsed(last: Buffer): EndedResponse | undefined {
  const found = responseIn(last);
  if (found === undefined) return undefined;
  const { response, start, end } = found;
  const { id, status, output } = response;
  if (typeof id !== 'string' || (status !== 'completed' && status !== 'incomplete')) {
    return undefined;
  }
  const items = isArray(output) ? output.flatMap((item) => idOf(item)) : [];
  return { id, items, response: last.subarray(start, end) };
}

const backslash = 0x5c;
const lastLine = Buffer.from('\ndata:');

/**
 * The same without a parse. The gateway wrote or parsed the response a moment before, and it may contain texts of some
 * 100 KB. Undefined for an unusual spelling, and for a response that is not stored.
 */
export function readInBytes(last: Buffer): EndedResponse | undefined {
  const start = skipSpace(last, 0);
  if (last[start] === openBrace) return endedIn(last, start, last.length);
  const line = last.lastIndexOf(lastLine);
  const open = skipSpace(last, line === -1 ? dataMark.length : line + lastLine.length);
  const names = new Members(last, ['type', 'response']);
  const isEnding = names.read(open) !== -1 && endings.has(names.text('type') ?? '');
  const span = names.span('response');
  return isEnding && span !== undefined ? endedIn(last, span.start, span.end) : undefined;
}

function endedIn(last: Buffer, start: number, end: number): EndedResponse | undefined {
  const names = new Members(last, ['id', 'status', 'output']);
  const after = names.read(start);
  if (after === -1 || skipSpace(last, after) < end) return undefined;
  const id = names.text('id');
  const status = names.text('status');
  const output = names.span('output');
  if (id === undefined || output === undefined) return undefined;
  if (status !== 'completed' && status !== 'incomplete') return undefined;
  const items = itemIdsIn(last, output.start);
  return items && { id, items, response: last.subarray(start, end) };
}

/** Ids of the items of an array. Undefined if it is no array, or if an item has an unusual spelling. */
function itemIdsIn(last: Buffer, start: number): readonly string[] | undefined {
  if (last[start] !== openBracket) return undefined;
  const ids: string[] = [];
  for (let at = skipSpace(last, start + 1); last[at] !== closeBracket;) {
    const names = new Members(last, ['id']);
    const end = names.read(at);
    const id = names.text('id');
    if (end === -1 || id === undefined) return undefined;
    ids.push(id);
    at = skipSpace(last, end);
    if (last[at] === comma) at = skipSpace(last, at + 1);
    else if (last[at] !== closeBracket) return undefined;
  }
  return ids;
}

/** Members of an object by their names. */
class Members {
  readonly #bytes: Buffer;
  readonly #names: readonly string[];
  readonly #spans: (Span | undefined)[];
  #unusual = false;

  constructor(bytes: Buffer, names: readonly string[]) {
    this.#bytes = bytes;
    this.#names = names;
    this.#spans = names.map(() => undefined);
  }

  /** @returns the offset after the object; -1 if it is broken, if one of the names occurs twice, or if a key has escapes */
  read(open: number): number {
    const bytes = this.#bytes;
    const names = this.#names;
    const after = eachMember(bytes, open, (key, keyEnd, start, end) => {
      this.#unusual ||= hasEscape(bytes, key, keyEnd);
      for (let i = 0; i < names.length; i += 1) {
        if (!spells(bytes, key + 1, keyEnd - 1, names[i] ?? '')) continue;
        if (this.#spans[i] !== undefined) this.#unusual = true;
        this.#spans[i] = { start, end };
      }
    });
    return this.#unusual ? -1 : after;
  }

  span(name: string): Span | undefined {
    return this.#spans[this.#names.indexOf(name)];
  }

  /** A text without escapes. */
  text(name: string): string | undefined {
    const span = this.span(name);
    if (span === undefined || this.#bytes[span.start] !== quote) return undefined;
    const text = this.#bytes.toString('utf8', span.start + 1, span.end - 1);
    return text.includes('\\') ? undefined : text;
  }
}

function idOf(item: unknown): readonly string[] {
  return isObject(item) && typeof item['id'] === 'string' ? [item['id']] : [];
}

function hasEscape(bytes: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i += 1) if (bytes[i] === backslash) return true;
  return false;
}

interface FoundResponse {
  readonly response: JsonObject;
  /** The start of its bytes. A response without an end is not found. */
  readonly start: number;
  readonly end: number;
}

function responseIn(last: Buffer): FoundResponse | undefined {
  const start = skipSpace(last, 0);
  if (last[start] === openBrace) {
    const response = tryParseObject(last.toString('utf8', start));
    if (response === undefined) return undefined;
    return { response, start, end: last.length };
  }
  return terminalIn(last);
}

const dataMark = Buffer.from('data:');
const responseKey = Buffer.from('"response"');
const newline = 0x0a;
const endings: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete']);

/** The event that ends a stream: the last one with its data in one line. */
function terminalIn(last: Buffer): FoundResponse | undefined {
  for (let at = last.lastIndexOf(dataMark); at !== -1;) {
    const isLine = at === 0 || last[at - 1] === newline;
    const start = at + dataMark.length;
    const lineEnd = last.indexOf(newline, start);
    const end = lineEnd === -1 ? last.length : lineEnd;
    const event = isLine ? tryParseObject(last.toString('utf8', start, end)) : undefined;
    if (event !== undefined && endings.has(textOf(event['type']))) {
      const { response } = event;
      const span = findMember(last.subarray(0, end), start, responseKey);
      return isObject(response) && span !== undefined ? { response, ...span } : undefined;
    }
    at = at === 0 ? -1 : last.lastIndexOf(dataMark, at - 1);
  }
  return undefined;
}

/** The same bytes with `store: false` in the response. */
export function markUnstored(last: Buffer): Buffer {
  const found = responseIn(last);
  if (found === undefined || found.response['store'] === false) return last;
  const { response: body, start, end } = found;
  const bytes = last.subarray(start, end);
  const edited =
    spliceAnswer({ bytes, body }, { store: 'false' }) ??
    Buffer.from(JSON.stringify({ ...body, store: false }));
  return Buffer.concat([last.subarray(0, start), edited, last.subarray(end)]);
}
