/** Reads messages as turns with their roles, order and parts. */
import type {
  MediaPart,
  Part,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../../core/conversation.ts';
import { type FieldPath, GatewayError, invalidRequest, unsupported } from '../../../core/errors.ts';
import { withReasoning } from '../../../core/recall.ts';
import { type Notes, pathOf as knownPath, withPath, withPathOf } from '../../../core/notes.ts';
import type { Sealer } from '../../../core/secret.ts';
import { innerTokens, maxInnerTokens } from '../../../json/parse.ts';
import { maxDepth } from '../../../json/scan.ts';
import { isObject, type Json, type JsonObject, isArray } from '../../../json/value.ts';
import { fileOf, foreignFile, imageAt } from '../../shared/body/body-media.ts';
import { readCacheMark, readCall } from '../message-forms.ts';
import { badValue, wrongType } from '../fields.ts';
import { checkReasoning, readReasoning, reasoningParts, thinkingText } from '../reasoning.ts';

interface ConversationTurns {
  readonly system: readonly Part[];
  readonly turns: readonly Turn[];
}

/** @throws GatewayError `invalid_request` with the path of the member that cannot be read. */
export function readConversationTurns(
  body: JsonObject,
  notes: Notes,
  sealer?: Sealer,
): ConversationTurns {
  const builder = new TurnBuilder(notes, sealer);
  const messages = body['messages'];
  if (!isArray(messages)) throw wrongType(['messages'], 'an array', messages);
  for (let i = 0; i < messages.length; i += 1) {
    const message = messages[i] ?? null;
    if (!isObject(message)) throw wrongType(['messages', i], 'an object', message);
    builder.add(message, i);
  }
  const read = builder.finish();
  if (read.system.length === 0 && read.turns.length === 0) {
    throw badValue(['messages'], 'holds no content at all');
  }
  return read;
}

interface OpenTurn {
  /** Where it begins. */
  readonly at: number;
  readonly role: Turn['role'];
  readonly parts: Part[];
  readonly name: string | undefined;
}

/**
 * Walks the messages and keeps one open turn: neighbours of one role are one turn, and tool messages
 * begin a user turn, results first and in the order of their calls.
 */
class TurnBuilder {
  readonly #notes: Notes;
  readonly #sealer: Sealer | undefined;
  readonly #system: Part[] = [];
  readonly #turns: OpenTurn[] = [];
  /** JSON values in the arguments so far. */
  #argumentTokens = 0;
  /** The calls that the next tool messages answer: the index of each by its id. */
  #calls: ReadonlyMap<string, number> = new Map();
  #results: ToolResultPart[] = [];
  /** Where the first of them is. */
  #resultsAt = 0;

  constructor(notes: Notes, sealer: Sealer | undefined) {
    this.#notes = notes;
    this.#sealer = sealer;
  }

  add(message: JsonObject, i: number): void {
    const { role } = message;
    if (role === 'tool') return this.#addResult(this.#readResult(message, i), i);
    if (role === 'function') return this.#addResult(this.#readLegacyResult(message, i), i);
    this.#flushResults();
    switch (role) {
      case 'system':
      case 'developer':
        return this.#addSystem(marked(this.#content(message, i), message, i), i, message);
      case 'user':
        return this.#addTurn('user', marked(this.#content(message, i), message, i), {
          at: i,
          name: message['name'],
        });
      case 'assistant':
        return this.#addAssistant(message, i);
      default:
        throw badValue(['messages', i, 'role'], 'is not a known role');
    }
  }

  #content(message: JsonObject, i: number): readonly Part[] {
    return readContent(message['content'], pathOf(i), readerOf(message));
  }

  finish(): ConversationTurns {
    this.#flushResults();
    return {
      system: this.#system,
      turns: this.#turns.map(({ at, role, parts, name }) =>
        withPath({ role, parts, ...(name === undefined ? {} : { name }) }, ['messages', at]),
      ),
    };
  }

  /** The first run is the system prompt. Later ones stay at their position. */
  #addSystem(parts: readonly Part[], i: number, message: JsonObject): void {
    if (this.#turns.length > 0) {
      if (parts.length > 0)
        this.#turns.push({ at: i, role: 'system', parts: [...parts], name: undefined });
    } else {
      this.#system.push(...parts);
    }
    if (typeof message['name'] === 'string') {
      this.#notes.lost(['messages', i, 'name'], 'instructions have no author here');
    }
  }

  #addAssistant(message: JsonObject, i: number): void {
    if (isObject(message['audio'])) {
      throw unsupported(
        ['messages', i, 'audio'],
        'This model does not take audio of earlier answers.',
      );
    }
    const spoken = marked(this.#content(message, i), message, i);
    const called = readCalls(message, i);
    this.#countArguments(called, i);
    const calls = markedCalls(called, spoken.length === 0 ? message : {}, i);
    const { refusal } = message;
    const others: readonly Part[] = [
      ...spoken,
      ...(typeof refusal === 'string' && refusal !== ''
        ? [{ type: 'refusal', text: refusal } as const]
        : []),
      ...calls,
    ];
    const reasoning = checkReasoning(reasoningParts(readReasoning(message)), this.#sealer).map(
      (placed) => ({ ...placed, part: withPath({ ...placed.part }, ['messages', i]) }),
    );
    const parts = withReasoning(others, reasoning);
    this.#calls = new Map(calls.map((call, index) => [call.id, index]));
    this.#addTurn('assistant', parts, { at: i, name: message['name'] });
  }

  #readResult(message: JsonObject, i: number): ToolResultPart {
    const callId = message['tool_call_id'];
    if (typeof callId !== 'string' || !this.#calls.has(callId)) {
      throw badValue(['messages', i, 'tool_call_id'], 'does not answer a call before it');
    }
    const mark = readCacheMark(message, ['messages', i]);
    return {
      type: 'tool-result',
      callId,
      parts: this.#content(message, i),
      failed: false,
      ...(mark === undefined ? {} : { cacheUntilHere: mark }),
    };
  }

  /** The deprecated form names the function instead of the call. */
  #readLegacyResult(message: JsonObject, i: number): ToolResultPart {
    const [callId] = this.#calls.keys();
    if (callId === undefined || this.#results.length > 0) {
      throw invalidRequest(
        "A message with role 'function' must follow the 'function_call' that it answers.",
        ['messages', i],
        'invalid_value',
      );
    }
    const parts = this.#content(message, i);
    return { type: 'tool-result', callId, parts, failed: false };
  }

  #addResult(result: ToolResultPart, at: number): void {
    if (this.#results.length === 0) this.#resultsAt = at;
    this.#results.push(withPath(result, ['messages', at]));
  }

  #flushResults(): void {
    if (this.#results.length === 0) return;
    const calls = this.#calls;
    const indexOf = (result: ToolResultPart): number => calls.get(result.callId) ?? -1;
    const ordered = [...this.#results].sort((a, b) => indexOf(a) - indexOf(b));
    this.#results = [];
    this.#calls = new Map();
    this.#turns.push({ at: this.#resultsAt, role: 'user', parts: ordered, name: undefined });
  }

  #addTurn(
    role: Turn['role'],
    parts: readonly Part[],
    { at, name }: { readonly at: number; readonly name: Json | undefined },
  ): void {
    if (parts.length === 0) return;
    const author = typeof name === 'string' ? name : undefined;
    const last = this.#turns.at(-1);
    if (last?.role === role && last.name === author) last.parts.push(...parts);
    else this.#turns.push({ at, role, parts: [...parts], name: author });
  }

  /**
   * Counts the values in arguments, which are text here and may become values in the other dialect: the bound of the
   * body does not count them.
   * @throws GatewayError `too_large` beyond the number of values that may be parsed at once (G11).
   */
  #countArguments(calls: readonly ToolCallPart[], i: number): void {
    for (const { argumentsJson } of calls) this.#argumentTokens += innerTokens(argumentsJson);
    if (this.#argumentTokens <= maxInnerTokens) return;
    throw new GatewayError(
      'too_large',
      `The arguments of all tool calls together hold more than ${maxInnerTokens} JSON values, or are nested more than ${maxDepth} levels deep.`,
      { path: ['messages', i, 'tool_calls'] },
    );
  }
}

function pathOf(i: number): FieldPath {
  return ['messages', i, 'content'];
}

/** The reader for parts other than text, by the role of the message. */
function readerOf({ role }: JsonObject): PartReader {
  switch (role) {
    case 'user':
      return readUserPart;
    case 'assistant':
      return readAssistantPart;
    case 'tool':
      return readToolPart;
    default:
      return refusePart;
  }
}

function readAssistantPart(part: JsonObject, path: readonly (string | number)[]): Part | undefined {
  switch (part['type']) {
    case 'refusal':
      return typeof part['refusal'] === 'string' && part['refusal'] !== ''
        ? { type: 'refusal', text: part['refusal'] }
        : undefined;
    case 'thinking': {
      const text = thinkingText(part);
      return text === '' ? undefined : { type: 'reasoning', text };
    }
    default:
      return refusePart(part, path);
  }
}

/** Calls in the current form, else the one of the deprecated form with an id from its position. */
function readCalls(message: JsonObject, i: number): readonly ToolCallPart[] {
  const calls = message['tool_calls'];
  if (isArray(calls) && calls.length > 0) {
    return calls.map((call, j) => {
      if (!isObject(call)) throw wrongType(['messages', i, 'tool_calls', j], 'an object', call);
      const path = ['messages', i, 'tool_calls', j];
      return withPath(readToolCall(call, path), path);
    });
  }
  const legacy = message['function_call'];
  if (!isObject(legacy)) return [];
  const path = ['messages', i, 'function_call'];
  const call = { id: `function_call_${i}`, function: legacy };
  return [withPath(readToolCall(call, path), path)];
}

function readToolCall(value: JsonObject, path: FieldPath): ToolCallPart {
  const { id, name, arguments: given, freeText, extras } = readCall(value);
  const mark = readCacheMark(value, path);
  return {
    type: 'tool-call',
    id,
    name,
    argumentsJson: freeText ? JSON.stringify({ input: given }) : given,
    ...(mark === undefined ? {} : { cacheUntilHere: mark }),
    ...(extras === undefined ? {} : { extras: { 'openai-chat': extras } }),
  };
}

/** If a message has no content, its mark belongs to its last call. */
function markedCalls(
  calls: readonly ToolCallPart[],
  message: JsonObject,
  i: number,
): readonly ToolCallPart[] {
  const mark = readCacheMark(message, ['messages', i]);
  if (mark === undefined) return calls;
  return calls.map((call, i) =>
    i === calls.length - 1 ? withPathOf(call, { ...call, cacheUntilHere: mark }) : call,
  );
}

/** A mark on the whole message belongs to its last part. */
function marked(parts: readonly Part[], message: JsonObject, i: number): readonly Part[] {
  const mark = readCacheMark(message, ['messages', i]);
  const last = parts.at(-1);
  if (mark === undefined || last === undefined) return parts;
  return [...parts.slice(0, -1), withPathOf(last, { ...last, cacheUntilHere: mark })];
}

// Content parts of a request: text, images, files.

/** Reads a part that is not text, refuses it, or omits it. */
type PartReader = (part: JsonObject, path: FieldPath) => Part | undefined;

/**
 * The parts of a message's content, without empty texts.
 * @param readPart reads or refuses parts that are not text.
 */
function readContent(
  content: Json | undefined,
  path: FieldPath,
  readPart: PartReader,
): readonly Part[] {
  if (content === undefined || content === null || content === '') return [];
  if (typeof content === 'string') return [withPath({ type: 'text', text: content }, path)];
  if (!isArray(content)) throw wrongType(path, 'a string or an array', content);
  return content.flatMap((item, j) => readItem(item, [...path, j], readPart));
}

function readItem(item: Json, path: FieldPath, readPart: PartReader): readonly Part[] {
  if (!isObject(item)) throw wrongType(path, 'an object', item);
  const part = item['type'] === 'text' ? readText(item) : readPart(item, path);
  if (part === undefined) return [];
  const mark = readCacheMark(item, path);
  const where = knownPath(part, path);
  return [withPath(mark === undefined ? part : { ...part, cacheUntilHere: mark }, where)];
}

function readText(item: JsonObject): Part | undefined {
  const { text } = item;
  return typeof text === 'string' && text !== '' ? { type: 'text', text } : undefined;
}

/** Refuses a part that is not text. */
function refusePart(part: JsonObject, path: FieldPath): never {
  throw badValue([...path, 'type'], `is '${String(part['type'])}', but only text is allowed here`);
}

/** A part of a user message. */
function readUserPart(part: JsonObject, path: FieldPath): Part {
  switch (part['type']) {
    case 'image_url':
      return readImage(part['image_url'], [...path, 'image_url']);
    case 'file':
      return readFile(part['file'], [...path, 'file']);
    case 'input_audio':
      return withPath(readAudio(part['input_audio']), [...path, 'input_audio']);
    default:
      throw unsupported(
        [...path, 'type'],
        `This model does not know parts of the type '${String(part['type'])}'.`,
      );
  }
}

/** A part of a tool message: text by the standard, images and files by the custom of many clients. */
function readToolPart(part: JsonObject, path: FieldPath): Part {
  const { type } = part;
  return type === 'image_url' || type === 'file'
    ? readUserPart(part, path)
    : refusePart(part, path);
}

function readImage(image: Json | undefined, path: FieldPath): MediaPart {
  const bare = typeof image === 'string';
  const url = bare ? image : isObject(image) ? image['url'] : undefined;
  const where = bare ? path : [...path, 'url'];
  if (typeof url !== 'string') throw wrongType(where, 'a string', url);
  const detail = isObject(image) ? image['detail'] : undefined;
  const media = imageAt(url, where);
  if (media.kind !== 'image' || typeof detail !== 'string') return media;
  return { ...media, extras: { 'openai-chat': { detail } } };
}

function readAudio(audio: Json | undefined): MediaPart {
  const { data, format } = isObject(audio) ? audio : {};
  return {
    type: 'media',
    kind: 'audio',
    mediaType: `audio/${typeof format === 'string' && format !== '' ? format : 'wav'}`,
    source: { base64: typeof data === 'string' ? data : '' },
  };
}

function readFile(value: Json | undefined, path: FieldPath): MediaPart {
  if (!isObject(value)) throw wrongType(path, 'an object', value);
  const { file_data: data, file_id: id, filename } = value;
  const where = [...path, 'file_data'];
  if (typeof data !== 'string') {
    if (typeof id !== 'string') throw wrongType(where, 'a string', data);
    throw unsupported([...path, 'file_id'], foreignFile);
  }
  return fileOf(data, filename, where);
}
