/** Images and documents as blocks (wire/translation.md §6). */
import { Buffer } from 'node:buffer';
import type { MediaPart } from '../../core/conversation.ts';
import { unsupported, type GatewayError } from '../../core/errors.ts';
import type { Notes } from '../../core/notes.ts';
import { placeOf } from '../../core/places.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import type { JsonMembers } from './fields.ts';

const imageTypes: ReadonlySet<string> = new Set([
  'image/jpeg',
  'image/png',
  'image/gif',
  'image/webp',
]);

interface MediaWriting {
  readonly traits: UpstreamTraits;
  readonly notes: Notes;
}

/**
 * @param place in a tool result, what the model cannot see becomes a placeholder: agents send
 * screenshots unasked, and a refusal would end their session.
 * @throws GatewayError `invalid_request` for media that the upstream cannot take.
 */
export function writeMedia(
  part: MediaPart,
  { traits, notes }: MediaWriting,
  place: 'turn' | 'result',
): JsonMembers {
  const block = part.kind === 'image' ? writeImage(part, traits) : writeDocument(part, traits);
  if (block !== undefined) return { ...block, ...part.extras?.['anthropic-messages'] };
  if (place === 'turn') throw refused(part);
  notes.lost(
    placeOf(part, ['messages']),
    `${withArticle(part.kind)} in a tool result that the model cannot see`,
  );
  return { type: 'text', text: `[${part.kind} omitted: the model cannot see it]` };
}

function refused(part: MediaPart): GatewayError {
  return unsupported(
    placeOf(part, ['messages']),
    `This model does not take ${withArticle(part.kind)} of this kind.`,
  );
}

function withArticle(kind: MediaPart['kind']): string {
  return kind === 'document' ? 'a document' : `an ${kind}`;
}

function writeImage(
  { mediaType, source }: MediaPart,
  { imageInput }: UpstreamTraits,
): JsonMembers | undefined {
  if (imageInput === 'none') return undefined;
  if ('url' in source) {
    if (imageInput === 'base64') return undefined;
    return { type: 'image', source: { type: 'url', url: source.url } };
  }
  if (!('base64' in source)) return undefined;
  const type = mediaType === 'image/jpg' ? 'image/jpeg' : mediaType;
  if (!imageTypes.has(type)) return undefined;
  return { type: 'image', source: { type: 'base64', media_type: type, data: source.base64 } };
}

function writeDocument(part: MediaPart, { fileInput }: UpstreamTraits): JsonMembers | undefined {
  if (part.kind !== 'document' || !fileInput) return undefined;
  const source = documentSource(part);
  if (source === undefined) return undefined;
  return { type: 'document', source, ...(part.name === undefined ? {} : { title: part.name }) };
}

function documentSource({ mediaType, source }: MediaPart): JsonMembers | undefined {
  if ('text' in source) return plainText(source.text);
  if ('url' in source) return { type: 'url', url: source.url };
  if (mediaType === 'application/pdf') {
    return { type: 'base64', media_type: mediaType, data: source.base64 };
  }
  if (!mediaType.startsWith('text/')) return undefined;
  return plainText(Buffer.from(source.base64, 'base64').toString('utf8'));
}

function plainText(data: string): JsonMembers {
  return { type: 'text', media_type: 'text/plain', data };
}
