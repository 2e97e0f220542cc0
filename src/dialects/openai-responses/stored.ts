/**
 * Stored responses: the input and output items that the gateway stores of a call, and how a later request gets them
 * back. Items are stored whole, in their own bytes.
 */
import type { StoredResponse, StoredResponseCodec } from '../../core/stored-response.ts';
import { type GatewayError, atPath, withWords } from '../../core/errors.ts';
import { editJson, type Spliceable } from '../../json/edit.ts';
import { tryParseInnerObject, tryParseObject } from '../../json/parse.ts';
import type { Pieces } from '../../json/pieces.ts';
import { findMember, skipSpace, valueEnd } from '../../json/scan.ts';
import { isObject, type JsonObject } from '../../json/value.ts';
import { answered, markUnstored } from './ended-response.ts';
import { brokenChain, unknownId, unknownItem, unknownResponse } from './errors.ts';
import { referenceOf, readState } from './head.ts';
import { spellPath } from './fields.ts';
import { isOwnResponseId, positionalId, referableIds, responseOf } from './items.ts';
import { itemList, replayEvents } from './replay.ts';

const openBracket = 0x5b;
const closeBracket = 0x5d;
const comma = 0x2c;
const empty = Buffer.from('[]');

export const storedResponses: StoredResponseCodec = {
  stateOf: readState,
  inputOf: ownInput,
  expand,
  answered,
  markUnstored,
  outputOf,
  itemsOf,
  responseOf,
  ownError,
  ownNotes,
  unknownItem,
  unknownResponse,
  brokenChain,
  unknownId,
  deleted: (id) => ({ id, object: 'response', deleted: true }),
  mayBeRunning: isOwnResponseId,
  events: (response, after) => replayEvents(tryParseObject(response.toString('utf8')) ?? {}, after),
  list: (chain, page) => itemList(inputItems(chain), page),
};

/** The request's own items as one array. References are replaced by the items that they name. */
function ownInput(
  { pieces, spans }: Pick<Spliceable, 'pieces' | 'spans'>,
  found: ReadonlyMap<string, Buffer>,
): Buffer {
  const span = spans.get('input');
  if (span === undefined) return empty;
  const input = Buffer.concat(pieces.between(span.start, span.end));
  if (input[0] === openBracket) return found.size === 0 ? input : withItems(input, found);
  const text = input.toString('utf8');
  if (!text.startsWith('"')) return empty;
  return Buffer.from(`[{"type":"message","role":"user","content":${text}}]`);
}

function withItems(input: Buffer, found: ReadonlyMap<string, Buffer>): Buffer {
  const items = elementsOf(input).map((bytes) => {
    const item = tryParseInnerObject(bytes.toString('utf8'));
    const id = item === undefined ? undefined : referenceOf(item);
    return id === undefined ? bytes : (found.get(id) ?? bytes);
  });
  return arrayOf(items);
}

/** The request with the items of all arrays as its input, and without `previous_response_id`. */
function expand(source: Spliceable, arrays: readonly Buffer[]): Pieces {
  const items = arrays.map((array) => insideOf(array)).filter((inside) => inside.length > 0);
  return editJson(source, [
    { path: ['previous_response_id'], text: undefined },
    { path: ['input'], text: arrayOf(items).toString('utf8') },
  ]);
}

const outputKey = Buffer.from('"output"');

/** The array of a stored response's output items. */
function outputOf(response: Buffer): Buffer {
  const span = findMember(response, 0, outputKey);
  return span === undefined ? empty : response.subarray(span.start, span.end);
}

function idsIn(item: unknown): readonly string[] {
  return isObject(item) && typeof item['id'] === 'string' ? [item['id']] : [];
}

/** An item of a stored response. */
interface StoredItem {
  readonly bytes: Buffer;
  readonly item: JsonObject;
  /** The item's own id. Undefined if it is not unique or names another item. */
  readonly own: string | undefined;
  /** The id by which the item is found without an index: its response, and its position there. */
  readonly made: string;
}

function inputsOf({ id, input }: StoredResponse): readonly StoredItem[] {
  const parsed = parsedElements(input);
  const ids = referableIds(parsed.map(({ item }) => item));
  return parsed.map((each, at) => ({
    ...each,
    own: ids[at],
    made: positionalId(each.item, id, `i${at}`),
  }));
}

function outputsOf({ id, response }: StoredResponse): readonly StoredItem[] {
  return parsedElements(outputOf(response)).map((each, at) => {
    const [own] = idsIn(each.item);
    return { ...each, own, made: positionalId(each.item, id, `o${at}`) };
  });
}

function itemsOf(kept: StoredResponse): ReadonlyMap<string, Buffer> {
  const items = [...inputsOf(kept), ...outputsOf(kept)];
  return new Map([
    ...items.map(({ made, bytes }) => [made, bytes] as const),
    ...items.flatMap(({ own, bytes }) => (own === undefined ? [] : [[own, bytes] as const])),
  ]);
}

/**
 * The input items of the last response, the oldest first. Ids are unique, since a client that pages by id would loop.
 */
function inputItems(chain: readonly StoredResponse[]): readonly JsonObject[] {
  const items = chain.flatMap((kept, at) => [
    ...inputsOf(kept),
    ...(at === chain.length - 1 ? [] : outputsOf(kept)),
  ]);
  const used = new Set<string>();
  const listed = items.toReversed().map(({ item, own, made }) => {
    const id = own === undefined || used.has(own) ? made : own;
    used.add(id);
    return { ...item, id };
  });
  return listed.toReversed();
}

function parsedElements(array: Buffer): readonly Pick<StoredItem, 'bytes' | 'item'>[] {
  return elementsOf(array).flatMap((bytes) => {
    const item = tryParseInnerObject(bytes.toString('utf8'));
    return item === undefined ? [] : [{ bytes, item }];
  });
}

/** The bytes of each element of a JSON array. */
export function elementsOf(array: Buffer): readonly Buffer[] {
  const elements: Buffer[] = [];
  if (array[0] !== openBracket) return elements;
  let at = skipSpace(array, 1);
  while (at < array.length && array[at] !== closeBracket) {
    const end = valueEnd(array, at);
    elements.push(array.subarray(at, end));
    at = skipSpace(array, end);
    if (array[at] === comma) at = skipSpace(array, at + 1);
  }
  return elements;
}

function insideOf(array: Buffer): Buffer {
  const start = skipSpace(array, 1);
  const inside = array.subarray(start, array.lastIndexOf(closeBracket));
  return inside.toString('utf8').trim() === '' ? inside.subarray(0, 0) : inside;
}

const between = Buffer.from(',');

function arrayOf(items: readonly Buffer[]): Buffer {
  const joined = items.flatMap((item, i) => (i === 0 ? [item] : [between, item]));
  return Buffer.concat([Buffer.from('['), ...joined, Buffer.from(']')]);
}

/** The path that an error names for an item of an earlier response. */
const earlierPath = 'previous_response_id';

/** How servers begin a message about a path. */
const openings = [
  "Invalid '",
  "Invalid type for '",
  "Invalid value for '",
  "Missing required parameter: '",
  "Unknown parameter: '",
  "Unsupported parameter: '",
];
const itemPath = /^input\[(\d{1,9})\][\w.[\]]*/;

/** Rewords only the path that the error is about. Other text that looks like a path may be the client's. */
function ownError(error: GatewayError, earlier: number): GatewayError {
  const spelled = spellPath(error.path ?? []);
  const opening = openings.find((each) => error.message.startsWith(each)) ?? '';
  const [said = spelled] = itemPath.exec(error.message.slice(opening.length)) ?? [];
  const worded = withWords(error, (text) =>
    withFirst(text, text === spelled ? spelled : said, earlier),
  );
  const [member, index, ...rest] = worded.path ?? [];
  if (member !== 'input' || typeof index !== 'number') return worded;
  return atPath(worded, index < earlier ? [earlierPath] : [member, index - earlier, ...rest]);
}

/**
 * The text with the first mention of a path in the client's numbering. Longer paths that begin like it do not match.
 */
function withFirst(text: string, path: string, earlier: number): string {
  const at = itemPath.exec(path)?.[1];
  if (at === undefined) return text;
  for (let start = text.indexOf(path); start !== -1;) {
    const end = start + path.length;
    if (!/^(?:[\w[]|\.\w)/.test(text.slice(end, end + 2))) {
      return text.slice(0, start) + ownPath(path, Number(at), earlier) + text.slice(end);
    }
    start = text.indexOf(path, end);
  }
  return text;
}

function ownNotes(notes: string, earlier: number): string {
  const own = notes.replaceAll(/(?<=^|; )input\.(\d{1,9})[\w.]*(?=: )/g, (path, at: string) =>
    ownPath(path, Number(at), earlier),
  );
  // Several earlier items get the same path.
  const each = own.split('; ');
  const once = each.filter((note, i) => !note.startsWith(earlierPath) || each.indexOf(note) === i);
  return once.join('; ');
}

function ownPath(path: string, at: number, earlier: number): string {
  return at < earlier ? earlierPath : path.replace(String(at), String(at - earlier));
}
