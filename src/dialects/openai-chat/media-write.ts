/** Images, documents and audio as content parts, as far as the upstream takes them (§6). */
import type { JsonObject, MediaPart } from '../../core/conversation.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import type { UpstreamTraits } from '../../core/traits.ts';

/**
 * A media part as a content part.
 * @throws GatewayError `invalid_request` for what the upstream cannot be shown.
 */
export function writeMedia(part: MediaPart, traits: UpstreamTraits, path: FieldPath): JsonObject {
  const written = tryWriteMedia(part, traits);
  if (written !== undefined) return written;
  throw unsupported(path, `This model does not take this kind of ${part.kind}.`);
}

/** The same; undefined for what the upstream cannot be shown. */
export function tryWriteMedia(part: MediaPart, traits: UpstreamTraits): JsonObject | undefined {
  switch (part.kind) {
    case 'image':
      return writeImage(part, traits);
    case 'document':
      return writeDocument(part, traits);
    case 'audio':
      return 'base64' in part.source
        ? {
            type: 'input_audio',
            input_audio: { data: part.source.base64, format: audioFormat(part.mediaType) },
          }
        : undefined;
    default:
      return part.kind satisfies never;
  }
}

function writeImage(
  { source, mediaType }: MediaPart,
  { imageInput }: UpstreamTraits,
): JsonObject | undefined {
  if (imageInput === 'none') return undefined;
  if ('base64' in source) {
    const url = `data:${mediaType === '' ? 'image/png' : mediaType};base64,${source.base64}`;
    return { type: 'image_url', image_url: { url } };
  }
  if (imageInput === 'base64' || !('url' in source)) return undefined;
  return { type: 'image_url', image_url: { url: source.url } };
}

function writeDocument(part: MediaPart, { fileInput }: UpstreamTraits): JsonObject | undefined {
  const { source, mediaType, name } = part;
  if ('text' in source) return { type: 'text', text: documentText(part, source.text) };
  if (!fileInput || !('base64' in source)) return undefined;
  const type = mediaType === '' ? 'application/pdf' : mediaType;
  return {
    type: 'file',
    file: {
      filename: name ?? 'document.pdf',
      file_data: `data:${type};base64,${source.base64}`,
    },
  };
}

/** A plain-text document below a line with its title and context. */
export function documentText(part: MediaPart, text: string): string {
  const context = part.extras?.['anthropic-messages']?.['context'];
  const head = [part.name, typeof context === 'string' ? context : undefined]
    .filter((line) => line !== undefined && line !== '')
    .join(' — ');
  return head === '' ? text : `${head}\n\n${text}`;
}

function audioFormat(mediaType: string): string {
  return mediaType.endsWith('wav') || mediaType === '' ? 'wav' : 'mp3';
}
