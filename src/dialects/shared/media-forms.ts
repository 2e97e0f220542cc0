/** Images and files as the APIs of OpenAI write them: `data:` URLs, addresses and bare base64. */
import type { MediaPart, MediaSource } from '../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import type { Json } from '../../json/value.ts';

/** Why the id of a file is refused. */
export const foreignFile = "File ids belong to one provider's file store.";

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

/** OpenRouter's form: an address in the place of the data. Only PDFs are fetched from one. */
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

/** Bare base64 tells its type by the name of the file, else by the first bytes of a PDF. */
function guessType(base64: string, name: string | undefined): string {
  return typeOfName(name) ?? (base64.startsWith('JVBERi') ? 'application/pdf' : '');
}

function typeOfName(name: string | undefined): string | undefined {
  return typesBySuffix.get(name?.split('.').at(-1)?.toLowerCase() ?? '');
}

// `data:` URLs of media. What they hold, and which addresses may travel, is checked before (`shared/body-media.ts`).

/** Leaves the payload alone: it may be megabytes. */
const dataUrlHead = /^\s*data:([^;,]{0,256})((?:;[^;,]{0,256}){0,8}),/i;

interface DataUrl {
  /** Lower case, without parameters; `''` when not given. */
  readonly mediaType: string;
  readonly base64: string;
}

/** Takes a base64 `data:` URL apart; undefined for any other address. */
function readDataUrl(url: string): DataUrl | undefined {
  const head = dataUrlHead.exec(url);
  if (head === null) return undefined;
  return { mediaType: head[1]?.trim().toLowerCase() ?? '', base64: url.slice(head[0].length) };
}
