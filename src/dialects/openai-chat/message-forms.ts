/** The forms of single messages in which servers of this dialect differ. */
import type {
  CacheMark,
  Citation,
  Part,
  TextSpan,
  Tool,
  ToolCallPart,
} from '../../core/conversation.ts';
import type { AnswerContext } from '../../core/dialect.ts';
import { type FieldPath, unsupported } from '../../core/errors.ts';
import { type Notes, withPath } from '../../core/notes.ts';
import type { UpstreamTraits } from '../../core/traits.ts';
import {
  isObject,
  type Json,
  type JsonObject,
  type JsonMembers,
  isArray,
} from '../../json/value.ts';
import { AnswerCallIds, originalToolName } from '../shared/tool-names.ts';
import { answerObject, answerObjects, citedSpan, spanOf } from '../shared/answers.ts';
import { begunText, freeText } from '../shared/request/tools.ts';

type Path = readonly (string | number)[];

/** Notes a change once. */
type Noting = (path: Path, why: string, what?: 'changed' | 'lost') => void;

interface ContentOptions {
  readonly traits: UpstreamTraits;
  /** Of the message. */
  readonly path: Path;
  readonly note: Noting;
}

interface AdaptedContent {
  /** The same one where nothing had to change. */
  readonly message: JsonObject;
  /** Parts that a tool message cannot hold: they follow in a message of the user. */
  readonly extra: readonly Json[];
}

const nothing: readonly Json[] = [];

/**
 * A message whose content the server takes.
 * @throws GatewayError `invalid_request` for media that the model cannot be shown.
 */
export function adaptedContent(message: JsonObject, options: ContentOptions): AdaptedContent {
  const spoken = withRefusal(message, options);
  const { content } = spoken;
  if (!isArray(content)) return { message: spoken, extra: nothing };
  const extra: Json[] = [];
  let changed = false;
  const parts: Json[] = [];
  const partOptions = { ...options, message, extra };
  content.forEach((part, j) => {
    const adapted = isObject(part) ? adaptedPart(part, j, partOptions) : part;
    if (adapted !== part) changed = true;
    if (adapted !== undefined) parts.push(adapted);
  });
  if (!changed) return { message: spoken, extra };
  // A message without its parts has no content; servers require a text.
  return { message: { ...spoken, content: parts.length === 0 ? '' : parts }, extra };
}

interface PartOptions extends ContentOptions {
  readonly message: JsonObject;
  readonly extra: Json[];
}

function adaptedPart(part: JsonObject, j: number, options: PartOptions): JsonObject | undefined {
  const { traits, message, note } = options;
  if (part['type'] === 'text' && traits.messageMembers === undefined) return part;
  const path = [...options.path, 'content', j];
  switch (part['type']) {
    case 'image_url':
      return adaptedImage(part, path, options);
    case 'file':
      if (!traits.fileInput) throw unsupported(path, 'This model does not take files.');
      break;
    case 'thinking':
      if (message['role'] !== 'assistant' || traits.thinkingParts === true) break;
      note(path, 'reasoning of another provider is not shown to this one', 'lost');
      return undefined;
    case 'refusal':
      if (isKnownMember('refusal', message, traits)) break;
      note(path, 'a refusal is sent as text');
      return { type: 'text', text: part['refusal'] };
    default:
  }
  return withKnownMark(part, traits, path);
}

function adaptedImage(part: JsonObject, path: Path, options: PartOptions): JsonObject | undefined {
  const { traits, message, note, extra } = options;
  const { image_url: image } = part;
  const url = isObject(image) ? image['url'] : image;
  const inline = typeof url === 'string' && !/^https?:/i.test(url);
  const taken = traits.imageInput === 'url' || (traits.imageInput === 'base64' && inline);
  const own = withKnownMark(part, traits, path);
  if (message['role'] !== 'tool') {
    if (taken) return own;
    throw unsupported(path, 'This model does not take this kind of image.');
  }
  if (traits.toolResultMedia && taken) return own;
  if (!taken) {
    // Agents send screenshots unasked: a refusal would end their session.
    const reason = traits.imageInput === 'none' ? 'model has no vision' : 'model cannot take it';
    note(path, `the image is left out, ${reason}`, 'lost');
    return { type: 'text', text: `[image omitted: ${reason}]` };
  }
  note(path, 'images of tool results follow in a message of the user');
  const label = `Image from tool result ${String(message['tool_call_id'])}:`;
  extra.push({ type: 'text', text: label }, own);
  return { type: 'text', text: '[image attached below]' };
}

/** Cache marks are hints. A server that refuses them gets none. */
function withKnownMark(part: JsonObject, traits: UpstreamTraits, path: Path): JsonObject {
  if (traits.messageMembers === undefined) return part;
  if (part['cache_control'] === undefined && part['prompt_cache_breakpoint'] === undefined) {
    return part;
  }
  const { cache_control: _mark, prompt_cache_breakpoint: _point, ...rest } = part;
  return { ...rest, ...writePartMark(readCacheMark(part, path), traits) };
}

/** If the server has no `refusal` member, the refusal becomes the content. */
function withRefusal(message: JsonObject, { traits, path, note }: ContentOptions): JsonObject {
  const { refusal, content } = message;
  if (typeof refusal !== 'string' || isKnownMember('refusal', message, traits)) return message;
  const { refusal: _refusal, ...rest } = message;
  if (content !== undefined && content !== null && content !== '') return rest;
  note([...path, 'refusal'], 'a refusal is sent as text');
  return { ...rest, content: refusal };
}

/** Whether the server takes a member in a message of this role. */
export function isKnownMember(
  name: string,
  { role }: JsonObject,
  { messageMembers }: UpstreamTraits,
): boolean {
  if (messageMembers === undefined || messageMembers.has(name)) return true;
  return messageMembers.has(`${String(role)}.${name}`);
}

/** The message without members that its server refuses. @param note called for members with a value. */
export function withoutUnknownMembers(
  message: JsonObject,
  traits: UpstreamTraits,
  note: (member: string, why: string) => void,
): JsonObject {
  if (traits.messageMembers === undefined) return message;
  let known = message;
  for (const name in message) {
    if (isKnownMember(name, message, traits)) continue;
    const { [name]: value, ...rest } = known;
    known = rest;
    if (
      name !== 'cache_control' &&
      !(value === null || value === undefined || (isArray(value) && value.length === 0))
    )
      note(name, unknownMemberNote);
  }
  return known;
}

/** The texts of a content. */
export function textsOf(content: Json | undefined): readonly string[] {
  if (typeof content === 'string') return [content];
  if (!isArray(content)) return [];
  return content.flatMap((part) =>
    isObject(part) && typeof part['text'] === 'string' ? [part['text']] : [],
  );
}

/** A message of the user with one more text. */
export function joinedTexts(message: JsonObject, text: string): JsonObject {
  const { content } = message;
  if (typeof content === 'string') return { ...message, content: `${content}\n\n${text}` };
  return { ...message, content: [...(isArray(content) ? content : []), { type: 'text', text }] };
}

/** A message of the user with these parts before its content. */
export function withContentInFront(message: JsonObject, parts: readonly Json[]): JsonObject {
  const { content } = message;
  const rest: readonly Json[] =
    typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : isArray(content)
        ? content
        : [];
  const all = [...parts, ...rest];
  const texts = all.flatMap((part) => (isText(part) ? [part['text']] : []));
  return { ...message, content: texts.length === all.length ? texts.join('\n\n') : all };
}

function isText(part: Json): part is JsonObject & { readonly text: string } {
  return isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string';
}

export const bridgeNote = 'an assistant message stands between a tool and the user';
export const unknownMemberNote = 'not known to this provider';

/** The message between a tool result and the user, for servers that require an assistant message there. */
export const bridge: JsonObject = { role: 'assistant', content: 'Understood.' };

// Cache marks in the spellings of clients and of servers.

const breakpoint = { prompt_cache_breakpoint: { mode: 'explicit' } };

/**
 * `cache_control` (Anthropic's spelling, an extension here) or `prompt_cache_breakpoint`, which lives
 * 30 minutes at least there and as long as marks usually do elsewhere.
 */
export function readCacheMark(carrier: JsonObject, path: FieldPath): CacheMark | undefined {
  const control = carrier['cache_control'];
  if (isObject(control)) {
    const { ttl } = control;
    return withPath(typeof ttl === 'string' ? { ttl } : {}, [...path, 'cache_control']);
  }
  const breaks = isObject(carrier['prompt_cache_breakpoint']);
  return breaks ? withPath({}, [...path, 'prompt_cache_breakpoint']) : undefined;
}

/** The mark in Anthropic's spelling, for servers that understand it. */
export function writeCacheMark({ ttl }: CacheMark): JsonObject {
  return { cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) } };
}

/** The mark as a member of its part, in the server's spelling; empty if it has none. */
export function writePartMark(mark: CacheMark | undefined, traits: UpstreamTraits): JsonObject {
  if (mark === undefined) return {};
  if (traits.cacheBreakpoints === true) return breakpoint;
  return traits.cacheMarks ? writeCacheMark(mark) : {};
}

/** Whether a part has a mark, so that it must not be joined. */
export function isMarked(part: JsonObject): boolean {
  return part['cache_control'] !== undefined || part['prompt_cache_breakpoint'] !== undefined;
}

/**
 * Texts as one string. Where marks are understood they stay apart: a mark moves on with the
 * conversation, and if texts were joined as soon as it left them, the cached prefix would change.
 */
export function textContent(
  texts: readonly JsonObject[],
  separator: string,
  traits: UpstreamTraits,
): string | readonly JsonObject[] {
  const apart = traits.cacheMarks || traits.cacheBreakpoints === true;
  if (texts.some(isMarked) || (apart && texts.length > 1)) return texts;
  return texts.map((part) => String(part['text'])).join(separator);
}

/** Sets a breakpoint on a text. */
type Marking = () => void;

/**
 * Breakpoints are taken on text parts only: those of images, files and calls move to the nearest text
 * before them. One without any text before it is dropped: so little is not worth caching.
 */
export function settleBreakpoints(messages: readonly JsonMembers[]): void {
  let mark: Marking = () => {};
  for (const message of messages) {
    const { content, tool_calls: calls } = message;
    if (typeof content === 'string' && content !== '')
      mark = () => {
        message['content'] = [{ type: 'text', text: content, ...breakpoint }];
      };
    if (isArray(content)) {
      const parts = [...content];
      message['content'] = parts;
      parts.forEach((part, at) => {
        if (!isObject(part)) return;
        if (part['type'] === 'text') {
          mark = () => (parts[at] = { ...part, ...breakpoint });
        } else if (isMarked(part)) {
          parts[at] = unmarked(part);
          mark();
        }
      });
    }
    if (isArray(calls) && calls.some((call) => isObject(call) && isMarked(call))) {
      message['tool_calls'] = calls.map((call) => (isObject(call) ? unmarked(call) : call));
      mark();
    }
  }
}

function unmarked({ prompt_cache_breakpoint: _mark, ...part }: JsonObject): JsonObject {
  return part;
}

/** Finds where one text of a turn ends and the next begins, since chat has one content. */
export class MessageBounds {
  #hasText = false;
  #between = false;

  /** The next part; its text follows. */
  begin(part: Part): void {
    const own = part.extras?.['openai-responses'] !== undefined;
    this.#between ||= own || (part.type === 'opaque' && part.dialect === 'openai-responses');
  }

  /** What is before this text: a blank line where a Responses server had a message of its own for it. */
  before(text: string): string {
    if (text === '') return '';
    const apart = this.#hasText && this.#between;
    this.#hasText = true;
    this.#between = false;
    return apart ? '\n\n' : '';
  }
}

// `annotations` of an answer and canonical citations.

/** The `url_citation` annotations among the given ones. @throws GatewayError `upstream_invalid` */
export function readCitations(annotations: Json | undefined): readonly Citation[] {
  const citations: Citation[] = [];
  for (const annotation of answerObjects(annotations, 'annotations')) {
    const source = answerObject(annotation['url_citation'], 'a url_citation');
    if (source === undefined) continue;
    const { url, title } = source;
    // The index belongs to the stream, not to the citation.
    const { index: _index, ...value } = annotation;
    citations.push({
      ...(typeof url === 'string' ? { url } : {}),
      ...(typeof title === 'string' ? { title } : {}),
      ...citedSpan(source),
      native: { dialect: 'openai-chat', value },
    });
  }
  return citations;
}

/**
 * Undefined, with a note, for a source without an address, which chat cannot name.
 * @param part the citing text part in the whole content.
 */
export function writeCitation(
  citation: Citation,
  part: TextSpan,
  notes: Notes,
): JsonObject | undefined {
  if (citation.native.dialect === 'openai-chat') return withSpan(citation, part);
  if (citation.url === undefined) {
    notes.lost(['citations'], 'a source without an address has no place in chat completions');
    return undefined;
  }
  const { start, end } = spanOf(citation, part);
  return {
    type: 'url_citation',
    url_citation: {
      start_index: start,
      end_index: end,
      url: citation.url,
      title: citation.title ?? '',
    },
  };
}

/** A source that its provider listed beside the text says no place; clients expect one. */
function withSpan(citation: Citation, part: TextSpan): JsonObject {
  const { value } = citation.native;
  const { url_citation: source } = value;
  if (!isObject(source) || source['start_index'] !== undefined) return value;
  const { start, end } = spanOf(citation, part);
  return { ...value, url_citation: { start_index: start, end_index: end, ...source } };
}

// How the tools of a request want their calls back: under the client's own names, free text
// unwrapped, and in the deprecated form for clients that use it.

/** Marks a tool from the deprecated `functions` field. */
export const legacyFunction = { legacy_function: true } as const;

export class AnsweredTools {
  readonly #tools: readonly Tool[];
  readonly #ids: AnswerCallIds;
  /** Calls are written as `function_call`. */
  readonly legacy: boolean;

  constructor(context: AnswerContext) {
    this.#tools = context.conversation?.tools ?? [];
    this.#ids = new AnswerCallIds(context, { prefix: 'call_', anyText: true });
    this.legacy = this.#tools.some(
      (tool) => tool.extras?.['openai-chat']?.['legacy_function'] === true,
    );
  }

  /** The client's own name of the tool. */
  name(name: string): string {
    return this.#tools.length === 0 ? name : originalToolName(name, this.#tools);
  }

  /** The client's id of a call: never empty, and unique in the conversation. */
  id(id: string): string {
    return this.#ids.show(id);
  }

  /** Whether the client declared this tool as a `custom` one. */
  isFreeText(name: string): boolean {
    return this.#tools.some((tool) => tool.freeText === true && tool.name === name);
  }
}

/** The text of a free-text call, from `{"input": …}`. @param isCut the answer was cut within it */
export function freeTextInput(argumentsJson: string, isCut = false): string {
  return isCut ? begunText(argumentsJson) : freeText(argumentsJson);
}

/** Arguments are never the empty string, except of a call that was cut: `{}` would be a whole one. */
export function callArguments({ argumentsJson }: ToolCallPart, isCut: boolean): string {
  return argumentsJson.trim() === '' && !isCut ? '{}' : argumentsJson;
}

/** `chatcmpl-` and the upstream's id. */
export function answerId(upstreamId: string, context: AnswerContext): string {
  if (upstreamId === '') return context.newId('chatcmpl-');
  return upstreamId.startsWith('chatcmpl-') ? upstreamId : `chatcmpl-${upstreamId}`;
}

// One tool call of a message or delta, in the spellings that servers use.

export interface SeenCall {
  readonly index: number | undefined;
  /** `''` if this message or delta has none. */
  readonly id: string;
  readonly name: string;
  /** The arguments, or a fragment of them. */
  readonly arguments: string;
  /** A `custom` call: `arguments` is free text, not JSON. */
  readonly freeText: boolean;
  /** Fields that only this dialect knows: Gemini has its thought signature here. */
  readonly extras: JsonObject | undefined;
}

export function readCall(value: JsonObject): SeenCall {
  const { index, id, custom } = value;
  const freeText = isObject(custom);
  const called = freeText ? custom : value['function'];
  const name = isObject(called) ? called['name'] : undefined;
  const given = isObject(called) ? called[freeText ? 'input' : 'arguments'] : undefined;
  const extra = value['extra_content'];
  return {
    index: typeof index === 'number' && Number.isInteger(index) ? index : undefined,
    id: typeof id === 'string' || typeof id === 'number' ? String(id) : '',
    name: typeof name === 'string' ? name : '',
    arguments: readArguments(given),
    freeText,
    extras: isObject(extra) ? { extra_content: extra } : undefined,
  };
}

/** Whether a call has an id, a name or arguments. Others are padding. */
export function isCall({ id, name, arguments: text }: SeenCall): boolean {
  return id !== '' || name !== '' || text !== '';
}

/** Some engines send the arguments as a JSON value instead of a text. */
function readArguments(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Further members of a call in an answer: signatures of Gemini in the vendor's own spelling for chat clients. */
export function answeredExtras({ extras }: ToolCallPart): JsonObject | undefined {
  const signature = extras?.gemini?.['thoughtSignature'];
  if (typeof signature !== 'string') return extras?.['openai-chat'];
  return { extra_content: { google: { thought_signature: signature } } };
}
