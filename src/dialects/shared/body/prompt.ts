/** The prompt of a chat, messages or Responses body for token counting: its texts, its media, its frames. */
import type { Medium, Prompt } from '../../../core/description.ts';
import type { FieldPath } from '../../../core/errors.ts';
import { isObject, type Json, type JsonObject } from '../../../json/value.ts';

const messageFrame = 5;
const partFrame = 2;
const toolFrame = 12;
/** The frames of the whole prompt, and the opening of the answer. */
const promptFrame = 8;

/** Members of messages and parts that no model reads. */
const unread: ReadonlySet<string> = new Set([
  'type',
  'id',
  'tool_use_id',
  'tool_call_id',
  'call_id',
  'encrypted_content',
  'signature',
  'cache_control',
  'media_type',
  'detail',
  'index',
  'extra_content',
]);

/** `functions` is what chat completions called tools before. */
const toolLists = ['tools', 'functions'] as const;
const formats = ['response_format', 'output_config'] as const;
const nothing: readonly Json[] = [];

/** The prompt of a body of any dialect. */
export function promptOf(body: JsonObject): Prompt {
  const reader = new PromptReader();
  reader.read(body['system']);
  if (Object.hasOwn(body, 'input') || Object.hasOwn(body, 'instructions')) {
    readResponses(body, reader);
  }
  for (const message of listOf(body['messages'])) {
    reader.frameTokens += messageFrame;
    reader.read(message);
  }
  for (const member of toolLists) {
    for (const tool of listOf(body[member])) {
      reader.frameTokens += toolFrame;
      reader.write(tool);
    }
  }
  for (const member of formats) {
    const format = body[member];
    if (isObject(format)) reader.write(format);
  }
  const { texts, media, frameTokens } = reader;
  return { texts, media, frameTokens };
}

/** Members that only the Responses dialect has. */
function readResponses({ instructions, input, text }: JsonObject, reader: PromptReader): void {
  reader.read(instructions);
  if (typeof input === 'string') reader.read(input);
  for (const item of listOf(input)) {
    reader.frameTokens += messageFrame;
    reader.read(item);
  }
  const format = isObject(text) ? text['format'] : undefined;
  if (isObject(format) && format['type'] !== 'text') reader.write(format);
}

class PromptReader {
  readonly texts: string[] = [];
  readonly media: Medium[] = [];
  frameTokens = promptFrame;
  /** The unread rest of a value, the next element last. */
  readonly #rest: Json[] = [];

  /** Texts and media of a value, in their order. */
  read(value: Json | undefined): void {
    const rest = this.#rest;
    let next = value;
    while (next !== undefined) {
      if (typeof next === 'string') {
        if (next !== '') this.texts.push(next);
      } else if (typeof next === 'object' && next !== null) {
        if (isArray(next)) for (let i = next.length - 1; i >= 0; i--) rest.push(next[i] ?? null);
        else if (isObject(next)) this.#part(next);
      }
      next = rest.pop();
    }
  }

  /** Adds a value that the model reads as JSON. */
  write(value: Json): void {
    this.texts.push(JSON.stringify(value));
  }

  #part(part: JsonObject): void {
    this.frameTokens += partFrame;
    const found = mediumOf(part);
    if (found !== undefined) this.media.push(found);
    for (const key of Object.keys(part).toReversed()) {
      if (unread.has(key) || (found !== undefined && mediaMembers.has(key))) continue;
      const value = part[key];
      if (value === undefined) continue;
      // The arguments of a tool call are shown as JSON.
      this.#rest.push(key === 'input' && isObject(value) ? JSON.stringify(value) : value);
    }
  }
}

const mediaMembers: ReadonlySet<string> = new Set([
  'source',
  'image_url',
  'file',
  'file_data',
  'file_url',
  'input_audio',
]);

function isArray(value: unknown): value is readonly Json[] {
  return Array.isArray(value);
}

function listOf(value: Json | undefined): readonly Json[] {
  return isArray(value) ? value : nothing;
}

/** The medium of a content part; undefined when it is none. */
export function mediumOf(part: JsonObject): Medium | undefined {
  const { type, source, image_url: image, file, input_audio: audio } = part;
  if (type === 'image' || type === 'document') {
    const given = isObject(source) ? source : {};
    // Text and content sources are read as text.
    if (type === 'document' && (given['type'] === 'text' || given['type'] === 'content')) return;
    return medium(type, given['data']);
  }
  if (image !== undefined && image !== null) {
    const given = isObject(image) ? image : { url: image };
    const low = given['detail'] === 'low';
    return { ...medium('image', dataOfUrl(given['url'])), lowDetail: low };
  }
  if (type === 'input_file') return medium('document', dataOfUrl(part['file_data']));
  if (isObject(file)) return medium('document', dataOfUrl(file['file_data']));
  return isObject(audio) ? medium('audio', audio['data']) : undefined;
}

function medium(kind: Medium['kind'], data: unknown): Medium {
  return { kind, data: typeof data === 'string' ? data : undefined, lowDetail: false };
}

function dataOfUrl(url: unknown): string | undefined {
  if (typeof url !== 'string') return undefined;
  if (!url.startsWith('data:')) return undefined;
  return url.slice(url.indexOf(',') + 1);
}

// Removes the member at the path that an error names.

/** Members without which there is no prompt. */
const needed: ReadonlySet<string | number> = new Set([
  'model',
  'messages',
  'input',
  'type',
  'role',
]);

/** The body without the member at a path; undefined when it is not there or is needed. */
export function withoutMember(body: JsonObject, path: FieldPath): JsonObject | undefined {
  const [key, ...rest] = path;
  if (typeof key !== 'string') return undefined;
  const value = body[key];
  if (value === undefined) return undefined;
  if (rest.length === 0) {
    if (needed.has(key)) return undefined;
    const { [key]: _, ...left } = body;
    return left;
  }
  const inner = without(value, rest);
  return inner === undefined ? undefined : { ...body, [key]: inner };
}

function without(value: Json, path: FieldPath): Json | undefined {
  if (isObject(value)) return withoutMember(value, path);
  const [index, ...rest] = path;
  if (!Array.isArray(value) || typeof index !== 'number' || !(index in value)) return undefined;
  const items: readonly Json[] = value;
  const item = items[index];
  // A block whose type is refused is omitted as a whole.
  const inner = rest.length === 0 || item === undefined ? undefined : without(item, rest);
  return inner === undefined
    ? items.filter((_, i) => i !== index)
    : items.map((each, i) => (i === index ? inner : each));
}
