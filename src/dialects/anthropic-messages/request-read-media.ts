/** Images and documents of a request (wire/messages.md §4.1, wire/translation.md §6). */
import type { Json, JsonObject, MediaPart, Part } from '../../core/conversation.ts';
import type { FieldPath } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { isArray, textOf } from './fields.ts';
import { nativeExtras, readMark, without, type Reading } from './request-reading.ts';

const imageKeys: ReadonlySet<string> = new Set(['type', 'source', 'cache_control']);
const documentKeys: ReadonlySet<string> = new Set(['type', 'source', 'title', 'cache_control']);
const fileIds = 'File ids belong to one provider; send the content itself.';

export function readImage(block: JsonObject, path: FieldPath, reading: Reading): readonly Part[] {
  const source = isObject(block['source']) ? block['source'] : {};
  const { transformations } = block;
  if (isObject(transformations) && transformations['oversized_image'] === 'error') {
    reading.notes.lost([...path, 'transformations'], 'this model decides itself what is too large');
  }
  const rest = { ...readMark(block), ...nativeExtras(without(block, imageKeys)) };
  switch (source['type']) {
    case 'base64':
      return [
        {
          type: 'media',
          kind: 'image',
          // Clients send the file suffix for the type.
          mediaType: textOf(source['media_type']).replace(/^image\/jpg$/, 'image/jpeg'),
          source: { base64: textOf(source['data']) },
          ...rest,
        },
      ];
    case 'url': {
      const url = textOf(source['url']);
      return [{ type: 'media', kind: 'image', mediaType: '', source: { url }, ...rest }];
    }
    default:
      reading.refuse([...path, 'source', 'type'], fileIds);
      return [];
  }
}

export function readDocument(
  block: JsonObject,
  path: FieldPath,
  reading: Reading,
): readonly Part[] {
  const source = isObject(block['source']) ? block['source'] : {};
  const { citations } = block;
  if (isObject(citations) && citations['enabled'] === true) {
    reading.notes.lost([...path, 'citations'], 'this model does not cite documents');
  }
  if (source['type'] === 'content') return readContentDocument(block, path, reading);
  const media = readDocumentSource(source);
  if (media === undefined) {
    reading.refuse([...path, 'source', 'type'], fileIds);
    return [];
  }
  const { title, context } = block;
  if (typeof context === 'string' && context !== '' && !('text' in media.source)) {
    reading.notes.lost([...path, 'context'], 'a file has nothing but a name here');
  }
  return [
    {
      type: 'media',
      kind: 'document',
      ...media,
      ...(typeof title === 'string' && title !== '' ? { name: title } : {}),
      ...readMark(block),
      ...nativeExtras(without(block, documentKeys)),
    },
  ];
}

function readDocumentSource(
  source: JsonObject,
): Pick<MediaPart, 'mediaType' | 'source'> | undefined {
  const mediaType = textOf(source['media_type']);
  switch (source['type']) {
    case 'base64':
      return { mediaType, source: { base64: textOf(source['data']) } };
    case 'text':
      return { mediaType: mediaType || 'text/plain', source: { text: textOf(source['data']) } };
    case 'url':
      return { mediaType: 'application/pdf', source: { url: textOf(source['url']) } };
    default:
      return undefined;
  }
}

/** A document that is made of blocks becomes those blocks, under its title. */
function readContentDocument(
  block: JsonObject,
  path: FieldPath,
  reading: Reading,
): readonly Part[] {
  reading.notes.changed(path, 'a document is shown as its text and images');
  const head = [textOf(block['title']), textOf(block['context'])].filter((line) => line !== '');
  const parts: Part[] = head.length === 0 ? [] : [{ type: 'text', text: head.join('\n') }];
  const source = isObject(block['source']) ? block['source'] : {};
  for (const inner of contentBlocks(source['content'])) {
    if (inner['type'] === 'text') parts.push({ type: 'text', text: textOf(inner['text']) });
    else if (inner['type'] === 'image') parts.push(...readImage(inner, path, reading));
  }
  const last = parts.at(-1);
  if (last !== undefined) parts[parts.length - 1] = { ...last, ...readMark(block) };
  return parts;
}

function contentBlocks(content: Json | undefined): readonly JsonObject[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return isArray(content) ? content.filter(isObject) : [];
}
