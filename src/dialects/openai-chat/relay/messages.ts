/**
 * The messages of a relayed request as its target takes them: roles, positions of instructions, members,
 * ids of calls, media, and the reasoning of earlier turns. What a target takes
 * as it is keeps its bytes.
 */
import type { Origin, ReasoningPart } from '../../../core/conversation.ts';
import type { Ask } from '../../../core/dialect.ts';
import { type FieldPath, invalidRequest } from '../../../core/errors.ts';
import { type RecalledTurn, PromptTrail } from '../../../core/recall.ts';
import type { Notes } from '../../../core/notes.ts';
import type { UpstreamTraits } from '../../../core/traits.ts';
import type { JsonEdit } from '../../../json/edit.ts';
import type { JsonSource } from '../../../core/client-body.ts';
import { isObject, type Json, type JsonObject, isArray } from '../../../json/value.ts';
import { userTextsOf } from '../../shared/body/describe.ts';
import { type ToolIdMap, toolIdMapFor } from '../../shared/tool-names.ts';
import {
  adaptedContent,
  bridge,
  bridgeNote,
  joinedTexts,
  readCall,
  textsOf,
  withContentInFront,
  withoutUnknownMembers,
} from '../message-forms.ts';
import { frontNote, taggedInstructions, taggedNote } from '../../shared/request/instructions.ts';
import {
  type CallSignatures,
  checkReasoning,
  hasProof,
  isDetailMark,
  missingSignatures,
  nativeFormat,
  readReasoning,
  reasoningParts,
  thinkingText,
  writeDetail,
} from '../reasoning.ts';
import { fillerNote } from '../../shared/request/message-turns.ts';

/** The edits of the messages; none if the target takes them unchanged. */
export function messageEdits(
  source: Pick<JsonSource, 'value' | 'skeleton'>,
  ask: Ask,
  notes: Notes,
): readonly JsonEdit[] {
  const { messages: skeletons } = source.skeleton;
  if (!isArray(skeletons)) return [];
  // The skeleton has all but long texts: whether anything is to be changed is seen there.
  if (areSentAsTheyAre(skeletons, ask.traits)) return [];
  if (!isHistoryWanted(ask.traits) && !changes(skeletons, ask)) return [];
  const { messages } = source.value;
  if (!isArray(messages)) return [];
  return new MessageAdapter({ ask, notes }).adapting(messages) ?? [];
}

/**
 * Whether all messages are texts of user and assistant, with instructions in front at most: nearly every target takes
 * these. The check allocates nothing. `changes` gives the same result for such messages.
 */
export function areSentAsTheyAre(messages: readonly Json[], traits: UpstreamTraits): boolean {
  if (isHistoryWanted(traits)) return false;
  for (let i = 0; i < messages.length; i += 1) {
    const message = messages[i];
    if (!isObject(message) || typeof message['content'] !== 'string') return false;
    const { role } = message;
    const instructs = role === 'system' && i === 0 && traits.refusesSystemRole !== true;
    if (role !== 'user' && role !== 'assistant' && !instructs) return false;
    for (const key in message) if (key !== 'role' && key !== 'content') return false;
    // Some targets need a switch on a last message that the model continues.
    if (role === 'assistant' && traits.prefillSwitch !== undefined) return false;
  }
  return true;
}

/** Whether any message is sent in another form; the messages may lack long texts. */
export function changes(messages: readonly Json[], ask: Ask): boolean {
  return new MessageAdapter({ ask, probes: true }).adapting(messages) !== undefined;
}

/** A message of the upstream request, and its index in the client's. */
interface Placed {
  readonly message: Json;
  /** Absent for a message that the client did not send. */
  readonly from?: number;
}

interface Adapting {
  readonly ask: Ask;
  readonly notes?: Notes | undefined;
  /** Checks only whether anything has to change: long texts are missing. */
  readonly probes?: true;
}

/** State of one request. */
class MessageAdapter {
  readonly #ask: Ask;
  readonly #probes: boolean;
  readonly #traits: UpstreamTraits;
  readonly #notes: Notes | undefined;
  readonly #noted = new Set<string>();
  readonly #asked = new PromptTrail();
  readonly #ids: ToolIdMap | undefined;
  readonly #out: Placed[] = [];
  /** Instructions that are in front. */
  readonly #front: { readonly message: JsonObject; readonly from: number }[] = [];
  /** Content that waits for the next message of the user. */
  #waiting: Json[] = [];
  #answered = false;
  #changed = false;
  /** The id of the last call in the deprecated form. */
  #legacyId = '';

  constructor({ ask, notes, probes }: Adapting) {
    this.#ask = ask;
    this.#probes = probes === true;
    this.#traits = ask.traits;
    this.#notes = notes;
    this.#ids = toolIdMapFor(ask.traits);
  }

  /** The edits; undefined if no message changes. */
  adapting(messages: readonly Json[]): readonly JsonEdit[] | undefined {
    for (let i = 0; i < messages.length; i += 1) {
      const message = messages[i] ?? null;
      const adapted = isObject(message) ? this.#one(message, i) : message;
      if (adapted !== message) this.#changed = true;
      if (this.#probes && this.#changed) return [];
      if (isObject(adapted)) this.#append(adapted, i);
      else if (adapted !== undefined) this.#out.push({ message: adapted, from: i });
    }
    this.#flush();
    this.#endInTurn(messages.length - 1);
    this.#putInFront();
    if (!this.#changed) return undefined;
    if (this.#out.length === 0) {
      throw invalidRequest('At least one message must have content.', ['messages']);
    }
    return editing(messages, this.#out);
  }

  #one(message: JsonObject, i: number): JsonObject | undefined {
    if (!this.#probes) for (const text of userTextsOf(message)) this.#asked.add(text);
    const whole = this.#modern(this.#knownRole(message, i), i);
    const own = whole['role'] === 'assistant' ? this.#assistant(whole, i) : whole;
    if (own === undefined) return undefined;
    const read = this.#content(own, i);
    if (this.#traits.messageMembers === undefined) return this.#withIds(read);
    return this.#withIds(withoutUnknownMembers(read, this.#traits, this.#noting(i)));
  }

  #content(message: JsonObject, i: number): JsonObject {
    if (!isArray(message['content']) && typeof message['refusal'] !== 'string') return message;
    const options = { traits: this.#traits, path: ['messages', i], note: this.#note };
    const read = adaptedContent(message, options);
    this.#waiting.push(...read.extra);
    return read.message;
  }

  #assistant(message: JsonObject, i: number): JsonObject | undefined {
    const { traits } = this.#ask;
    const wanted = isHistoryWanted(traits);
    if (!wanted && !hasReasoning(message)) return this.#spoken(message, i);
    // A turn without text is identified by its calls and by the text before them.
    if (this.#probes && originOf(message, this.#ask) === undefined) this.#changed = true;
    const own = withOwnReasoning(message, {
      ask: this.#ask,
      asked: this.#asked,
      note: this.#noting(i),
    });
    if (!wanted) return this.#spoken(own, i);
    const restored = restoredTurn(own, this.#ask, this.#asked);
    if (restored.filled) this.#note(['messages'], fillerNote);
    return this.#spoken(restored.message, i);
  }

  /** A message without content, calls and refusal is not sent. */
  #spoken(message: JsonObject, i: number): JsonObject | undefined {
    const { content, tool_calls: calls, refusal, function_call: call, audio } = message;
    if (content !== undefined && content !== null) return message;
    if (isArray(calls) && calls.length > 0) return message;
    if (typeof refusal === 'string' || isObject(call) || isObject(audio)) return message;
    if (this.#traits.reasoningReplay && (message['reasoning_content'] ?? '') !== '') {
      return { ...message, content: '' };
    }
    this.#note(['messages', i], 'an answer without content is left out', 'lost');
    return undefined;
  }

  #knownRole(message: JsonObject, i: number): JsonObject {
    const { role: sent } = message;
    const { developerRole, refusesSystemRole } = this.#traits;
    if (sent === 'developer' && developerRole !== true)
      return this.#addressed(message, 'system', i);
    if (sent === 'system' && refusesSystemRole === true)
      return this.#addressed(message, 'developer', i);
    return message;
  }

  #addressed(message: JsonObject, role: 'system' | 'developer', i: number): JsonObject {
    this.#note(['messages', i, 'role'], `this model knows instructions as ${role} messages`);
    return { ...message, role };
  }

  /** The deprecated form of calls and results in the current one. */
  #modern(message: JsonObject, i: number): JsonObject {
    if (this.#traits.legacyFunctions === true) return message;
    const { role, function_call: call } = message;
    if (role === 'function') {
      this.#note(['messages', i, 'role'], 'sent in the current form of tool results');
      const { name: _name, ...rest } = message;
      return { ...rest, role: 'tool', tool_call_id: this.#legacyId };
    }
    if (role !== 'assistant' || !isObject(call)) return message;
    this.#note(['messages', i, 'function_call'], 'sent in the current form of tool calls');
    this.#legacyId = `function_call_${i}`;
    const { function_call: _call, ...rest } = message;
    const calls = [{ id: this.#legacyId, type: 'function', function: call }];
    return { ...rest, tool_calls: calls };
  }

  /** Ids are names: they are the same in the call and its result, and have no note. */
  #withIds(message: JsonObject): JsonObject {
    const ids = this.#ids;
    if (ids === undefined) return message;
    const { tool_calls: calls, tool_call_id: answers } = message;
    if (typeof answers === 'string') {
      const id = ids.result(answers);
      return id === answers ? message : { ...message, tool_call_id: id };
    }
    if (!isArray(calls)) return message;
    let changed = false;
    const named = calls.map((call) => {
      if (!isObject(call) || typeof call['id'] !== 'string') return call;
      const id = ids.call(call['id']);
      if (id === call['id']) return call;
      changed = true;
      return { ...call, id };
    });
    return changed ? { ...message, tool_calls: named } : message;
  }

  #append(message: JsonObject, i: number): void {
    const { role } = message;
    if (role === 'assistant') this.#answered = true;
    const { systemAnywhere, refusesSystemRole } = this.#traits;
    const instructs = role === 'system' || (role === 'developer' && refusesSystemRole === true);
    if (instructs && !systemAnywhere) return this.#instruct(message, i);
    if (role !== 'tool' && role !== 'user') this.#flush();
    if (role === 'user' && this.#waiting.length > 0) {
      const before = this.#waiting;
      this.#waiting = [];
      return this.#push(withContentInFront(message, before), i);
    }
    this.#push(message, i);
  }

  #push(message: JsonObject, from?: number): void {
    if (this.#traits.assistantAfterTools === true && message['role'] === 'user') {
      if (this.#last?.['role'] === 'tool') {
        this.#note(from === undefined ? ['messages'] : ['messages', from], bridgeNote);
        this.#changed = true;
        this.#out.push({ message: bridge });
      }
    }
    this.#out.push(from === undefined ? { message } : { message, from });
  }

  get #last(): JsonObject | undefined {
    const last = this.#out.at(-1)?.message;
    return isObject(last) ? last : undefined;
  }

  #replaceLast(message: JsonObject): void {
    const last = this.#out.pop();
    this.#out.push({ ...last, message });
    this.#changed = true;
  }

  /**
   * In front while nothing was answered: it stays there in later requests. After that it is sent at its position,
   * or the beginning of the prompt would change with each turn.
   */
  #instruct(message: JsonObject, i: number): void {
    if (!this.#answered) {
      if (this.#out.length > 0 || this.#front.length > 0) {
        this.#changed = true;
        this.#note(['messages', i], frontNote);
      }
      this.#front.push({ message, from: i });
      return;
    }
    this.#changed = true;
    this.#note(['messages', i], taggedNote);
    const last = this.#last;
    const text = taggedInstructions(textsOf(message['content']));
    if (last?.['role'] === 'user' && this.#waiting.length === 0) {
      this.#replaceLast(joinedTexts(last, text));
    } else this.#waiting.push({ type: 'text', text });
  }

  #putInFront(): void {
    const [first, ...more] = this.#front;
    if (first === undefined) return;
    const message = more.length === 0 ? first.message : this.#joinedFront(first.message);
    this.#out.unshift(first.from === 0 ? { message, from: 0 } : { message });
  }

  #joinedFront(first: JsonObject): JsonObject {
    const texts = this.#front.flatMap(({ message }) => textsOf(message['content']));
    return { ...first, content: texts.join('\n\n') };
  }

  /** Media of tool results and instructions that no message of the user follows. */
  #flush(): void {
    if (this.#waiting.length === 0) return;
    const content = this.#waiting;
    this.#waiting = [];
    this.#push(withContentInFront({ role: 'user', content: [] }, content));
  }

  /** A server that continues an answer only if a member says so refuses a last answer without that member. */
  #endInTurn(i: number): void {
    const last = this.#last;
    if (this.#traits.prefillSwitch !== 'prefix' || last?.['role'] !== 'assistant') return;
    if (isArray(last['tool_calls']) || last['prefix'] === true) return;
    this.#note(['messages', i], 'the model continues the last assistant message');
    this.#replaceLast({ ...last, prefix: true });
  }

  #noting(i: number): (member: string, why: string) => void {
    return (member, why) => this.#note(['messages', i, member], why, 'lost');
  }

  /** Each kind once: a history may hold hundreds of them. */
  readonly #note = (
    path: readonly (string | number)[],
    why: string,
    what: 'changed' | 'lost' = 'changed',
  ): void => {
    const kind = `${path.filter((key) => typeof key === 'string').join('.')}: ${why}`;
    if (this.#noted.has(kind)) return;
    this.#noted.add(kind);
    this.#notes?.[what](path, why);
  };
}

function editing(before: readonly Json[], after: readonly Placed[]): readonly JsonEdit[] {
  const edits: JsonEdit[] = [];
  let next = 0;
  const removeUntil = (end: number): void => {
    for (; next < end; next += 1) edits.push({ path: ['messages', next], text: undefined });
  };
  for (const { message, from } of after) {
    if (from === undefined) {
      edits.push({ path: ['messages', next], text: JSON.stringify(message), insert: true });
      continue;
    }
    removeUntil(from);
    edits.push(...differences(before[from], message, ['messages', from]));
    next = from + 1;
  }
  removeUntil(before.length);
  return edits;
}

/** The edits that turn one value into the other. Values that are the same object are skipped. */
function differences(
  before: Json | undefined,
  after: Json | undefined,
  path: FieldPath,
): readonly JsonEdit[] {
  if (before === after) return [];
  if (isArray(before) && isArray(after) && before.length === after.length) {
    return before.flatMap((value, i) => differences(value, after[i], [...path, i]));
  }
  if (!isObject(before) || !isObject(after)) {
    return [{ path, text: after === undefined ? undefined : JSON.stringify(after) }];
  }
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key) => differences(before[key], after[key], [...path, key]));
}

// Reasoning in the history of a relayed request. What another provider or the gateway made is taken out;
// an upstream that wants back what standard clients drop gets it: Gemini its signatures of calls, DeepSeek
// and Kimi their reasoning, OpenRouter what was sealed. What the client brings itself is left alone,
// unless it is the torn end of what is known.

/** Whether the upstream wants back what clients drop: then each message is examined. */
function isHistoryWanted(traits: UpstreamTraits): boolean {
  return (
    traits.reasoningReplay || traits.callSignatures === true || traits.reasoningDetails === true
  );
}

/** The spellings of reasoning in messages. */
const reasoningMembers = [
  'reasoning_content',
  'reasoning',
  'reasoning_details',
  'thinking_blocks',
  'reasoning_signature',
  'extra_content',
] as const;

/** Whether a message holds reasoning, or a signature of a call, in any spelling. */
function hasReasoning(message: JsonObject): boolean {
  for (const name of reasoningMembers) {
    const value = message[name];
    if (value !== undefined && value !== null) return true;
  }
  const { tool_calls: calls } = message;
  return isArray(calls) && calls.some((call) => isObject(call) && isObject(call['extra_content']));
}

interface HistoryOptions {
  readonly ask: Ask;
  readonly asked: PromptTrail;
  readonly note: (member: string, why: string) => void;
}

const foreign = 'reasoning of another provider is not shown to this one';

/** The message with no reasoning but what this upstream made and takes back; the same if that is all of it. */
function withOwnReasoning(message: JsonObject, options: HistoryOptions): JsonObject {
  const { ask, note } = options;
  const isOwn = !isForeign(message, options);
  let own = withoutCallSignatures(message, isOwn, options);
  for (const name of reasoningMembers) {
    const value = own[name];
    if (value === undefined || value === null) continue;
    const kept = memberToSend(own, name, isOwn, ask);
    if (kept === value) continue;
    const { [name]: _value, ...rest } = own;
    own = kept === undefined ? rest : { ...rest, [name]: kept };
    const whole = isArray(kept) && isArray(value) && kept.length === value.length;
    if (value !== '' && !whole) note(name, foreign);
  }
  return own;
}

/** The part of a member that may be sent; undefined = nothing. */
function memberToSend(
  message: JsonObject,
  name: (typeof reasoningMembers)[number],
  isOwn: boolean,
  ask: Ask,
): Json | undefined {
  if (name === 'reasoning_details' && ask.traits.reasoningDetails === true) {
    // Entries that the model's maker reads, whichever provider passed them on: a signature holds for the family of models
    // that made it. The same list where all of them are sent as they are.
    const { reasoning_details: given } = message;
    if (!isArray(given)) return undefined;
    const all = given.filter(isObject);
    const kept = all.filter((entry) => isReadable(entry, isOwn, ask.traits));
    if (kept.length === 0) return undefined;
    if (!all.some(({ id }) => isDetailMark(id))) return kept.length === given.length ? given : kept;
    // The gateway's marks show whether the text of a signature is still complete.
    const parts = checkReasoning(reasoningParts(readReasoning(message)), ask.sealer);
    const whole = kept.length === all.length && parts.every(({ part }) => part.broken !== true);
    return whole ? parts.map(({ part }, index) => writeDetail(part, index)) : undefined;
  }
  return isOwn && isOwnSpelling(name, ask.traits) ? message[name] : undefined;
}

/** A server that ignores unknown members may have written any spelling itself. */
function isOwnSpelling(name: string, traits: UpstreamTraits): boolean {
  if (traits.messageMembers === undefined) return true;
  if (name === 'reasoning_content') return traits.reasoningReplay;
  if (name === 'extra_content') return traits.callSignatures === true;
  return name === traits.reasoningField;
}

/** Only their maker can use signatures of calls. */
function withoutCallSignatures(
  message: JsonObject,
  isOwn: boolean,
  { ask, note }: HistoryOptions,
): JsonObject {
  const { tool_calls: calls } = message;
  if (!isArray(calls) || (isOwn && isOwnSpelling('extra_content', ask.traits))) return message;
  if (!calls.some((call) => isObject(call) && call['extra_content'] !== undefined)) return message;
  note('tool_calls', 'what another provider sealed is not sent to this one');
  const plain = calls.map((call) => {
    if (!isObject(call)) return call;
    const { extra_content: _extra, ...rest } = call;
    return rest;
  });
  return { ...message, tool_calls: plain };
}

function isReadable(
  { format, signature, data }: JsonObject,
  isOwn: boolean,
  { reasoningFormat }: UpstreamTraits,
): boolean {
  const sealed = signature !== undefined || data !== undefined;
  const known = typeof format === 'string' ? format : sealed ? nativeFormat : 'unknown';
  return known === 'unknown' ? isOwn && !sealed : known === reasoningFormat;
}

/** Whether another upstream wrote it, by the gateway's marks, or by the remembered turns. */
function isForeign(message: JsonObject, { ask, asked }: HistoryOptions): boolean {
  const { reasoning_details: details } = message;
  if (isArray(details) && details.some((entry) => isObject(entry) && isDetailMark(entry['id']))) {
    return true;
  }
  const origin = originOf(message, ask) ?? originOfCalls(message, ask, asked);
  if (origin === undefined) return false;
  return origin.dialect !== 'openai-chat' || origin.provider !== ask.provider;
}

/** The origin of a message's reasoning, by its text. Undefined if it is not remembered. */
function originOf(message: JsonObject, ask: Ask): Origin | undefined {
  const text = reasoningText(message);
  return text === '' ? undefined : ask.originOf?.(text);
}

function originOfCalls(message: JsonObject, ask: Ask, asked: PromptTrail): Origin | undefined {
  const [call] = callsOf(message);
  return call === undefined ? undefined : recallOf(call, ask, asked)?.origin;
}

/** All reasoning of a message as one text. */
function reasoningText(message: JsonObject): string {
  const { content } = message;
  const said = readReasoning(message)
    .map(({ text }) => text)
    .join('');
  if (said !== '' || !isArray(content)) return said;
  return content.map((part) => (isObject(part) ? thinkingText(part) : '')).join('');
}

interface RestoredTurn {
  /** The same object if nothing was missing. */
  readonly message: JsonObject;
  /** Its calls got the vendor's placeholder for missing signatures. */
  readonly filled: boolean;
}

/** The message with the data that its upstream requires back. */
function restoredTurn(message: JsonObject, ask: Ask, asked: PromptTrail): RestoredTurn {
  const kept = recalled(message, ask, asked);
  const calls = callsOf(message);
  const signed = missingSignatures(calls.map(readCall), ask.traits, kept?.calls);
  return {
    message: withCalls(withReasoning(message, ask.traits, kept), calls, signed),
    filled: signed?.filled === true,
  };
}

function withCalls(
  message: JsonObject,
  calls: readonly JsonObject[],
  signed: CallSignatures | undefined,
): JsonObject {
  if (signed === undefined) return message;
  return { ...message, tool_calls: calls.map((call, i) => ({ ...call, ...signed.members[i] })) };
}

function recallOf(call: JsonObject, ask: Ask, asked: PromptTrail): RecalledTurn | undefined {
  const { id, name, arguments: argumentsJson } = readCall(call);
  return ask.recall?.({ id, name, argumentsJson }, asked);
}

/** The remembered data of the turn, if this provider wrote it. */
function recalled(message: JsonObject, ask: Ask, asked: PromptTrail): RecalledTurn | undefined {
  const [first] = callsOf(message);
  const kept = first === undefined ? undefined : recallOf(first, ask, asked);
  if (kept?.origin.dialect !== 'openai-chat') return undefined;
  return ask.provider === undefined || kept.origin.provider === ask.provider ? kept : undefined;
}

function withReasoning(
  message: JsonObject,
  traits: UpstreamTraits,
  kept: RecalledTurn | undefined,
): JsonObject {
  const parts = kept?.reasoning.map(({ part }) => part) ?? [];
  if (traits.reasoningDetails === true) return withDetails(message, parts);
  return traits.reasoningReplay ? withText(message, parts, traits.reasoningFiller) : message;
}

function withDetails(message: JsonObject, parts: readonly ReasoningPart[]): JsonObject {
  const sealed = parts.filter((part) => hasProof(part) || part.extras !== undefined);
  const own = message['reasoning_details'];
  const has = isArray(own) && own.length > 0;
  if (sealed.length === 0 || (has && !isRemainder(message, sealed))) return message;
  return { ...message, reasoning_details: sealed.map(writeDetail) };
}

function withText(
  message: JsonObject,
  parts: readonly ReasoningPart[],
  filler: string | undefined,
): JsonObject {
  const own = message['reasoning_content'];
  const has = typeof own === 'string' && (own !== '' || filler !== ' ');
  if (has && !isRemainder(message, parts)) return message;
  const texts = parts.map((part) => part.text).filter((text) => text !== '');
  const text = texts.length === 0 ? filler : texts.join('\n\n');
  return text === undefined ? message : { ...message, reasoning_content: text };
}

/**
 * Whether the message holds only the end of what was answered: the stream helpers of the official SDK
 * keep the last piece of a member that they do not know.
 */
function isRemainder(message: JsonObject, whole: readonly ReasoningPart[]): boolean {
  const own = reasoningParts(readReasoning(message));
  const ends = whole.slice(-own.length);
  const isEnd = own.every((part, i) => {
    const end = ends[i];
    if (end === undefined || !end.text.endsWith(part.text)) return false;
    return (
      (part.signature ?? end.signature) === end.signature &&
      (part.encrypted ?? end.encrypted) === end.encrypted
    );
  });
  return isEnd && (own.length < whole.length || own.some(({ text }, i) => text !== ends[i]?.text));
}

function callsOf(message: JsonObject): readonly JsonObject[] {
  const calls = message['tool_calls'];
  return isArray(calls) ? calls.filter(isObject) : [];
}
