/** Messages to turns (wire/translation.md §3): who speaks, in what order, with what parts. */
import type {
  Json,
  JsonObject,
  Part,
  ToolCallPart,
  ToolResultPart,
  Turn,
} from '../../core/conversation.ts';
import { GatewayError, invalidRequest, unsupported, type FieldPath } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { innerTokens, maxInnerTokens } from '../../core/json-inner.ts';
import { maxDepth } from '../../core/json-bytes.ts';
import { withReasoning } from '../../core/kept-turn.ts';
import type { Notes } from '../../core/notes.ts';
import { inPlaceOf, placed } from '../../core/places.ts';
import type { Sealer } from '../../core/sealer.ts';
import { Pace, type Steps } from '../../core/steps.ts';
import { readCacheMark } from './cache-marks.ts';
import { badValue, isArray, lengthOf, wrongType } from './fields.ts';
import { readReasoning, reasoningParts, thinkingText } from './reasoning-read.ts';
import { checkReasoning } from './reasoning-seal.ts';
import {
  isLong,
  readContent,
  readLong,
  readToolPart,
  readUserPart,
  refusePart,
  type PartReader,
} from './request-read-parts.ts';
import { readCall } from './tool-call-read.ts';

export interface ConversationTurns {
  readonly system: readonly Part[];
  readonly turns: readonly Turn[];
}

/** @throws GatewayError `invalid_request` with the path of what cannot be read. */
export function* readConversationTurns(
  body: JsonObject,
  notes: Notes,
  sealer?: Sealer,
): Steps<ConversationTurns> {
  const builder = new TurnBuilder(notes, sealer);
  const messages = body['messages'];
  if (!isArray(messages)) throw wrongType(['messages'], 'an array', messages);
  const pace = new Pace();
  for (let i = 0; i < messages.length; i += 1) {
    const message = messages[i] ?? null;
    if (!isObject(message)) throw wrongType(['messages', i], 'an object', message);
    const { content, tool_calls: calls } = message;
    if (pace.dueWith(1 + (isLong(content) ? 0 : lengthOf(content)) + lengthOf(calls))) yield;
    if (isLong(content)) builder.content = yield* readLong(content, pathOf(i), readerOf(message));
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

/** Members of messages that are read, or that clients send back without meaning anything by it. */
const knownMembers: ReadonlySet<string> = new Set([
  'role',
  'content',
  'name',
  'refusal',
  'tool_calls',
  'tool_call_id',
  'function_call',
  'audio',
  'annotations',
  'cache_control',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'reasoning_signature',
  'thinking_blocks',
]);

/**
 * Walks the messages and keeps one open turn: neighbours of one role are one turn, and tool messages
 * begin a user turn, results first and in the order of their calls.
 */
class TurnBuilder {
  readonly #notes: Notes;
  readonly #sealer: Sealer | undefined;
  readonly #system: Part[] = [];
  readonly #turns: OpenTurn[] = [];
  readonly #notedMembers = new Set<string>();
  /** Of the next message, where it is so long that it was read in steps. */
  content: readonly Part[] | undefined;
  /** JSON values in the arguments so far. */
  #argumentTokens = 0;
  /** The calls that the next tool messages answer: the place of each by its id. */
  #calls: ReadonlyMap<string, number> = new Map();
  #results: ToolResultPart[] = [];
  /** Where the first of them stands. */
  #resultsAt = 0;

  constructor(notes: Notes, sealer: Sealer | undefined) {
    this.#notes = notes;
    this.#sealer = sealer;
  }

  add(message: JsonObject, i: number): void {
    this.#noteUnknownMembers(message, i);
    const { role } = message;
    if (role === 'tool') return this.#addResult(this.#readResult(message, i), i);
    if (role === 'function') return this.#addResult(this.#readLegacyResult(message, i), i);
    this.#flushResults();
    switch (role) {
      case 'system':
      case 'developer':
        return this.#addSystem(marked(this.#content(message, i), message), i, message);
      case 'user':
        return this.#addTurn('user', marked(this.#content(message, i), message), {
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
    const { content } = this;
    this.content = undefined;
    return content ?? readContent(message['content'], pathOf(i), readerOf(message));
  }

  finish(): ConversationTurns {
    this.#flushResults();
    return {
      system: this.#system,
      turns: this.#turns.map(({ at, role, parts, name }) =>
        placed({ role, parts, ...(name === undefined ? {} : { name }) }, ['messages', at]),
      ),
    };
  }

  /** The leading run is the system prompt; later ones stay where they are. */
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
      throw unsupported(['messages', i, 'audio'], 'This model cannot hear its earlier answers.');
    }
    const spoken = marked(this.#content(message, i), message);
    const called = readCalls(message, i);
    this.#countArguments(called, i);
    const calls = markedCalls(called, spoken.length === 0 ? message : {});
    const { refusal } = message;
    const others: readonly Part[] = [
      ...spoken,
      ...(typeof refusal === 'string' && refusal !== ''
        ? [{ type: 'refusal', text: refusal } as const]
        : []),
      ...calls,
    ];
    const reasoning = checkReasoning(reasoningParts(readReasoning(message)), this.#sealer);
    const parts = withReasoning(others, reasoning);
    this.#calls = new Map(calls.map((call, place) => [call.id, place]));
    this.#addTurn('assistant', parts, { at: i, name: message['name'] });
  }

  #readResult(message: JsonObject, i: number): ToolResultPart {
    const callId = message['tool_call_id'];
    if (typeof callId !== 'string' || !this.#calls.has(callId)) {
      throw badValue(['messages', i, 'tool_call_id'], 'does not answer a call before it');
    }
    const mark = readCacheMark(message);
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
    this.#results.push(placed(result, ['messages', at]));
  }

  #flushResults(): void {
    if (this.#results.length === 0) return;
    const calls = this.#calls;
    const place = (result: ToolResultPart): number => calls.get(result.callId) ?? -1;
    const ordered = [...this.#results].sort((a, b) => place(a) - place(b));
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
   * Text here, values where they are translated to: a body within its own bound may hide any number.
   * @throws GatewayError `too_large` beyond what may be parsed in one go (G11).
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

  #noteUnknownMembers(message: JsonObject, i: number): void {
    for (const key in message) {
      if (knownMembers.has(key) || message[key] === null || this.#notedMembers.has(key)) continue;
      this.#notedMembers.add(key);
      this.#notes.lost(['messages', i, key], 'not known to the model');
    }
  }
}

function pathOf(i: number): FieldPath {
  return ['messages', i, 'content'];
}

/** By who speaks: what may stand there besides text. */
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
      return placed(readToolCall(call), ['messages', i, 'tool_calls', j]);
    });
  }
  const legacy = message['function_call'];
  return isObject(legacy) ? [readToolCall({ id: `function_call_${i}`, function: legacy })] : [];
}

function readToolCall(value: JsonObject): ToolCallPart {
  const { id, name, arguments: given, freeText, extras } = readCall(value);
  const mark = readCacheMark(value);
  return {
    type: 'tool-call',
    id,
    name,
    argumentsJson: freeText ? JSON.stringify({ input: given }) : given,
    ...(mark === undefined ? {} : { cacheUntilHere: mark }),
    ...(extras === undefined ? {} : { extras: { 'openai-chat': extras } }),
  };
}

/** Where a message says nothing, its mark belongs to its last call. */
function markedCalls(calls: readonly ToolCallPart[], message: JsonObject): readonly ToolCallPart[] {
  const mark = readCacheMark(message);
  if (mark === undefined) return calls;
  return calls.map((call, i) =>
    i === calls.length - 1 ? inPlaceOf(call, { ...call, cacheUntilHere: mark }) : call,
  );
}

/** A mark on the whole message belongs to its last part. */
function marked(parts: readonly Part[], message: JsonObject): readonly Part[] {
  const mark = readCacheMark(message);
  const last = parts.at(-1);
  if (mark === undefined || last === undefined) return parts;
  return [...parts.slice(0, -1), inPlaceOf(last, { ...last, cacheUntilHere: mark })];
}
