/** Content parts of a request: text, images, files (wire/translation.md §6). */
import type { Json, JsonObject, MediaPart, MediaSource, Part } from '../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { placed } from '../../core/places.ts';
import { perStep, type Steps } from '../../core/steps.ts';
import { readCacheMark } from './cache-marks.ts';
import { badValue, isArray, wrongType } from './fields.ts';
import { readDataUrl } from './media-url.ts';

/** Reads a part that is no text, refuses it, or leaves it out. */
export type PartReader = (part: JsonObject, path: FieldPath) => Part | undefined;

/**
 * The parts of a message's content; an empty text is no part.
 * @param readPart reads what is no text, or refuses it.
 */
export function readContent(
  content: Json | undefined,
  path: FieldPath,
  readPart: PartReader,
): readonly Part[] {
  if (content === undefined || content === null || content === '') return [];
  if (typeof content === 'string') return [placed({ type: 'text', text: content }, path)];
  if (!isArray(content)) throw wrongType(path, 'a string or an array', content);
  return content.flatMap((item, j) => readItem(item, [...path, j], readPart));
}

/** Whether content is to be read in steps. */
export function isLong(content: Json | undefined): content is readonly Json[] {
  return isArray(content) && content.length > perStep;
}

/** The same in steps. */
export function* readLong(
  content: readonly Json[],
  path: FieldPath,
  readPart: PartReader,
): Steps<readonly Part[]> {
  const parts: Part[] = [];
  for (let j = 0; j < content.length; j += 1) {
    if (j > 0 && j % perStep === 0) yield;
    parts.push(...readItem(content[j] ?? null, [...path, j], readPart));
  }
  return parts;
}

function readItem(item: Json, path: FieldPath, readPart: PartReader): readonly Part[] {
  if (!isObject(item)) throw wrongType(path, 'an object', item);
  const part = item['type'] === 'text' ? readText(item) : readPart(item, path);
  if (part === undefined) return [];
  const mark = readCacheMark(item);
  return [placed(mark === undefined ? part : { ...part, cacheUntilHere: mark }, path)];
}

function readText(item: JsonObject): Part | undefined {
  const { text } = item;
  return typeof text === 'string' && text !== '' ? { type: 'text', text } : undefined;
}

/** Refuses a part that is no text. */
export function refusePart(part: JsonObject, path: FieldPath): never {
  throw badValue([...path, 'type'], `is '${String(part['type'])}', but only text is allowed here`);
}

/** A part of a user message. */
export function readUserPart(part: JsonObject, path: FieldPath): Part {
  switch (part['type']) {
    case 'image_url':
      return readImage(part['image_url'], [...path, 'image_url']);
    case 'file':
      return readFile(part['file'], [...path, 'file']);
    case 'input_audio':
      throw unsupported([...path, 'input_audio'], 'This model does not listen to audio.');
    default:
      throw unsupported(
        [...path, 'type'],
        `This model does not know parts of the type '${String(part['type'])}'.`,
      );
  }
}

/** A part of a tool message: text by the standard, images and files by the custom of many clients. */
export function readToolPart(part: JsonObject, path: FieldPath): Part {
  const { type } = part;
  return type === 'image_url' || type === 'file'
    ? readUserPart(part, path)
    : refusePart(part, path);
}

const imageTypes: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
]);

function readImage(image: Json | undefined, path: FieldPath): MediaPart {
  const bare = typeof image === 'string';
  const url = bare ? image : isObject(image) ? image['url'] : undefined;
  const where = bare ? path : [...path, 'url'];
  if (typeof url !== 'string') throw wrongType(where, 'a string', url);
  const data = readDataUrl(url, where);
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

function readFile(file: Json | undefined, path: FieldPath): MediaPart {
  if (!isObject(file)) throw wrongType(path, 'an object', file);
  const { file_data: data, file_id: id, filename } = file;
  const where = [...path, 'file_data'];
  if (typeof data !== 'string') {
    if (typeof id !== 'string') throw wrongType(where, 'a string', data);
    throw unsupported([...path, 'file_id'], "File ids belong to one provider's file store.");
  }
  const name = typeof filename === 'string' && filename !== '' ? filename : undefined;
  const url = readDataUrl(data, where) ?? { mediaType: '', base64: data };
  const mediaType = url.mediaType === '' ? guessType(url.base64, name) : url.mediaType;
  const source = fileSource(url.base64, mediaType);
  if (source === undefined) {
    throw unsupported(where, 'This model reads PDF and text files only.');
  }
  return {
    type: 'media',
    kind: 'document',
    mediaType,
    source,
    ...(name === undefined ? {} : { name }),
  };
}

function fileSource(base64: string, mediaType: string): MediaSource | undefined {
  if (mediaType === 'application/pdf') return { base64 };
  if (!mediaType.startsWith('text/')) return undefined;
  return { text: Buffer.from(base64, 'base64').toString('utf8') };
}

/** Bare base64 tells its type by the name of the file, else by the first bytes of a PDF. */
function guessType(base64: string, name: string | undefined): string {
  const suffix = name?.split('.').at(-1)?.toLowerCase() ?? '';
  return typesBySuffix.get(suffix) ?? (base64.startsWith('JVBERi') ? 'application/pdf' : '');
}
