/**
 * The history of a relayed request for an upstream that wants back what standard clients drop: Gemini
 * its signatures of calls (D5), DeepSeek and Kimi their reasoning (D6), OpenRouter what was sealed. What
 * the client brings itself is left alone, unless it is the torn end of what is known.
 */
import type { Json, JsonObject, ReasoningPart } from '../../core/conversation.ts';
import type { Ask } from '../../core/dialect.ts';
import { isObject, type JsonSource } from '../../core/json.ts';
import { PromptTrail, type KeptTurn } from '../../core/kept-turn.ts';
import type { Notes } from '../../core/notes.ts';
import { isArray } from './fields.ts';
import { fillerNote, missingSignatures, type CallSignatures } from './call-signatures.ts';
import { readReasoning, reasoningParts } from './reasoning-read.ts';
import { hasProof, writeDetail } from './reasoning-write.ts';
import { readCall } from './tool-call-read.ts';

/** The messages with what was missing; undefined when nothing was. */
export function restoredMessages(
  source: Pick<JsonSource, 'value'>,
  ask: Ask,
  notes: Notes | undefined,
): readonly Json[] | undefined {
  if (!wantsHistoryBack(ask)) return undefined;
  const { messages } = source.value;
  if (!isArray(messages)) return undefined;
  const asked = new PromptTrail();
  let changed = false;
  let filled = false;
  const restored = messages.map((message) => {
    if (!isObject(message)) return message;
    asked.addMessage(message);
    if (message['role'] !== 'assistant') return message;
    const kept = recalled(message, ask, asked);
    const calls = callsOf(message);
    const signed = missingSignatures(calls.map(readCall), ask.traits, kept?.calls);
    if (signed?.filled === true) filled = true;
    const whole = withCalls(withReasoning(message, ask, kept), calls, signed);
    if (whole !== message) changed = true;
    return whole;
  });
  if (filled) notes?.changed(['messages'], fillerNote);
  return changed ? restored : undefined;
}

function withCalls(
  message: JsonObject,
  calls: readonly JsonObject[],
  signed: CallSignatures | undefined,
): JsonObject {
  if (signed === undefined) return message;
  return { ...message, tool_calls: calls.map((call, i) => ({ ...call, ...signed.members[i] })) };
}

function wantsHistoryBack({ traits }: Ask): boolean {
  return (
    traits.reasoningReplay || traits.callSignatures === true || traits.reasoningDetails === true
  );
}

/** What is known of the turn, if this very provider wrote it. */
function recalled(message: JsonObject, ask: Ask, asked: PromptTrail): KeptTurn | undefined {
  const [first] = callsOf(message);
  if (first === undefined || ask.recall === undefined) return undefined;
  const { id, name, arguments: argumentsJson } = readCall(first);
  const kept = ask.recall({ id, name, argumentsJson }, asked);
  if (kept?.origin.dialect !== 'openai-chat') return undefined;
  return ask.provider === undefined || kept.origin.provider === ask.provider ? kept : undefined;
}

function withReasoning(
  message: JsonObject,
  { traits }: Ask,
  kept: KeptTurn | undefined,
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
