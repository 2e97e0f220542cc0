/**
 * Addresses and base64 in a request's body, wherever a member may hold them: the one reader of both, for all dialects and
 * in both modes. The gateway fetches no address, but an upstream may be in its network.
 *
 * An address is read as the URL standard of the web reads it: space around it, tabs and line ends inside of it are no part
 * of it, `\` is `/`, and a host has many spellings. What other readers read otherwise is refused.
 */
import { isInternalUrl } from '../../../core/addresses.ts';
import type { MediaPart, MediaSource } from '../../../core/conversation.ts';
import type { Fault } from '../../../core/dialect.ts';
import { type FieldPath, unsupported } from '../../../core/errors.ts';
import { type Json, type JsonObject, isObject } from '../../../json/value.ts';

/**
 * What a text may be: an address of the `web`; an `image` or other `medium`: an address or a `data:` URL, for
 * images also bare base64, which some engines take; `data`: base64, a `data:` URL or an address; `base64` in
 * either alphabet. If the kind of a text is not `known`, it is refused only if it is an address that may not be
 * sent.
 */
type TextKind = 'web' | 'image' | 'medium' | 'data' | 'base64' | 'unknown';

const maxUrlLength = 2048;
/** Length of a text that is examined to classify it. */
const headLength = 4096;
/** Characters of base64 that one match examines: a longer one takes memory for its stack. */
const charactersAtOnce = 128 * 1024;

/** Carried whole, or found by a tool of the service in an earlier turn: nothing there is fetched for this call. */
const skipped: ReadonlySet<string> = new Set([
  'arguments',
  'input',
  // What a model did with a shell, a browser or a search.
  'action',
  'parameters',
  'input_schema',
  'schema',
  'metadata',
  'annotations',
  'citations',
  'tabs',
  'reasoning_details',
  'extra_content',
]);

const contextOfMember: ReadonlyMap<string, TextKind> = new Map([
  ['image_url', 'image'],
  ['video_url', 'medium'],
  ['audio_url', 'medium'],
  ['document_url', 'medium'],
  ['file_url', 'medium'],
  ['file_data', 'data'],
  ['server_url', 'web'],
  ['video', 'unknown'],
  ['audio', 'unknown'],
  ['image', 'unknown'],
  ['file', 'unknown'],
  ['document', 'unknown'],
  // Some proxies take an address there.
  ['file_id', 'unknown'],
  ['links', 'unknown'],
]);
/** `url` is what the member around it says. */
const contextOfUrl: ReadonlyMap<string, TextKind> = new Map([
  ...contextOfMember,
  ['mcp_servers', 'web'],
]);
const addressName = /ur[il]s?$/i;
/** Most names end in another, and need no expression. */
const lastLetters: ReadonlySet<string | undefined> = new Set('lisLIS');

/** Whether a body may hold any: names such as `fileUri` are recognised by their upper-case letter alone. */
export function mayHoldMedia(source: {
  lacks(feature: 'address' | 'media' | 'unusualName'): boolean;
}): boolean {
  return !(source.lacks('address') && source.lacks('media') && source.lacks('unusualName'));
}

/**
 * Checks all of them in a body.
 * @throws GatewayError what `fault` makes of the first that may not travel, or is not base64.
 */
export function checkMedia(body: JsonObject, fault: Fault): void {
  const waiting: Waiting = { values: [body], names: [''] };
  const { values, names } = waiting;
  for (let value = values.pop(); value !== undefined; value = values.pop()) {
    const name = names.pop() ?? '';
    const candidates = isList(value)
      ? collectCandidates(value, name, waiting)
      : lookAt(value, name, waiting);
    for (const { key, text, kind } of candidates) {
      const wrong = wrongWith(text, kind, value);
      if (wrong !== undefined) throw fault(pathTo(body, value, key), wrong);
    }
  }
}

/** What is still to be examined, and what each is called by the member that holds it. */
interface Waiting {
  readonly values: Container[];
  readonly names: string[];
}

interface Candidate {
  readonly key: string | number;
  readonly text: string;
  readonly kind: TextKind;
}

const none: readonly Candidate[] = [];

/** What is in a list is called as the list is. */
function collectCandidates(
  list: readonly Json[],
  name: string,
  waiting: Waiting,
): readonly Candidate[] {
  let found: Candidate[] | undefined;
  for (let key = 0; key < list.length; key += 1) {
    const item = list[key];
    if (typeof item === 'object' && item !== null) {
      waiting.values.push(item);
      waiting.names.push(name);
    } else if (typeof item === 'string') {
      const kind = kindNamed(name);
      if (kind !== undefined) (found ??= []).push({ key, text: item, kind });
    }
  }
  return found ?? none;
}

function lookAt(members: JsonObject, name: string, waiting: Waiting): readonly Candidate[] {
  let found: Candidate[] | undefined;
  for (const key in members) {
    const item = members[key];
    if (typeof item === 'object' && item !== null) {
      if (skipped.has(key) && !isExamined(key, name, members)) continue;
      waiting.values.push(item);
      waiting.names.push(key);
    } else if (typeof item === 'string') {
      const kind = contextOf(key, name, members);
      if (kind !== undefined) (found ??= []).push({ key, text: item, kind });
    }
  }
  return found ?? none;
}

/**
 * `input` is the argument of a call, but all that a Responses request asks. `parameters` is the schema of a function, but
 * options of a tool or plugin of the service itself.
 * @param around the name of the member that holds it; '' for the body.
 */
function isExamined(key: string, around: string, holder: JsonObject): boolean {
  if (key === 'input') return around === '';
  if (key !== 'parameters') return false;
  return around !== 'function' && around !== 'functions' && holder['type'] !== 'function';
}

type Container = JsonObject | readonly Json[];

function isList(value: Container): value is readonly Json[] {
  return Array.isArray(value);
}

function contextOf(key: string, around: string, holder: Container): TextKind | undefined {
  if (key === 'data' || key === 'url') {
    const type = isObject(holder) ? holder['type'] : undefined;
    if (around === 'source' && type === 'url') return 'web';
    if (key === 'url') return contextOfUrl.get(around) ?? 'unknown';
    if (around === 'input_audio') return 'data';
    if (around === 'audio') return 'unknown';
    return around === 'source' && type === 'base64' ? 'base64' : undefined;
  }
  return kindNamed(key);
}

function kindNamed(name: string): TextKind | undefined {
  const known = contextOfMember.get(name);
  if (known !== undefined) return known;
  return lastLetters.has(name.at(-1)) && addressName.test(name) ? 'unknown' : undefined;
}

/** Where a member of a container is; searched for only where something is wrong with it. */
function pathTo(body: Container, holder: Container, key: string | number): FieldPath {
  return [...(find(body, holder) ?? []), key];
}

function find(value: Container, wanted: Container): FieldPath | undefined {
  if (value === wanted) return [];
  for (const [key, item] of Object.entries(value)) {
    const rest = typeof item === 'object' && item !== null ? find(item, wanted) : undefined;
    if (rest !== undefined) return [isList(value) ? Number(key) : key, ...rest];
  }
  return undefined;
}

/** The end of a sentence that says what is wrong; undefined = nothing. */
function wrongWith(text: string, kind: TextKind, holder: Container): string | undefined {
  if (kind === 'base64') return wrongBytes(text, holder);
  if (text === '') return kind === 'unknown' ? undefined : 'must not be empty';
  const scheme = schemeOf(text);
  if (scheme === 'data') return wrongDataUrl(text, kind);
  if (scheme !== undefined) return wrongAddress(text, scheme, kind);
  switch (kind) {
    case 'web':
      return 'must be an http or https URL';
    case 'medium':
      return 'must be an http, https or data URL';
    case 'image':
      return imageTypeOf(text) !== undefined && isBase64(text, 0)
        ? undefined
        : 'must be an http, https or data URL';
    case 'data':
      return isBase64(text, 0) ? undefined : 'must be base64, a data URL or an address';
    default:
      // An address without a scheme takes that of the page; a request has no page.
      return /^[\0-\x20]*[/\\]{2}/.test(text) && isInternalUrl(`http:${text.trim()}`)
        ? inside
        : undefined;
  }
}

const inside = 'must not point into a private network';

/** In lower case; undefined for what is not an address by itself. */
function schemeOf(text: string): string | undefined {
  const start = Math.max(0, text.search(/[^\0-\x20]/));
  const head = text.slice(start, start + headLength).replace(/[\t\n\r]/g, '');
  return /^([a-z][a-z0-9+.-]*):/i.exec(head)?.[1]?.toLowerCase();
}

const webSchemes: ReadonlySet<string> = new Set(['http', 'https']);
/** What programs fetch that know more than the web. */
const otherSchemes: ReadonlySet<string> = new Set(
  'ftp ftps sftp tftp ws wss gopher dict ldap ldaps'.split(' '),
);
const mediaSchemes: ReadonlySet<string> = new Set(['http', 'https', 'gs']);
const credentials = /^[a-z]+:[/\\]*[^/\\?#]*@/i;
// Servers disagree on what they mean, so that what one takes for a public address is another to the next.
// oxlint-disable-next-line no-control-regex
const ambiguous = /[\0-\x1f\x7f\\]/;

function wrongAddress(text: string, scheme: string, kind: TextKind): string | undefined {
  if (kind === 'unknown') {
    if (scheme === 'file') return 'must be an http or https URL';
    const fetched = webSchemes.has(scheme) || (otherSchemes.has(scheme) && text.includes('://'));
    return fetched && mayBeInternal(text) ? inside : undefined;
  }
  if (kind === 'web' && !webSchemes.has(scheme)) return 'must be an http or https URL';
  if (!mediaSchemes.has(scheme)) return 'must be an http, https or data URL';
  if (text.length > maxUrlLength) return `must have at most ${maxUrlLength} characters`;
  const url = text.trim();
  if (ambiguous.test(url)) return 'must not contain control characters or backslashes';
  if (credentials.test(url)) return 'must not contain credentials';
  return scheme !== 'gs' && isInternalUrl(url) ? inside : undefined;
}

/**
 * By the URL standard of the web, and as read by parsers that treat `\` as a letter:
 * `http://a.example\@127.0.0.1`.
 */
function mayBeInternal(text: string): boolean {
  const web = text.replace(/^[^:]*:/, 'http:');
  return isInternalUrl(web) || (web.includes('\\') && isInternalUrl(web.replaceAll('\\', '%5C')));
}

/** Leaves the payload alone: it may be megabytes. */
const dataUrlHead = /^[\0-\x20]*data:([^;,]{0,256})((?:;[^;,]{0,256}){0,8}),/i;

function wrongDataUrl(text: string, kind: TextKind): string | undefined {
  if (kind === 'unknown') return undefined;
  if (kind === 'web') return 'must be an http or https URL';
  const head = dataUrlHead.exec(text.slice(0, headLength));
  const coded = head?.[2]?.toLowerCase().includes(';base64') === true;
  if (head === null || !coded || !isBase64(text, head[0].length)) {
    return 'must be a data URL with base64 content';
  }
  return kind === 'image' ? wrongImage(head[1] ?? '', text, head[0].length) : undefined;
}

/** @param from where the base64 begins. */
function wrongImage(mediaType: string, text: string, from: number): string | undefined {
  const type = mediaType.trim().toLowerCase();
  const may = type !== 'image/svg+xml' && mayBeImage(type, text.slice(from, from + headLength));
  return may ? undefined : 'must hold a JPEG, PNG, GIF or WebP image';
}

/** Checks a source whose media type is a sibling member. */
function wrongBytes(text: string, holder: Container): string | undefined {
  if (!isBase64(text, 0, eitherAlphabet)) {
    return 'should be valid base64 of at least one byte';
  }
  const type = isObject(holder) ? holder['media_type'] : undefined;
  return typeof type === 'string' ? wrongImage(type, text, 0) : undefined;
}

const usualAlphabet = /^[A-Za-z0-9+/]*$/;
const eitherAlphabet = /^[A-Za-z0-9+/_-]*$/;

/** Without a copy, since it may be megabytes. @param from where the base64 begins. */
function isBase64(text: string, from: number, alphabet = usualAlphabet): boolean {
  let end = text.length;
  while (end > from && text.length - end < 2 && text[end - 1] === '=') end -= 1;
  const padding = text.length - end;
  const last = (end - from) % 4;
  if (end === from || last === 1 || (padding > 0 && (last + padding) % 4 !== 0)) return false;
  for (let at = from; at < end; at += charactersAtOnce) {
    if (!alphabet.test(text.slice(at, Math.min(end, at + charactersAtOnce)))) return false;
  }
  return true;
}

// Images and files as the APIs of OpenAI write them: `data:` URLs, addresses and bare base64.

/** Why the id of a file is refused. */
export const foreignFile =
  "File ids belong to one provider's file store, and this model is asked by another API; send the content itself.";

const imageTypes: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
]);

/** An image at an address. @throws GatewayError `invalid_request` for a type that no model takes. */
export function imageAt(url: string, where: FieldPath): MediaPart {
  const data = readDataUrl(url);
  if (data === undefined) {
    return { type: 'media', kind: 'image', mediaType: '', source: { url } };
  }
  const mediaType = data.mediaType === 'image/jpg' ? 'image/jpeg' : data.mediaType;
  const source = { base64: data.base64 };
  if (mediaType === 'application/pdf') {
    return { type: 'media', kind: 'document', mediaType, source };
  }
  if (!imageTypes.has(mediaType)) {
    throw unsupported(where, 'Images must be JPEG, PNG, GIF or WebP.');
  }
  return { type: 'media', kind: 'image', mediaType, source };
}

const typesBySuffix: ReadonlyMap<string, string> = new Map([
  ['pdf', 'application/pdf'],
  ['txt', 'text/plain'],
  ['md', 'text/markdown'],
  ['csv', 'text/csv'],
  ['html', 'text/html'],
  ['xml', 'text/xml'],
]);

/**
 * A file in its data or at its address.
 * @throws GatewayError `invalid_request` for a type that no model reads.
 */
export function fileOf(data: string, filename: Json | undefined, where: FieldPath): MediaPart {
  const name = typeof filename === 'string' && filename !== '' ? filename : undefined;
  const file = webUrl.test(data) ? fileAt(data.trim(), name) : fileIn(data, name);
  if (file === undefined) throw unsupported(where, 'This model reads PDF and text files only.');
  return { type: 'media', kind: 'document', ...file, ...(name === undefined ? {} : { name }) };
}

type FileContent = Pick<MediaPart, 'mediaType' | 'source'>;

const webUrl = /^\s*https?:/i;

/** OpenRouter's form: an address instead of the data. Only PDFs are fetched from one. */
function fileAt(url: string, name: string | undefined): FileContent | undefined {
  const path = URL.parse(url)?.pathname ?? '';
  const type = typeOfName(name) ?? typeOfName(path.includes('.') ? path : undefined);
  if (type !== undefined && type !== 'application/pdf') return undefined;
  return { mediaType: 'application/pdf', source: { url } };
}

function fileIn(data: string, name: string | undefined): FileContent | undefined {
  const url = readDataUrl(data) ?? { mediaType: '', base64: data };
  const mediaType = url.mediaType === '' ? guessType(url.base64, name) : url.mediaType;
  const source = fileSource(url.base64, mediaType);
  return source === undefined ? undefined : { mediaType, source };
}

function fileSource(base64: string, mediaType: string): MediaSource | undefined {
  if (mediaType === 'application/pdf') return { base64 };
  if (!mediaType.startsWith('text/')) return undefined;
  return { text: Buffer.from(base64, 'base64').toString('utf8') };
}

/** The type of bare base64 follows from the name of the file, else from the first bytes of a PDF. */
function guessType(base64: string, name: string | undefined): string {
  return typeOfName(name) ?? (base64.startsWith('JVBERi') ? 'application/pdf' : '');
}

function typeOfName(name: string | undefined): string | undefined {
  return typesBySuffix.get(name?.split('.').at(-1)?.toLowerCase() ?? '');
}

// `data:` URLs of media, as parts name them.

/** Leaves the payload alone: it may be megabytes. */
const imageUrlHead = /^\s*data:([^;,]{0,256})((?:;[^;,]{0,256}){0,8}),/i;

interface DataUrl {
  /** Lower case, without parameters; `''` when not given. */
  readonly mediaType: string;
  readonly base64: string;
}

/** Takes a base64 `data:` URL apart; undefined for any other address. */
function readDataUrl(url: string): DataUrl | undefined {
  const head = imageUrlHead.exec(url);
  if (head === null) return undefined;
  return { mediaType: head[1]?.trim().toLowerCase() ?? '', base64: url.slice(head[0].length) };
}

// Whether bytes may be the image that they are said to be; they are never decoded (B59).

/** How the four formats that every provider takes begin, in base64. */
const formats: readonly (readonly [beginning: string, mediaType: string])[] = [
  ['iVBORw0KGgo', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
];
const known: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/jpg',
  'image/gif',
  'image/webp',
]);
/** Shorter than any image, as in tests. */
const minLength = 16;

/** The media type by the first bytes; undefined where they are of none of the four formats. */
export function imageTypeOf(base64: string): string | undefined {
  return formats.find(([beginning]) => base64.startsWith(beginning))?.[1];
}

/**
 * False when the beginning is that of no known image. Providers mind a wrong name of the format in
 * different ways, so that one image under another's name passes.
 */
function mayBeImage(mediaType: string, base64: string): boolean {
  if (!known.has(mediaType) || base64.length < minLength) return true;
  return imageTypeOf(base64) !== undefined;
}
