/** Images, documents and audio as blocks. The API takes bytes and no addresses. */
import type { MediaPart } from '../../../core/conversation.ts';
import { type Notes, pathOf } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonMembers } from '../../../json/value.ts';
import { imageTypeOf } from '../../shared/body/body-media.ts';

const imageFormats: ReadonlySet<string> = new Set(['png', 'jpeg', 'gif', 'webp']);

/** Formats that chat clients can name. The service knows more. */
const audioFormats: ReadonlySet<string> = new Set([
  'wav',
  'mp3',
  'flac',
  'opus',
  'aac',
  'm4a',
  'ogg',
  'webm',
]);

const documentFormats: ReadonlyMap<string, string> = new Map([
  ['application/pdf', 'pdf'],
  ['text/csv', 'csv'],
  ['application/msword', 'doc'],
  ['application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'docx'],
  ['application/vnd.ms-excel', 'xls'],
  ['application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 'xlsx'],
  ['text/html', 'html'],
  ['text/plain', 'txt'],
  ['text/markdown', 'md'],
]);

const maxName = 200;

/** Writes the media of one request. The state is the names of its documents, since each name may occur once. */
export class MediaWriter {
  readonly #traits: UpstreamTraits;
  readonly #notes: Notes;
  readonly #names = new Set<string>();

  constructor(traits: UpstreamTraits, notes: Notes) {
    this.#traits = traits;
    this.#notes = notes;
  }

  /** Undefined for a medium that the model cannot read. */
  write(part: MediaPart): JsonMembers | undefined {
    switch (part.kind) {
      case 'image':
        return this.#image(part);
      case 'document':
        return this.#document(part);
      case 'audio':
        return this.#audio(part);
      default:
        return part.kind satisfies never;
    }
  }

  #audio({ source, mediaType }: MediaPart): JsonMembers | undefined {
    const format = mediaType.slice('audio/'.length);
    if (this.#traits.audioInput !== true || !('base64' in source)) return undefined;
    if (!audioFormats.has(format)) return undefined;
    return { audio: { format, source: { bytes: source.base64 } } };
  }

  #image(part: MediaPart): JsonMembers | undefined {
    const { source, mediaType } = part;
    if (this.#traits.imageInput === 'none' || !('base64' in source)) return undefined;
    const declared = mediaType.replace(/^image\//, '').replace(/^jpg$/, 'jpeg');
    // The service refuses an image whose bytes have another format than the declared one.
    const format = imageTypeOf(source.base64)?.slice('image/'.length) ?? declared;
    if (!imageFormats.has(format)) return undefined;
    if (format !== declared) {
      const why = `sent as image/${format}, which its bytes are`;
      this.#notes.changed(pathOf(part, ['messages']), why);
    }
    return { image: { format, source: { bytes: source.base64 } } };
  }

  #document(part: MediaPart): JsonMembers | undefined {
    const { source, mediaType, citedAs } = part;
    if (!this.#traits.fileInput || 'url' in source) return undefined;
    const cites = citedAs !== undefined && this.#traits.citesDocuments === true;
    const citations = cites ? { citations: { enabled: true } } : {};
    if ('base64' in source) {
      const format = documentFormats.get(mediaType);
      if (format === undefined) return undefined;
      const name = this.#nameOf(part);
      return { document: { format, name, source: { bytes: source.base64 }, ...citations } };
    }
    const context = part.extras?.['anthropic-messages']?.['context'];
    return {
      document: {
        format: 'txt',
        name: this.#nameOf(part),
        source: { text: source.text },
        ...(typeof context === 'string' && context !== '' ? { context } : {}),
        ...citations,
      },
    };
  }

  /** A unique name of letters, digits, single spaces, `-`, `()` and `[]`, without the file extension. */
  #nameOf({ name = '' }: MediaPart): string {
    const clean = name
      .replace(/\.[a-z0-9]{1,5}$/i, '')
      .replace(/[^a-zA-Z0-9()[\]-]+/g, ' ')
      .trim()
      .slice(0, maxName - 10)
      .trim();
    const bare = /[a-zA-Z0-9]/.test(clean) ? clean : '';
    let own = bare;
    // A client may have numbered its files in the same way.
    for (let place = this.#names.size + 1; own === '' || this.#names.has(own); place++) {
      own = `${bare === '' ? 'document' : bare} ${place}`;
    }
    this.#names.add(own);
    return own;
  }
}
